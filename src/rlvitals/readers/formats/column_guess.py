"""Guess the step column and the time column of a log by their names.

step = step_key(names)             # "train/global_step", or None
time = seconds("2026-01-31 10:00:00")
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from rlvitals.metrics import languages
from rlvitals.readers.formats.columns import parse_number

# In order of trust: the first that a log has is its step. Then what one of them is.
ENVIRONMENT_STEPS = (
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
    "frame",
    "num_frames",
    "total_frames",
    "totalenvinteracts",
    "total_env_interacts",
    "time_steps",
    "timestepssofar",  # Baselines' PPO1 and TRPO
    "totalenvsteps",  # garage
    "num_steps_total",  # rlkit
    "number_of_env_steps_total",
    "total_timestep",  # softlearning
    "t_env",  # PyMARL
    "agent_steps",  # PufferLib
    "cumulative_timesteps",  # rlgym-ppo
)
PLAIN_STEPS = (
    "step",
    "steps",
    "_step",
    "total_steps",
    "training_step",
    "train_step",
    "trainer_step",
)
UPDATE_STEPS = (
    "update",
    "updates",
    "num_updates",
    "n_updates",
    "update_step",
    "gradient_steps",
)
ITERATION_STEPS = ("iteration", "iterations", "iter", "training_iteration", "itr", "it")
EPOCH_STEPS = ("epoch", "epochs")
EPISODE_STEPS = ("episode", "episodes", "num_episodes", "episode_num", "episode_number", "ep",
                 "ep_num", "game", "games", "num_games", "match", "matches", "trajectory", "trial",
                 "trials", "lap", "episodessofar")  # fmt: skip
GENERATION_STEPS = ("generation", "generations", "gen")  # of an evolution strategy
STEP_NAMES = (
    *ENVIRONMENT_STEPS,
    *PLAIN_STEPS,
    *ITERATION_STEPS,
    *UPDATE_STEPS,
    *EPOCH_STEPS,
    *EPISODE_STEPS,
    *GENERATION_STEPS,
    *("round", "rounds", "cycle", "season", "batch"),
    "num_steps",  # Brax; of others a setting, or the steps of an episode
)
STEP_UNITS = {
    # CleanRL and its kin count environment steps as global_step, Lightning updates.
    **dict.fromkeys(ENVIRONMENT_STEPS[1:], "environment steps"),
    **dict.fromkeys(UPDATE_STEPS, "updates"),
    **dict.fromkeys(ITERATION_STEPS, "iterations"),
    **dict.fromkeys(EPOCH_STEPS, "epochs"),
    **dict.fromkeys(EPISODE_STEPS, "episodes"),
    **dict.fromkeys(GENERATION_STEPS, "generations"),
    **dict.fromkeys(("agent_steps", "cumulative_timesteps"), "agent steps"),
    "num_steps": "environment steps",
}
# A table with one of these words in a column's name is a training log, step or no step.
MEASURE_NAME = re.compile(
    r"(?:^|[^a-z])(?:loss(?:es)?|rewards?|rew|rwd|returns?|kl|entropy|grad|accuracy|acc|scores?"
    r"|fitness|profits?|win_?rate)"
    r"(?:[^a-z]|$)"
)
# Files of results beside a run's: "eval_scores", "test-rewards", "results_table".
RESULT_FILE = re.compile(r"(?:eval|evaluation|test|val|validation|baseline|random)[_ -]|.*table")
EPOCH_SECONDS = (1e8, 1e10)  # since the epoch: from 1973 to 2286
EPOCH_MILLISECONDS = (1e11, 1e13)


def normalise_name(name: str) -> str:
    """Return a name as people would say it: "Train/Global Step" is "global_step"."""
    last = re.split(r"[/.]", languages.english(name.strip()))[-1].strip().lower()
    name = re.sub(r"[ \-]+", "_", last)
    counted = r"(episode|ep|game|epoch|iteration|generation|trial)_(?:no|nr|number)"
    return re.sub(rf"\A{counted}\Z", r"\1", name)


def _by_rank(names: Iterable[str], ranks: tuple[str, ...]) -> list[str]:
    ranked = [
        (ranks.index(short_name), name)
        for name in names
        if (short_name := normalise_name(name)) in ranks
    ]
    return [name for _, name in sorted(ranked, key=lambda pair: pair[0])]


def step_keys(names: Iterable[str]) -> list[str]:
    """Return the step-like names, the most trusted first."""
    names = [*names]
    keys = _by_rank(names, STEP_NAMES)
    is_pfrl = {"steps", "episodes", "elapsed", "mean", "median", "stdev"} <= {*names}
    if not is_pfrl and any(normalise_name(name) in EPISODE_STEPS for name in keys):
        # Beside an episode's number these are its length.
        keys.sort(
            key=lambda name: (
                normalise_name(name)
                in ("steps", "timesteps", "timestep", "frames", "num_frames", "num_steps")
            )
        )
    return keys


def time_key(names: Iterable[str]) -> str | None:
    """Return the name that may hold wall times, None where there is none."""
    return next(
        iter(
            _by_rank(
                names,
                ("_timestamp", "timestamp", "wall_time", "walltime", "time", "datetime", "date"),
            )
        ),
        None,
    )


def step_unit(name: str) -> str:
    """Return what one step of this column is."""
    return STEP_UNITS.get(normalise_name(name), "steps")


def is_measure(name: str) -> bool:
    """Return True if a name is one that training logs use for what they measure."""
    return MEASURE_NAME.search(_separate_words(name)) is not None


def is_measure_of_row(name: str) -> bool:
    """Return True if a name beside a step is one that loops use for what they measure."""
    measure = re.compile(
        r"(?:^|[^a-z])(?:avg|average|mean|best|ret|success(?:es)?|sr|wr|wins?|won|elo|regret|equity"
        r"|pnl|roi|sharpe|balance|portfolio|worth|survived|r|distance|assets?|goals|points|length|error)"
        r"(?:[^a-z]|$)"
    )
    return is_measure(name) or measure.search(_separate_words(name)) is not None


def _separate_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", languages.english(name)).lower()


def is_curve(name: str) -> bool:
    """Return True if a file's name is a measure's of training: no evaluation's, no table's."""
    return is_measure(name) and RESULT_FILE.match(name.lower()) is None


def seconds(value: str | float) -> float | None:
    """Return a wall time in seconds since the epoch, None for what is none (a duration).

    Numbers are seconds or milliseconds since the epoch; text is ISO 8601, UTC where it names
    no zone.
    """
    if isinstance(value, str):
        try:
            number = parse_number(value) or 0.0
        except ValueError:
            try:
                moment = datetime.fromisoformat(value.strip())
                return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError, OSError):
                return None
    else:
        number = value
    if EPOCH_SECONDS[0] <= number < EPOCH_SECONDS[1]:
        return float(number)
    return number / 1000.0 if EPOCH_MILLISECONDS[0] <= number < EPOCH_MILLISECONDS[1] else None
