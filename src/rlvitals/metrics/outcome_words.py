"""The outcome that a key names in its own words: "Eval_AverageReturn", "totalReward", "winrate".

For logs in which no table knows an outcome. Case, plurals, separators and words that only say how
a number was averaged or where it stands are noise; a key with any other word beside the outcome's
("reward_std", "reward_scale", "step_reward") names something else.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from rlvitals.metrics.catalogue import outcome
from rlvitals.metrics.metric import Metric

MAX_KEY = 60  # characters: a longer key is no name
# A number of its own tells agents or environments apart ("0_reward"), unless it is a window's.
NUMBERED = re.compile(r"(?<![A-Za-z])\d")
WINDOW = frozenset({"last", "avg", "average", "mean", "running", "moving", "smoothed"})
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NOISE = frozenset(
    {
        *("avg", "average", "mean", "running", "moving", "smoothed", "last", "per", "of", "over"),
        *("train", "training", "rollout", "chart", "metric", "stat", "performance", "scalar"),
        *("history", "list", "epoch", "overall", "env", "environment"),
    }
)
EPISODES = frozenset({"ep", "epi", "episode", "episodic", "total", "cum", "cumulative", "sum"})
EVALUATION = frozenset({"eval", "evaluation", "test", "testing", "val", "valid", "validation"})
# What is left of a key, in order of trust: its metric, the metric of an evaluation.
OUTCOMES: dict[frozenset[str], tuple[Metric, Metric]] = {
    frozenset({"return"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"reward"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"rew"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"score"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"fitness"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"profit"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"portfolio", "value"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"win", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"winrate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"battle", "won"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"success", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"success"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"accuracy"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"accuracie"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
}
RANKS = tuple(OUTCOMES)
SHARES = frozenset({m.name for m in (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE)})
# A run that logs one of these is judged by it.
JUDGED = frozenset(
    {metric.name for pair in OUTCOMES.values() for metric in pair}
    | {"outcome/rlhf_reward", "outcome/task_reward", "outcome/win_rate_ema", "outcome/pass_rate"}
    | {"outcome/throughput", "outcome/eval_reward"}
    | {"reward/trained_mean", "reward/mean", "reward/step", "language/filtered_reward"}
)


@lru_cache(maxsize=4096)
def meaning(key: str) -> tuple[int, Metric] | None:
    """Return the outcome that a key names, with its rank (0: most trusted); None for another."""
    if len(key) > MAX_KEY:
        return None
    words = {word.lower() for word in WORD.findall(key)}
    words = {word.removesuffix("s") if word not in {"loss", "success", "fitness"} else word
             for word in words}  # fmt: skip
    if NUMBERED.search(key) and not words & WINDOW:
        return None
    words -= NOISE
    evaluated, whole_episodes = bool(words & EVALUATION), bool(words & EPISODES)
    own = frozenset(words - EVALUATION - EPISODES)
    if own not in OUTCOMES:
        return None
    trained, tested = OUTCOMES[own]
    if trained is outcome.REWARD and whole_episodes:
        trained = outcome.RETURN
    return RANKS.index(own), tested if evaluated else trained


def choose(keys: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
    """Choose a key for each outcome that keys name; return {metric: (key, the keys passed over)}.

    Of several outcomes of training one is chosen, and of several of evaluation one.
    """
    ranked: dict[bool, list[tuple[int, str, str]]] = {}
    for key in dict.fromkeys(keys):
        if known := meaning(key):
            rank, metric = known
            ranked.setdefault("eval" in metric.name, []).append((rank, metric.name, key))
    picked = {}
    for candidates in ranked.values():
        _, name, key = min(candidates, key=lambda one: one[0])  # of equals the first
        picked[name] = (key, [other for _, _, other in candidates if other != key])
    return picked
