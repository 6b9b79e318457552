"""The faults of the language tier: what is wrong, which rules name it, and what can show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Shown(StrEnum):
    """The part of a run that can show a fault."""

    LOG = "log"
    ROLLOUTS = "rollouts"  # saved text, or counts of it by task and group
    SETTINGS = "settings"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class LanguageFault:
    """A fault; any of `expects`, as the first root cause, names it."""

    about: str
    expects: tuple[str, ...]
    shown: Shown = Shown.LOG


STALE = ("sampler-mismatch", "samples-stale")
LOUD = (
    "learning-rate-too-high", "gradient-explosion", "loss-oscillating", "loss-not-decreasing",
    "policy-loss-explosion", "setting-out-of-range", "kl-spike", "reference-kl-out-of-range",
    "entropy-collapse", "exploration-explodes",
)  # fmt: skip
SILENT = ("zero-variance-groups", "constant-reward", "no-gradient")
SLOW = ("updates-hardly-move", "no-learning", "setting-out-of-range", "learning-starts-late",
        "loss-not-decreasing")  # fmt: skip
NO_END = ("responses-truncated", "eos-missing", "response-length-explodes", "stop-reason-shifts")
GAMED = ("component-dominates", "return-up-success-flat", "evaluation-falls")

FAULTS: Mapping[str, LanguageFault] = {
    "adapter-lost": LanguageFault("the sampler never gets the adapter", STALE),
    "all-easy": LanguageFault("every answer is right from the start", SILENT),
    "all-impossible": LanguageFault(
        "no answer can be right", (*SILENT, "tasks-without-signal", "phantom-gradient", *GAMED)
    ),
    "always-paid": LanguageFault("every answer is paid the same", (*SILENT, *GAMED)),
    "answers-stated": LanguageFault(
        "the prompt states the answer", ("answers-copied",), Shown.ROLLOUTS
    ),
    "beta-10": LanguageFault(
        "the weight of the KL to the reference is 10",
        ("kl-penalty-dominates", "setting-out-of-range", "updates-hardly-move"),
    ),
    "blank-images": LanguageFault(
        "the images are blank", ("image-not-seen", "image-mismatched")
    ),
    "calls-paid": LanguageFault(
        "each call of the tool is paid",
        ("turns-inflate", "length-is-paid", "tool-use-fades", *GAMED),
    ),
    "cap-too-short": LanguageFault("answers may have one token", NO_END),
    "constant-reward": LanguageFault("every answer is paid the same", SILENT),
    "constant-score": LanguageFault("every answer gets the same score", SILENT),
    "copy-paid": LanguageFault(
        "a judge pays for words of the prompt", ("answers-copied", "template-collapse", *GAMED)
    ),
    "cyrillic-paid": LanguageFault(
        "a judge prefers another script", ("language-switches", *GAMED)
    ),
    "dead-component": LanguageFault(
        "a part of the reward is never paid", ("constant-reward", "component-dominates")
    ),
    "dynamic-starved": LanguageFault(
        "few groups have contrast left", ("generation-starved", "samples-all-filtered", *SILENT)
    ),
    "entropy-bonus-high": LanguageFault(
        "the entropy bonus outweighs the reward",
        ("exploration-explodes", "setting-out-of-range", *NO_END),
    ),
    "eos-vanishes": LanguageFault("a reward for length, and none for ending", (*NO_END, *GAMED)),
    "few-prompts": LanguageFault(
        "a few prompts are learned by heart", ("evaluation-falls", *GAMED, *SILENT)
    ),
    "form-alone": LanguageFault(
        "nothing but the form is paid", ("phantom-gradient", "tasks-without-signal", *GAMED)
    ),
    "form-threshold": LanguageFault(
        "samples are sorted by their form, not by right answers",
        ("threshold-off-correctness", "positive-share-falls", *GAMED, *SILENT),
    ),
    "gradient-explosion": LanguageFault("gradients are unclipped at a high rate", LOUD),
    "group-baseline-missing": LanguageFault(
        "advantages are the rewards themselves", ("group-baseline-missing", "advantage-off-centre")
    ),
    "infinite-gradient": LanguageFault(
        "the gradient becomes infinite", ("not-a-number", *LOUD)
    ),
    "judge-scores-zero": LanguageFault(
        "the judge fails and scores 0", ("judge-outage", "failures-scored")
    ),
    "judge-silent": LanguageFault("the judge gives no score", ("judge-outage", "not-a-number")),
    "kl-dominates": LanguageFault(
        "the KL penalty outweighs the score",
        ("kl-penalty-dominates", "updates-hardly-move", "setting-out-of-range"),
    ),
    "kl-explodes": LanguageFault(
        "no KL penalty at a high rate", ("kl-spike", "reference-kl-out-of-range", *LOUD)
    ),
    "labels-wrong": LanguageFault(
        "45 % of the pairs are the wrong way round",
        ("evaluation-falls", "chosen-likelihood-falls", "no-learning", "loss-not-decreasing"),
    ),
    "length-paid": LanguageFault("a part grows with length", ("length-is-paid", *GAMED, *NO_END)),
    "length-reward": LanguageFault("a part grows with length", ("length-is-paid", *GAMED, *NO_END)),
    "loss-oscillates": LanguageFault("the rate of SGD is too high", LOUD),
    "lr-ends-early": LanguageFault(
        "the schedule is over after a quarter", ("updates-hardly-move", "setting-out-of-range",
        "learning-rate-jump", "plateau", "no-gradient"),
    ),
    "lr-high": LanguageFault("the learning rate is too high", (*LOUD, *NO_END, "return-collapse",
                             "no-learning", "chosen-likelihood-falls")),
    "lr-high-for-solved": LanguageFault(
        "a rate at which a solved task is unlearned", (*LOUD, "return-collapse")
    ),
    "lr-low": LanguageFault("the learning rate is ten thousand times too small", SLOW),
    "lr-restarts": LanguageFault(
        "the learning rate restarts", ("learning-rate-jump",)
    ),
    "lr-x20": LanguageFault("the learning rate is 20 times too large", (*LOUD, *NO_END,
                            "return-collapse")),
    "lr-x50": LanguageFault("the learning rate is 50 times too large", (*LOUD, *NO_END,
                            "return-collapse")),
    "memory-leak": LanguageFault("the process keeps a little of every batch", ("memory-grows",)),
    "nan-gradient": LanguageFault("the gradient becomes NaN", ("not-a-number", *LOUD)),
    "no-eos": LanguageFault("the model cannot end an answer", NO_END),
    "nsr-threshold-high": LanguageFault(
        "every sample is pushed down", ("threshold-off-correctness", "positive-share-falls",
        "exploration-explodes", *NO_END, *SILENT),
    ),
    "nsr-threshold-low": LanguageFault(
        "no sample is below the threshold", ("threshold-off-correctness", "samples-all-filtered",
        "setting-out-of-range", *SILENT),
    ),
    "old-log-probs-hotter": LanguageFault(
        "old log-probabilities are taken at another temperature",
        ("ratio-off-one", "first-update-off", "sampler-mismatch"),
    ),
    "psr-threshold-high": LanguageFault(
        "no sample is above the threshold", ("threshold-off-correctness", "samples-all-filtered",
        "setting-out-of-range", *SILENT),
    ),
    "psr-threshold-low": LanguageFault(
        "every sample is pushed up", ("threshold-off-correctness", "positive-share-falls",
        "return-collapse", *SILENT),
    ),
    "rate-high": LanguageFault(
        "a rate at which text falls apart", ("text-degenerates", *NO_END, *LOUD, "return-collapse",
        "no-learning"),
    ),
    "router-loss-of-wrong-sign": LanguageFault(
        "the loss of the router has the wrong sign", ("experts-collapse",)
    ),
    "sampler-drifts": LanguageFault("the sampler's weights err more and more", STALE),
    "sampler-hotter": LanguageFault(
        "the sampler is hotter than the trainer believes",
        (*STALE, "ratio-off-one", "first-update-off", "temperature-out-of-range"),
        Shown.NOWHERE,
    ),
    "sampling-truncated": LanguageFault(
        "the sampler draws the two likeliest tokens alone",
        (*STALE, "ratio-off-one", "first-update-off"),
    ),
    "sandbox-fails": LanguageFault(
        "some rollouts fail and are scored 0", ("failures-scored", "judge-outage"), Shown.ROLLOUTS
    ),
    "shuffled-answers": LanguageFault(
        "answers are compared with those of other questions", ("no-learning", "entropy-collapse",
        "zero-variance-groups"), Shown.NOWHERE,
    ),
    "shuffled-images": LanguageFault(
        "images belong to other questions", ("image-mismatched", "image-not-seen")
    ),
    "stale-16": LanguageFault("samples serve sixteen updates", STALE),
    "task-impossible": LanguageFault(
        "one task's answers cannot be known", ("tasks-without-signal", "task-regresses"),
        Shown.ROLLOUTS,
    ),
    "temperature-low": LanguageFault(
        "the temperature is 0.1", ("temperature-out-of-range", "entropy-collapse",
        "setting-out-of-range", *SILENT, "return-collapse"),
    ),
    "tools-given-up": LanguageFault("calls of the tool cost 1", ("tool-use-fades",)),
    "two-generations": LanguageFault(
        "a group has two answers", ("setting-out-of-range", "zero-variance-groups"),
        Shown.SETTINGS,
    ),
    "updates-rounded": LanguageFault(
        "weights in bfloat16 round updates away", ("updates-hardly-move", "no-learning",
        "reference-kl-out-of-range"),
    ),
    "value-loss-spike": LanguageFault(
        "scores are a hundred times as large from one update on",
        ("value-loss-explosion", "environment-changed", "reward-spread-grows", "impossible-value"),
    ),
    "verifier-breaks": LanguageFault(
        "one task's verifier accepts nothing any more", ("task-regresses", "judge-outage"),
        Shown.ROLLOUTS,
    ),
    "verifier-exploited": LanguageFault("length is paid beside the answer", (*GAMED, *NO_END,
                                        "length-is-paid")),
    "versions-mixed": LanguageFault("half of a batch is of old weights", STALE),
    "weights-never-synced": LanguageFault("the sampler never gets new weights", STALE),
    "weights-partly-synced": LanguageFault("the sampler never gets one layer", STALE),
    "weights-rarely-synced": LanguageFault("the sampler gets weights every 25th update", STALE),
}  # fmt: skip
# Broken by construction: no signal, a reward that is not the true one, a number that is none, a
# rate at which nothing is learned, a machine that fails. The others are broken where the reward is.
PROVEN = frozenset({
    "all-impossible", "always-paid", "answers-stated", "beta-10", "blank-images", "calls-paid",
    "cap-too-short", "constant-reward", "constant-score", "copy-paid", "cyrillic-paid",
    "entropy-bonus-high", "eos-vanishes", "few-prompts", "form-alone", "form-threshold",
    "infinite-gradient", "judge-scores-zero", "kl-dominates", "kl-explodes", "length-paid",
    "length-reward", "lr-low", "lr-x20", "lr-x50", "memory-leak", "nan-gradient", "no-eos",
    "nsr-threshold-high", "nsr-threshold-low", "old-log-probs-hotter", "psr-threshold-high",
    "psr-threshold-low", "rate-high", "sandbox-fails", "shuffled-answers", "shuffled-images",
    "task-impossible", "tools-given-up", "value-loss-spike", "verifier-breaks",
    "verifier-exploited",
})  # fmt: skip
