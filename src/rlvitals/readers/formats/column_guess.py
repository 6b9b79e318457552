"""Which column of a hand-written log is the step, and which the time: told by their names.

step = step_key(names)             # "train/global_step", or None
time = seconds("2026-01-31 10:00:00")
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from rlvitals.readers.formats.columns import parse_number

# In order of trust: the first that a log has is its step. Then what one of them is.
ENVIRONMENT = (
    "global_step",
    "total_timesteps",
    "timesteps_total",
    "num_timesteps",
    "timesteps",
    "timestep",
    "total_env_steps",
    "num_env_steps",
    "env_steps",
    "env_step",
    "environment_steps",
    "actor_steps",  # Acme's shared counter
    "frames",
    "num_frames",
    "total_frames",
    "totalenvinteracts",
    "total_env_interacts",
    "time_steps",
)
PLAIN = (
    "step",
    "steps",
    "_step",
    "total_steps",
    "training_step",
    "train_step",
    "trainer_step",
)
UPDATES = (
    "update",
    "updates",
    "num_updates",
    "n_updates",
    "update_step",
    "gradient_steps",
)
ITERATIONS = ("iteration", "iterations", "iter", "training_iteration", "itr", "it")
EPOCHS = ("epoch", "epochs")
EPISODES = ("episode", "episodes", "num_episodes", "episode_num", "ep", "game", "games")
GENERATIONS = ("generation", "generations", "gen")  # of an evolution strategy
STEPS = (*ENVIRONMENT, *PLAIN, *ITERATIONS, *UPDATES, *EPOCHS, *EPISODES, *GENERATIONS)
# Beside an episode's number these are its length.
LENGTHS = ("steps", "timesteps", "timestep", "frames", "num_frames")
UNITS = {
    # CleanRL and its kin count environment steps as global_step, Lightning updates.
    **dict.fromkeys(ENVIRONMENT[1:], "environment steps"),
    **dict.fromkeys(UPDATES, "updates"),
    **dict.fromkeys(ITERATIONS, "iterations"),
    **dict.fromkeys(EPOCHS, "epochs"),
    **dict.fromkeys(EPISODES, "episodes"),
    **dict.fromkeys(GENERATIONS, "generations"),
}
TIMES = ("_timestamp", "timestamp", "wall_time", "walltime", "time", "datetime", "date")
# A table with one of these words in a column's name is a training log, step or no step.
MEASURES = re.compile(
    r"(?:^|[^a-z])(?:loss|rewards?|returns?|kl|entropy|grad|accuracy|acc|scores?"
    r"|fitness|profits?|win_?rate)"
    r"(?:[^a-z]|$)"
)
# Files of results beside a run's: "eval_scores", "test-rewards", "results_table".
ASIDE = re.compile(r"(?:eval|evaluation|test|val|validation|baseline|random)[_ -]|.*table")
SECONDS = (1e8, 1e10)  # since the epoch: from 1973 to 2286
MILLISECONDS = (1e11, 1e13)


def plain(name: str) -> str:
    """Return a name as people would say it: "Train/Global Step" is "global_step"."""
    last = re.split(r"[/.]", name.strip())[-1].strip().lower()
    return re.sub(r"[ \-]+", "_", last)


def _by_rank(names: Iterable[str], ranks: tuple[str, ...]) -> list[str]:
    known = [(ranks.index(word), name) for name in names if (word := plain(name)) in ranks]
    return [name for _, name in sorted(known, key=lambda pair: pair[0])]


def step_keys(names: Iterable[str]) -> list[str]:
    """Return the step-like names, the most trusted first."""
    found = _by_rank(names, STEPS)
    if any(plain(name) in EPISODES for name in found):
        found.sort(key=lambda name: plain(name) in LENGTHS)
    return found


def time_key(names: Iterable[str]) -> str | None:
    """Return the name that may hold wall times, None where there is none."""
    return next(iter(_by_rank(names, TIMES)), None)


def step_unit(name: str) -> str:
    """Return what one step of this column is."""
    return UNITS.get(plain(name), "steps")


def is_measure(name: str) -> bool:
    """Tell whether a name is one that training logs use for what they measure."""
    return MEASURES.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) is not None


def is_curve(name: str) -> bool:
    """Tell whether a file's name is a measure's of training: no evaluation's, no table's."""
    return is_measure(name) and ASIDE.match(name.lower()) is None


def seconds(value: str | float) -> float | None:
    """Return a wall time in seconds since the epoch, None for what is none (a duration).

    Numbers are seconds or milliseconds since the epoch; text is ISO 8601, UTC where it names
    no zone.
    """
    if isinstance(value, str):
        try:
            number = parse_number(value) or 0.0
        except ValueError:
            return _iso(value)
    else:
        number = value
    if SECONDS[0] <= number < SECONDS[1]:
        return float(number)
    return number / 1000.0 if MILLISECONDS[0] <= number < MILLISECONDS[1] else None


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
