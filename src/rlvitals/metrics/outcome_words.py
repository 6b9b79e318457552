"""Recognise outcomes by the words of a key: "Eval_AverageReturn", "totalReward", "winrate".

For logs in which no table knows an outcome. Case, plurals, separators and words that describe
averaging or the position are ignored; a key with any other word besides the outcome's
("reward_std", "reward_scale", "step_reward") names something else.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from rlvitals.metrics import languages
from rlvitals.metrics.catalogue import outcome
from rlvitals.metrics.metric import Metric

NOISE_WORDS = frozenset(
    {
        *("avg", "average", "mean", "running", "moving", "smoothed", "last", "per", "of", "over"),
        *("rolling", "ma", "window", "latest", "current", "batch"),
        *("agent", "player", "game", "population"),
        *("train", "training", "rollout", "chart", "metric", "stat", "performance", "scalar"),
        *("history", "list", "epoch", "overall", "env", "environment", "global", "team"),
        # As the environment pays it, before it is normalised for the learner.
        *("raw", "true", "original", "unscaled", "unnormalized", "unnormalised", "undiscounted"),
        *("ext", "extrinsic"),
        # Files that compare algorithms are named after them: rewards_dqn.txt.
        *("dqn", "ddqn", "idqn", "ppo", "mappo", "ippo", "sac", "ddpg", "maddpg", "trpo"),
        *("reinforce", "sarsa", "qmix", "vdn", "vpg"),
    }
)
EPISODE_WORDS = frozenset({"ep", "epi", "episode", "episodic", "total", "cum", "cumulative", "sum"})
EVALUATION_WORDS = frozenset(
    {"eval", "evaluation", "test", "testing", "val", "valid", "validation"}
)
# Remaining words of a key, in order of trust: its metric, the metric of an evaluation.
OUTCOME_PAIRS: dict[frozenset[str], tuple[Metric, Metric]] = {
    frozenset({"return"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"reward"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"rew"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"score"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"fitness"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"profit"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"portfolio", "value"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"portfolio"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"net", "worth"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"pnl"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"ret"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"point"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"win", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"winrate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"win", "pct"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"win", "percentage"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"win", "ratio"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"win"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"won"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"solve", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"solved"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"completion", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"goal", "reached"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"battle", "won"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"success", "rate"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"success"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"accuracy"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"accuracie"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"verification", "accuracy"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"verified", "accuracy"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"answer", "accuracy"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"percentage", "correct"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"fraction", "correct"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    frozenset({"correct", "rate"}): (outcome.ACCURACY, outcome.EVAL_ACCURACY),
    # How near a text is to its reference; on the "dev" set, as translation calls its validation.
    frozenset({"chrf"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"bleu"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"dev", "chrf"}): (outcome.SCORE, outcome.EVAL_RETURN),
    frozenset({"dev", "bleu"}): (outcome.SCORE, outcome.EVAL_RETURN),
    # How long an episode lasted, by a name that says that longer is better; and what was eaten.
    frozenset({"survival", "time"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"time", "survived"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"step", "survived"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"pipe"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"pipe", "passed"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"line", "cleared"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"food", "eaten"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"apple", "eaten"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"distance", "travelled"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"distance", "traveled"}): (outcome.RETURN, outcome.EVAL_RETURN),
    # Of games, of markets and of bandits; and the short names.
    frozenset({"asset"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"elo"}): (outcome.ELO, outcome.ELO),
    frozenset({"equity"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"final", "equity"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"final", "portfolio", "value"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"balance"}): (outcome.RETURN, outcome.EVAL_RETURN),
    frozenset({"bankroll"}): (outcome.RETURN, outcome.EVAL_RETURN),
    **dict.fromkeys(
        map(frozenset, (["money"], ["cash"], ["wealth"], ["capital"], ["earning"], ["revenue"])),
        (outcome.RETURN, outcome.EVAL_RETURN),
    ),
    frozenset({"optimal", "action"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"sr"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"wr"}): (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE),
    frozenset({"r"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"rw"}): (outcome.REWARD, outcome.EVAL_RETURN),
    frozenset({"rwd"}): (outcome.REWARD, outcome.EVAL_RETURN),
}
# With one of these a key is not the outcome itself but a statistic or a part of it.
PART_WORDS = frozenset(
    {
        *("std", "sd", "stddev", "var", "variance", "min", "max", "best", "worst", "error", "diff"),
        *("delta", "count", "num", "number", "ratio", "rate", "norm", "normalized", "normalised"),
        *(
            "loss",
            "scale",
            "scaling",
            "coef",
            "coefficient",
            "weight",
            "clip",
            "threshold",
            "gamma",
        ),
        *(
            "step",
            "part",
            "component",
            "term",
            "bonus",
            "penalty",
            "intrinsic",
            "shaping",
            "shaped",
        ),
        *("model", "target", "baseline", "advantage", "expected", "predicted", "pred", "estimated"),
        *("critic", "value", "discount", "discounted", "expert", "human", "random", "cost", "time"),
    }
)
# All but right answers: one outcome of these is enough.
SCORED_OUTCOMES = frozenset({m.name for pair in OUTCOME_PAIRS.values() for m in pair}) - {
    outcome.ACCURACY.name
}
SHARE_METRICS = frozenset({m.name for m in (outcome.SUCCESS_RATE, outcome.EVAL_SUCCESS_RATE)})
# Outcomes by which a run is judged.
JUDGED_OUTCOMES = frozenset(
    {metric.name for pair in OUTCOME_PAIRS.values() for metric in pair}
    | {"outcome/rlhf_reward", "outcome/task_reward", "outcome/win_rate_ema", "outcome/pass_rate"}
    | {"outcome/throughput", "outcome/eval_reward"}
    | {"reward/trained_mean", "reward/mean", "reward/step", "language/filtered_reward"}
)


ALGORITHM_WORDS = frozenset(
    {
        *("q", "ql", "qlearning", "sarsa", "montecarlo", "dyna", "reinforce", "vpg"),
        *("dqn", "ddqn", "d3qn", "drqn", "qrdqn", "iqn", "c51", "rainbow", "bcq", "cql", "iql"),
        *("ppo", "ppo2", "a2c", "a3c", "acer", "acktr", "actorcritic", "policygradient", "trpo"),
        *("ddpg", "td3", "sac", "tqc", "droq", "redq", "dreamer", "mcts", "cem", "neat"),
        *("qmix", "vdn", "maddpg", "mappo", "ippo", "coma", "ucb", "ucb1", "thompson"),
    }
)


@lru_cache(maxsize=4096)
def meaning(key: str) -> tuple[int, Metric] | None:
    """Return the outcome that a key names, with its rank (0: most trusted), else None."""
    if len(key) > 60:  # a longer key is no name
        return None
    key = re.sub(r"[_ -](?:vs|against|versus)[_ -].*", "", languages.english(key))  # an opponent
    key = re.sub(r"[_ -](?:last|past|previous)[_ -]\d+[_ -](?:time)?steps?\Z", "", key)  # a window
    # Of a file: reward_log.csv. A logarithm has the word in front.
    terms = _terms(re.sub(r"[_ -]logs?\Z", "", key, flags=re.IGNORECASE))
    # A number identifies an agent or an environment ("0_reward"), unless it is a window's.
    windows = {
        *("last", "avg", "average", "mean", "running", "moving", "rolling", "smoothed"),
        *("ma", "window"),
    }
    if re.search(r"(?<![A-Za-z])\d", key) and terms.isdisjoint(windows):
        return None
    terms -= NOISE_WORDS
    if "/" in key:  # what holds the key: "training_progress/episode_rewards"
        parent_terms = _terms(key.rpartition("/")[0])
        terms -= parent_terms & {"progress", "log", "data", "result", "record"}
        if "reward" in parent_terms:
            terms -= {"r"}  # the parts of a reward: "rewards/r_total" is their sum
    evaluated, whole_episodes = bool(terms & EVALUATION_WORDS), bool(terms & EPISODE_WORDS)
    outcome_terms = frozenset(terms - EVALUATION_WORDS - EPISODE_WORDS)
    if "correct" in outcome_terms:
        outcome_terms -= {"example", "answer", "question", "sample", "response", "solution"}
    if outcome_terms not in OUTCOME_PAIRS or (outcome_terms == {"r"} and whole_episodes):
        return None
    trained, tested = OUTCOME_PAIRS[outcome_terms]
    if trained is outcome.REWARD and whole_episodes:
        trained = outcome.RETURN
    return [*OUTCOME_PAIRS].index(outcome_terms), tested if evaluated else trained


def _likely_meaning(key: str) -> Metric | None:
    """Return the outcome that a key names beside other words: of a language, a run, a file."""
    key = languages.english(key)
    terms = _terms(key)
    if len(key) > 60 or terms & PART_WORDS:
        return None
    outcome_terms = _terms(key.rpartition("/")[2]) & {"reward", "return", "score"}
    if len(outcome_terms) != 1:
        return None
    trained, tested = OUTCOME_PAIRS[frozenset(outcome_terms)]
    if terms & EVALUATION_WORDS:
        return tested
    return outcome.RETURN if terms & EPISODE_WORDS else trained


def _population_mean(keys: Iterable[str]) -> dict[str, str]:
    """Return the mean that stands beside a best or a worst of the same: of episodes, of a swarm."""
    terms = {key: _terms(languages.english(key)) for key in keys}
    extremes = {"best", "worst", "max", "min", "maximum", "minimum"}
    if not any(key_terms and key_terms <= extremes for key_terms in terms.values()):
        return {}
    means = {"avg", "average", "mean"}
    return {key: outcome.REWARD.name for key, t in terms.items() if t and t <= means}


def _terms(key: str) -> set[str]:
    """Return the words of a key in lower case and in the singular."""
    terms = (term.lower() for term in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", key))
    kept = {"loss", "success", "fitness", "progress"}
    return {term if term in kept else term.removesuffix("s") for term in terms if term != "s"}


def _keys_by_algorithm(keys: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {algorithm: {name below it: key}} for keys below an algorithm's name, in order."""
    by_algorithm: dict[str, dict[str, str]] = {}
    for key in keys:
        parent, _, name = key.rpartition("/")
        if re.sub(r"[^a-z0-9]", "", parent.lower()) in ALGORITHM_WORDS:
            by_algorithm.setdefault(parent, {})[name] = key
    return by_algorithm


def choose(keys: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
    """Choose a key for each outcome; return {metric: (key, the other candidate keys)}.

    Chooses at most one outcome of training and one of evaluation. Without any, a key with an
    outcome's word and others is taken where it is the only one. Of several algorithms that log
    below their names the first is judged.
    """
    ranked: dict[bool, list[tuple[int, str, str]]] = {}
    names = list(dict.fromkeys(keys))
    for key in names:
        if match := meaning(key):
            rank, metric = match
            ranked.setdefault("eval" in metric.name, []).append((rank, metric.name, key))
    if not ranked:
        likely = {key: guess.name for key in names if (guess := _likely_meaning(key))}
        likely = likely or _population_mean(names)
        if len(likely) == 1:
            return {name: (key, []) for key, name in likely.items()}
        by_name, *other_algorithms = [*_keys_by_algorithm(names).values()] or [{}]
        choices = choose(by_name) if other_algorithms else {}
        return {
            metric: (by_name[name], [keys[name] for keys in other_algorithms if name in keys])
            for metric, (name, _) in choices.items()
        }
    picked = {}
    for candidates in ranked.values():
        # The first of equals, but "win%" before "wins".
        _, name, key = min(candidates, key=lambda c: (c[0], "%" not in c[2]))
        picked[name] = (key, [other_key for _, _, other_key in candidates if other_key != key])
    return picked
