"""Recognise names that tell runs apart: the algorithm, the seed, the environment.

split_label("dqn_rewards")     # ("dqn", "rewards")
split_label("seed_3/returns")  # ("seed_3", "returns")
measure_name("scores_dueling_dqn_cartpole")  # "scores"
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rlvitals.metrics.outcome_words import ALGORITHM_WORDS
from rlvitals.readers.formats import column_guess

# In the name of a variant, beside an algorithm's: "double_dqn", "expected_sarsa".
VARIANT_WORDS = frozenset({"double", "dueling", "vanilla", "expected", "noisy", "per"})
# What is compared with the runs: it does not learn.
BASELINE_WORDS = frozenset({"baseline", "random", "heuristic"})
NUMBERED_WORDS = frozenset({"seed", "run", "trial", "experiment", "exp", "repetition", "rep"})
ENVIRONMENT_WORDS = frozenset(
    {
        *("cartpole", "lunarlander", "lunar", "lander", "mountaincar", "mountain", "car"),
        *("acrobot", "pendulum", "frozenlake", "taxi", "cliffwalking", "blackjack", "walker"),
        *("bipedalwalker", "bipedal", "carracing", "breakout", "pong", "atari", "snake", "maze"),
        *("gridworld", "halfcheetah", "cheetah", "hopper", "walker2d", "ant", "humanoid"),
        *("reacher", "swimmer", "flappybird", "flappy", "bird", "mario", "tetris", "hardcore"),
        *("continuous", "discrete", "env", "seeds", "runs", "trials"),
    }
)
LABEL_TOKEN = re.compile(r"[^\W_]+")


@lru_cache(maxsize=4096)
def split_label(key: str) -> tuple[str, str]:
    """Split a name into the words that tell runs apart and the others, each joined by "_"."""
    joined = r"(q|monte|actor|policy)[ _-]?(learning|carlo|critic|gradient)"
    tokens = LABEL_TOKEN.findall(re.sub(joined, r"\1\2", key.lower()))
    is_label = [
        token in ALGORITHM_WORDS or token in BASELINE_WORDS or _has_number(tokens, i)
        for i, token in enumerate(tokens)
    ]
    if any(is_label):
        is_label = [
            is_own or token in VARIANT_WORDS for is_own, token in zip(is_label, tokens, strict=True)
        ]
    label = [token for is_own, token in zip(is_label, tokens, strict=True) if is_own]
    remaining = [token for is_own, token in zip(is_label, tokens, strict=True) if not is_own]
    return "_".join(label), "_".join(remaining)


def _has_number(tokens: list[str], i: int) -> bool:
    """Return True for "seed" and "3" side by side, and for "seed3"."""
    word = tokens[i].rstrip("0123456789")
    if word in NUMBERED_WORDS:
        return word != tokens[i] or (i + 1 < len(tokens) and tokens[i + 1].isdigit())
    return tokens[i].isdigit() and i > 0 and tokens[i - 1] in NUMBERED_WORDS


def is_baseline(name: str) -> bool:
    """Return True if a name is that of a policy that does not learn."""
    return bool(BASELINE_WORDS & set(split_label(name)[0].split("_")))


@lru_cache(maxsize=1024)
def measure_name(stem: str) -> str:
    """Return what a file's numbers are by its name, without algorithm, environment and seed.

    "" where the name is no measure's. A curve that TensorBoard downloads is called after its tag.
    """
    if download := _split_download(stem):
        return download[1]
    if not column_guess.is_measure(stem):
        return ""
    remaining = split_label(stem)[1].split("_")
    measure = "_".join(
        token
        for token in remaining
        if token not in ENVIRONMENT_WORDS | VARIANT_WORDS and not re.fullmatch(r"v?\d+", token)
    )
    has_label = len(measure) < len("_".join(LABEL_TOKEN.findall(stem.lower())))
    return measure if has_label and column_guess.is_measure(measure) else stem


def split_curve(stem: str) -> tuple[str, str] | None:
    """Split the name of a file with one curve into run and measure; None for any other name.

    The run is "" where the name is a measure's alone: "losses", "episode_lengths".
    """
    if download := _split_download(stem):
        return download
    if not column_guess.is_curve(stem):
        side = r"(?i)(?:\w*_)?(?:eps(?:ilon)?s?|lengths?|durations?|steps|q_?values?|l(?:ea)?r\w*)"
        return ("", stem) if re.fullmatch(side, stem) else None
    return split_label(stem)


def _split_download(stem: str) -> tuple[str, str] | None:
    """Return run and tag of a curve that TensorBoard saved; its "/" are written "_"."""
    match = re.fullmatch(r"run-(.+?)-tag-(.+)", stem)
    return None if match is None else (match[1], match[2])


def rename_value(names: Sequence[str], stem: str) -> dict[str, str]:
    """Return {column: name} of a curve's table, which its file names: TensorBoard's downloads.

    Empty where the columns are others than a value, its step and its time.
    """
    values = [name for name in names if column_guess.normalise_name(name) == "value"]
    others = {*names} - {*values, *column_guess.step_keys(names), column_guess.time_key(names)}
    measure = re.sub(r"\A(rollout|train|eval|charts|losses)_", r"\1/", measure_name(stem))
    return {values[0]: measure} if len(values) == 1 and measure and not others else {}


def short_labels(paths: Iterable[str]) -> dict[str, str]:
    """Return each path without the segments that all of them begin or end with."""
    by_path = {path: path.split("/") for path in paths}
    parts = list(by_path.values())
    size = min(map(len, parts), default=0)
    start = next((i for i in range(size) if len({p[i] for p in parts}) > 1), 0)
    end = next((i for i in range(size) if len({p[-1 - i] for p in parts}) > 1), 0)
    return {path: "/".join(p[start : len(p) - end]) or path for path, p in by_path.items()}
