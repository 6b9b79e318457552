"""Name the metric of a language trainer's key by its words, where no table knows the key.

    meaning("rollout/response_len/mean")   # language/length_mean
    meaning("policy/entropy_avg")          # exploration/entropy
    meaning("eval/aime24/pass@8")          # outcome/eval_task/aime24/pass@8
    meaning("actor/lambda_loss")           # None: "lambda" is of no subject

A key is a subject ("response length"), a statistic over the batch ("mean", "max"), and words for
the place where it was taken ("train", "actor"). The longest subject whose words the key has is
taken, if every other word is one of a place; a key with any further word names something else.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from rlvitals.metrics.catalogue import (
    exploration,
    language,
    optimiser,
    outcome,
    policy,
    preference,
    reward,
    rollouts,
    sampler,
    surrogate,
    value,
)
from rlvitals.metrics.frameworks import GENERIC, own_numbers
from rlvitals.metrics.frameworks.key import Name, Table
from rlvitals.metrics.metric import Metric
from rlvitals.metrics.profile import LANGUAGE_FRAMEWORKS

FRAMEWORK = "language-words"
BY_WORDS = "by the words of its key"
MAX_GRAMMAR_KEY_LENGTH = 120  # characters
GRAMMAR_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Before a key is cut into words: two words that are one, and endings that reduce over processes.
COMPOUNDS = (
    (re.compile(r"@(?:sum|mean|max|min)\b"), ""),
    (re.compile(r"(?:_|/)?per_token"), ""),
    (re.compile(r"(?:^|(?<=/))(?:actor|policy)/(?=(?:total_)?loss)"), ""),  # with all its terms
    (re.compile(r"(?:^|(?<=/))ratio(?=$|[_/@](?:mean|max|min|std|avg))"), "iwratio"),
    (re.compile(r"rewards/accuracies"), "preferenceaccuracy"),
    (re.compile(r"[/_]p\d{1,2}$"), "_percentile"),
    (re.compile(r"minmax_diff$"), "std"),
    (re.compile(r"learning_rate"), "lr"),
    (re.compile(r"clip_?frac(?:tion)?|clip_?ratio|clipped_ratio"), "clipfrac"),
    (re.compile(r"approx_kl|kl_approx"), "approxkl"),
    (re.compile(r"(?:vf_)?explained_var(?:iance)?"), "explainedvariance"),
    (re.compile(r"policy_gradient_loss|surrogate_loss|pg_loss"), "pgloss"),
    (re.compile(r"log_?probs?(?![a-z])|logps?(?![a-z])"), "logprob"),
    (re.compile(r"seq(?:uence)?_?len(?:gth)?s?(?![a-z])"), "sequence_length"),
    (re.compile(r"off_?policy|policy_lag|_lag(?![a-z])|/lag(?![a-z])"), "/staleness"),
    (re.compile(r"importance_(?:sampling_)?(?:ratio|weight)s?|imp(?:ortance)?_weight"), "iwratio"),
)
SYNONYMS = {
    word: synonym
    for synonym, words in {
        "reward": ("rewards", "rew"),
        "return": ("returns",),
        "score": ("scores",),
        "advantage": ("advantages", "adv", "advs"),
        "value": ("values", "vf"),
        "vpred": ("vpreds",),
        "rejected": ("reject",),
        "margin": ("margins",),
        "length": ("len", "lens", "lengths"),
        "response": ("responses", "completion", "completions", "generation", "generations",
                     "gen", "generated", "output", "outputs"),
        "prompt": ("prompts", "query", "queries", "input", "inputs"),
        "sequence": ("seq", "sequences", "seqs"),
        "tokens": ("toks", "token", "tok"),
        "sample": ("samples", "trajectory", "trajectories", "traj", "trajs", "episodes",
                   "episode"),
        "prob": ("probs", "probability", "probabilities"),
        "grad": ("gradient", "gradients", "grads"),
        "ratio": ("ratios", "fraction", "fractions", "frac", "rate", "share"),
        "ref": ("reference",),
        "coef": ("coefficient", "coeff", "beta"),
        "accuracy": ("acc", "accuracies"),
        "diff": ("difference", "differences", "gap"),
        "group": ("groups",),
        "truncated": ("truncation", "overlong"),
        "turns": ("turn", "rounds", "round"),
        "tool": ("tools",),
        "calls": ("call",),
        "weight": ("weights",),
        "sampler": ("vllm", "sglang", "infer", "inference", "sampling", "behave", "behavior"),
        "high": ("upper",),
        "low": ("lower",),
        "div": ("divergence",),
        "num": ("number", "count", "counts"),
        "success": ("successes",),
        "clipfrac": ("clipped",),
    }.items()
    for word in words
}  # fmt: skip
STATISTICS = {
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    **dict.fromkeys(("max", "maximum"), "max"),
    **dict.fromkeys(("min", "minimum"), "min"),
    **dict.fromkeys(("std", "stdev", "stddev", "var"), "std"),
    **dict.fromkeys(("median", "percentile"), "percentile"),
}
HELD_OUT_WORDS = frozenset({"eval", "evaluation", "val", "valid", "validation", "test"})
# Where a number was taken: in a name, and in the folders before it.
LEAF_WORDS = frozenset(
    {"train", "training", "actor", "batch", "rollout", "raw", "ppo", "current", "all", "overall",
     "of", "per", "global"}
)  # fmt: skip
FOLDER_WORDS = LEAF_WORDS | frozenset(
    {"policy", "trainer", "agent", "step", "rl", "grpo", "metrics", "metric", "stats", "stat",
     "objective", "optim", "optimizer", "optimiser", "charts", "env", "loss", "reward", "response",
     "critic", "debug", "data", "generate", "tokens", "sample", "sampler", "rollouts", "update",
     "main", "default", "learner", "perf", "group", "async", "prompt", "algorithm", "aux"}
)  # fmt: skip
SUBJECTS: tuple[tuple[Metric, tuple[str, ...]], ...] = (
    (outcome.REWARD, ("reward", "total reward")),
    (outcome.RLHF_REWARD, ("critic reward",)),
    (outcome.SCORE, ("score", "reward model score")),
    (outcome.ACCURACY, ("accuracy", "correct", "correct ratio", "solve ratio", "solved ratio",
                        "exact match", "answer accuracy")),
    (outcome.SUCCESS_RATE, ("success", "success ratio", "sample success")),
    (outcome.RETURN, ("sample return",)),
    (reward.GROUP_STD, ("group reward std", "group std")),
    (reward.GROUP_ZERO_STD, ("zero std ratio", "zero std ratio reward", "zero variance ratio",
                             "group zero std ratio", "group zero variance ratio")),
    (reward.GROUP_ALL_WRONG, ("ratio all bad", "all wrong ratio", "all zero ratio")),
    (reward.GROUP_ALL_RIGHT, ("ratio all good", "all correct ratio",
                              "all right ratio", "all one ratio")),
    (policy.LOSS, ("pgloss", "actor loss", "policy loss")),
    (value.LOSS, ("value loss", "critic loss")),
    (value.CLIP_FRACTION, ("value clipfrac", "critic clipfrac")),
    (value.EXPLAINED_VARIANCE, ("explainedvariance", "value explainedvariance")),
    (value.MEAN, ("critic value",)),
    (value.PREDICTION_MEAN, ("value", "vpred", "critic vpred")),
    (value.RETURN_MEAN, ("critic return",)),
    (optimiser.LOSS, ("loss", "final loss", "total loss")),
    (surrogate.KL_LOSS, ("kl loss",)),
    (policy.KL_SIGNED, ("ppo kl",)),
    (policy.APPROX_KL, ("approxkl",)),
    (policy.KL_TO_REFERENCE_PER_TOKEN, ("kl", "ref kl", "to ref kl", "kl div", "kl penalty",
                                        "reward kl penalty", "ref kl div")),
    (policy.KL_COEF, ("kl coef", "kl loss coef", "kl penalty coef", "reward kl penalty coef")),
    (exploration.ENTROPY, ("entropy", "policy entropy", "tokens entropy")),
    (exploration.ENTROPY_COEF, ("entropy coef", "entropy loss coef", "entropy bonus coef")),
    (policy.CLIP_FRACTION_EFFECTIVE, ("clipfrac", "pg clipfrac", "policy clipfrac")),
    (policy.CLIP_FRACTION, ("ratio clipfrac",)),
    (policy.CLIP_FRACTION_HIGH, ("clipfrac high", "ratio clipfrac high")),
    (policy.CLIP_FRACTION_LOW, ("clipfrac low", "ratio clipfrac low")),
    (surrogate.DUAL_CLIP_FRACTION, ("dual clipfrac",)),
    (policy.RATIO, ("iwratio", "ppo ratio", "policy ratio", "prob ratio")),
    (policy.ADVANTAGE_MEAN, ("advantage",)),
    (surrogate.ADVANTAGE_ZERO_SHARE, ("advantage ratio zero",)),
    (optimiser.GRAD_NORM, ("grad norm", "policy grad norm", "total grad norm")),
    (optimiser.CRITIC_GRAD_NORM, ("critic grad norm", "value grad norm")),
    (optimiser.LEARNING_RATE, ("lr", "policy lr")),
    (optimiser.CRITIC_LEARNING_RATE, ("critic lr", "value lr")),
    (optimiser.WEIGHT_NORM, ("weight norm", "param norm", "params norm")),
    (optimiser.POLICY_LAG, ("staleness", "policy staleness", "sample staleness", "sample age")),
    (sampler.VERSION, ("policy version", "weight version", "sampler version", "param version")),
    (sampler.MIXED_VERSIONS, ("mixed version ratio", "weight mixed version ratio")),
    (sampler.ESS, ("ess", "ess ratio", "eff sample size", "effective sample size")),
    (sampler.KL, ("mismatch kl", "sampler kl", "rollout train kl")),
    (sampler.LOGP_DIFFERENCE_MEAN, ("rollout train logprob abs diff", "sampler logprob diff",
                                    "sampler logprob abs diff", "rollout actor logprob diff",
                                    "logprob abs diff", "train sampler logprob abs diff")),
    (sampler.PROB_DIFFERENCE_MEAN, ("rollout prob diff", "rollout actor prob diff",
                                    "prob abs diff", "sampler prob diff")),
    (sampler.PROB_CORRELATION, ("prob pearson corr",)),
    (sampler.RATIO_MEAN, ("sampler iwratio", "tis ratio", "tis weight", "tis", "rollout is")),
    (sampler.RATIO_CLIPPED_SHARE, ("tis clipfrac", "sampler ratio clipfrac")),
    (sampler.RATIO_HIGH_SHARE, ("tis clipfrac high", "rollout is ratio high")),
    (sampler.RATIO_LOW_SHARE, ("tis clipfrac low", "rollout is ratio low")),
    (language.LENGTH_MEAN, ("response length", "response tokens", "response tokens length",
                            "tokens per sample", "sample response length")),
    (language.QUERY_LENGTH_MEAN, ("prompt length", "prompt tokens", "prompt tokens length")),
    (rollouts.SEQUENCE_LENGTH_MEAN, ("sequence length", "total length")),
    (language.TRUNCATED_SHARE, ("truncated", "truncated ratio", "response length clipfrac",
                                "response clipfrac", "response truncated", "is truncated",
                                "response truncated ratio", "sample truncated ratio")),
    (rollouts.TURN_LENGTH, ("tokens per turns", "response tokens per turns",
                            "response length per turns")),
    (rollouts.TURNS_MEAN, ("turns", "num turns", "turns per sample")),
    (language.TOOL_CALLS, ("tool calls", "num tool calls", "tool calls per sample")),
    (language.TOOL_FAILURES, ("tool failure ratio", "tool error ratio", "tool calls error ratio",
                              "tool calls failure ratio")),
    (rollouts.ABORTED_SHARE, ("aborted ratio", "response aborted ratio")),
    (rollouts.REPETITION_SHARE, ("repetition ratio", "response repetition ratio")),
    (language.LOGPROBS, ("logprob", "old logprob")),
    (language.REF_LOGPROBS, ("ref logprob",)),
    (preference.CHOSEN_REWARD, ("chosen reward",)),
    (preference.REJECTED_REWARD, ("rejected reward",)),
    (preference.MARGIN, ("margin", "reward margin")),
    (preference.ACCURACY, ("preferenceaccuracy",)),
    (preference.CHOSEN_LOGP, ("chosen logprob",)),
    (preference.REJECTED_LOGP, ("rejected logprob",)),
    (rollouts.ERROR_SHARE, ("error ratio", "has error", "sample error ratio")),
)  # fmt: skip
SUBJECT_WORDS = [(frozenset(text.split()), m) for m, texts in SUBJECTS for text in texts]
OF_STATISTIC = {
    (outcome.REWARD.name, "std"): reward.STD,
    (outcome.REWARD.name, "max"): reward.MAX,
    (outcome.REWARD.name, "min"): reward.MIN,
    (outcome.SCORE.name, "std"): reward.SCORE_STD,
    (outcome.SCORE.name, "max"): reward.MAX,
    (outcome.SCORE.name, "min"): reward.MIN,
    (language.LENGTH_MEAN.name, "std"): language.LENGTH_STD,
    (language.LENGTH_MEAN.name, "max"): language.LENGTH_MAX,
    (language.LENGTH_MEAN.name, "min"): language.LENGTH_MIN,
    (language.QUERY_LENGTH_MEAN.name, "std"): language.QUERY_LENGTH_STD,
    (language.QUERY_LENGTH_MEAN.name, "max"): rollouts.QUERY_LENGTH_MAX,
    (language.QUERY_LENGTH_MEAN.name, "min"): rollouts.QUERY_LENGTH_MIN,
    (rollouts.SEQUENCE_LENGTH_MEAN.name, "max"): rollouts.SEQUENCE_LENGTH_MAX,
    (rollouts.SEQUENCE_LENGTH_MEAN.name, "min"): rollouts.SEQUENCE_LENGTH_MIN,
    (rollouts.TURNS_MEAN.name, "max"): rollouts.TURNS_MAX,
    (rollouts.TURNS_MEAN.name, "min"): rollouts.TURNS_MIN,
    (policy.ADVANTAGE_MEAN.name, "std"): policy.ADVANTAGE_STD,
    (policy.ADVANTAGE_MEAN.name, "max"): surrogate.ADVANTAGE_MAX,
    (policy.ADVANTAGE_MEAN.name, "min"): surrogate.ADVANTAGE_MIN,
    (policy.CLIP_FRACTION_HIGH.name, "max"): policy.CLIP_FRACTION_HIGH_MAX,
    (policy.CLIP_FRACTION_LOW.name, "min"): policy.CLIP_FRACTION_LOW_MIN,
    (optimiser.POLICY_LAG.name, "max"): optimiser.POLICY_LAG_MAX,
    (optimiser.GRAD_NORM.name, "max"): optimiser.GRAD_NORM_MAX,
    (sampler.RATIO_MEAN.name, "max"): sampler.RATIO_MAX,
    (sampler.RATIO_MEAN.name, "min"): sampler.RATIO_MIN,
    (sampler.LOGP_DIFFERENCE_MEAN.name, "max"): sampler.LOGP_DIFFERENCE_MAX,
    (sampler.PROB_DIFFERENCE_MEAN.name, "max"): sampler.PROB_DIFFERENCE_MAX,
    (sampler.PROB_DIFFERENCE_MEAN.name, "std"): sampler.PROB_DIFFERENCE_STD,
}
HELD_OUT = {
    outcome.REWARD.name: outcome.EVAL_REWARD,
    outcome.SCORE.name: outcome.EVAL_REWARD,
    outcome.ACCURACY.name: outcome.EVAL_ACCURACY,
    outcome.SUCCESS_RATE.name: outcome.EVAL_SUCCESS_RATE,
    optimiser.LOSS.name: optimiser.EVAL_LOSS,
}
LANGUAGE_NAMES = (
    *("language/length_", "language/truncated_share", "language/tool_"),
    *("policy/sampler_", "outcome/pass_rate/"),
)
# Families: the rest of the key is the member's own name.
SOLVED_IN_TRIES = re.compile(r"(?:.+/)?((?:pass|mean|best|avg|maj)(?:@|_at_)\d+(?:[/_]mean)?)")
PART_OF_REWARD = re.compile(r"(?:.+/)?rewards?/([^/]*?[A-Za-z][^/]*?)(?:/(?:mean|avg))?")
# In a key below "reward/" that is a statistic of the whole, or a count, and no part.
NO_PART_WORDS = STATISTICS.keys() | frozenset(
    {"reward", "score", "num", "ratio", "filtered", "zero", "group", "total", "raw", "sum",
     "accuracy", "margin", "chosen", "rejected", "return", "kl", "penalty", "coef", "length",
     "shaped"}
)  # fmt: skip
FAMILIES = (
    (re.compile(r".*?(?:termination|stop|finish)_reasons?/([^/]+)"), rollouts.STOP_REASON),
    (re.compile(r".*?errors?(?:_count|_ratio|_rate)?/([^/]+)"), rollouts.ERRORS),
)


def name_others(
    table: Table | None, names: Mapping[str, tuple[str, str] | None]
) -> Iterator[tuple[str, str, str]]:
    """Yield (key, canonical name, how) for a language trainer's keys that have no metric yet.

    `names` are all keys of a log with the canonical name and the reduction that its `table` gives
    them. Each metric is named once, and none that the table has named.
    """
    others = [key for key, name in names.items() if name is None or _is_by_kind(*name)]
    if table is None or table is GENERIC:
        meanings = (meaning(key) for key in others)
        is_language = any(found and found[0].startswith(LANGUAGE_NAMES) for found in meanings)
    else:
        is_language = table.framework in LANGUAGE_FRAMEWORKS
    taken = {name[0] for name in names.values() if name}
    for key in others if is_language else ():
        found = meaning(key)
        if found is not None and found[0] not in taken:
            taken.add(found[0])
            yield key, found[0], found[1].how


def _is_by_kind(name: str, how: str) -> bool:
    """Return True if a key is known by the kind of its number alone, and this is no count."""
    kinds = tuple(f"{metric.name}/" for metric in own_numbers.OF_A_SUBJECT)
    return how in {"", own_numbers.BY_KIND} and name.startswith(kinds)


@lru_cache(maxsize=4096)
def meaning(key: str) -> tuple[str, Name] | None:
    """Return the canonical name that the words of a key give, and how; None where they do not."""
    if len(key) > MAX_GRAMMAR_KEY_LENGTH:
        return None
    held_out = bool(HELD_OUT_WORDS & _words(key))
    return _by_family(key, held_out=held_out) or _by_subject(key, held_out=held_out)


def _by_family(key: str, *, held_out: bool) -> tuple[str, Name] | None:
    *folders, _ = key.split("/")
    if tries := SOLVED_IN_TRIES.fullmatch(key):
        if not held_out:
            return _named(outcome.PASS_RATE, tries[1].replace("@", "_at_"))
        return _named(outcome.EVAL_TASK, _member([*folders, tries[1]]))
    part = PART_OF_REWARD.fullmatch(key)
    if part and not _words(part[1]) & NO_PART_WORDS and not held_out:
        return _named(reward.COMPONENT, part[1])
    members = ((pattern.fullmatch(key), metric) for pattern, metric in FAMILIES)
    return next((_named(metric, found[1]) for found, metric in members if found), None)


def _by_subject(key: str, *, held_out: bool) -> tuple[str, Name] | None:
    spelt = key
    for pattern, compound in COMPOUNDS:
        spelt = pattern.sub(compound, spelt)
    path, _, leaf = spelt.rpartition("/")
    words = _words(leaf)
    statistic = _statistic(words)
    while path and not words - STATISTICS.keys() - LEAF_WORDS:  # "reward/mean"
        path, _, leaf = path.rpartition("/")
        words |= _words(leaf)
        statistic = statistic or _statistic(words)
    grouped = {"group", "zero"} & (words | _words(path))
    words -= HELD_OUT_WORDS | (STATISTICS.keys() - ({"std"} if grouped else set()))
    folders = _words(path) - HELD_OUT_WORDS - STATISTICS.keys()
    subjects = [
        (len(subject), len(subject & words), metric, subject)
        for subject, metric in SUBJECT_WORDS
        if subject <= words | folders
        and subject & words
        and words - subject <= LEAF_WORDS
        and folders - subject <= FOLDER_WORDS
    ]
    if not subjects:
        return _held_out_task(key) if held_out and folders - FOLDER_WORDS else None
    _, _, metric, subject = max(subjects, key=lambda cover: cover[:2])
    statistic = "" if "std" in subject else statistic
    if statistic not in {"", "mean"}:
        if (metric.name, statistic) not in OF_STATISTIC:
            kind = rollouts.HELD_OUT if held_out else rollouts.EXTREME
            return _named(kind, f"{metric.name}/{statistic}")
        metric = OF_STATISTIC[metric.name, statistic]
    if not held_out:
        return _named(metric)
    if metric.name in HELD_OUT:
        return _named(HELD_OUT[metric.name])
    return _named(rollouts.HELD_OUT, metric.name)


def _held_out_task(key: str) -> tuple[str, Name] | None:
    """Return the score on one held-out set: "eval/aime24/reward/mean"."""
    *folders, leaf = key.split("/")
    if leaf in STATISTICS and len(folders) > 1:
        leaf = folders.pop()
    metric = meaning(leaf)
    scored = metric is not None and metric[0] in HELD_OUT.keys() - {optimiser.LOSS.name}
    return _named(outcome.EVAL_TASK, _member([*folders, leaf])) if scored else None


def _named(metric: Metric, member: str = "") -> tuple[str, Name]:
    return f"{metric.name}/{member}" if member else metric.name, Name(metric, BY_WORDS)


def _member(segments: list[str]) -> str:
    return "/".join(s for s in segments if s.lower() not in HELD_OUT_WORDS) or segments[-1]


def _words(text: str) -> set[str]:
    words = (word.lower() for word in GRAMMAR_WORD.findall(text))
    return {SYNONYMS.get(word, word) for word in words}


def _statistic(words: set[str]) -> str:
    """Return the statistic that words name, "" for none: the least usual of several."""
    named = {STATISTICS[word] for word in words if word in STATISTICS}
    return next((s for s in ("percentile", "std", "min", "max", "mean") if s in named), "")
