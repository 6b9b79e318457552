"""Train one run with Stable-Baselines3 and keep its log as a trace of the benchmark."""

import copy
import csv
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.fault import Clock, Injection, Onset
from rlvitals.faults.folder import Recorded
from rlvitals.faults.run_list import Planned
from rlvitals.faults.tasks import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The clock of a trace is the processor's, 60 times as fast: a run of six seconds lasts six
# minutes, as those of users do, and no other program on the machine slows it.
CLOCK_RATE = 60.0
OUTCOME_SHARE = 0.1  # the last part of a run
MIN_OUTCOME_EPISODES = 10
BEST_BLOCKS = 20  # of a run: the best mean of a block is its best


def record(run: Planned) -> tuple[Recorded, str]:
    """Train a run; return its entry and its log as CSV text. Requires the extra `record`."""
    import torch

    torch.set_num_threads(1)
    task = run.task
    onset = task.steps // 2 if run.onset is Onset.MIDDLE else 0
    injection = Injection(Clock(onset))
    if run.fault:
        find_fault(run.fault).inject(injection)
    model, settings = _model(run, injection)
    rows: list[dict[str, Any]] = []
    episodes: list[tuple[int, float]] = []
    ended = _train(model, task, injection, rows, episodes)
    recorded = Recorded(
        name=run.name,
        task=task.name,
        algorithm=task.algorithm,
        env_id=task.env_id,
        fault=run.fault,
        about=find_fault(run.fault).about if run.fault else "",
        variant=run.variant,
        onset=onset if run.fault else None,
        seed=run.seed,
        steps=task.steps,
        settings=settings,
        ended=ended,
        **_measure_outcome(episodes, task.steps),
    )
    return recorded, _as_csv(rows)


def _model(run: Planned, injection: Injection) -> tuple[Any, dict[str, Any]]:
    import stable_baselines3 as sb3
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    task = run.task
    # Stable-Baselines3 writes into the `policy_kwargs` that it is given.
    options = copy.deepcopy({**task.options, **injection.options})
    anneal, resumed = options.pop("anneal", False), options.pop("resumed", 0)
    if (share := options.get("learning_starts", 0)) and share < 1:
        options["learning_starts"] = round(share * task.steps)
    settings = {
        "algorithm": task.algorithm,
        "env_id": task.env_id,
        "n_envs": task.n_envs,
        "total_timesteps": task.steps,
        **{key: value for key, value in options.items() if isinstance(value, int | float)},
    }
    rate = options["learning_rate"]
    if anneal:
        options["learning_rate"] = lambda remaining: rate * remaining
    envs = [_environment(task, injection, 1000 * run.seed + i) for i in range(task.n_envs)]
    env: Any = DummyVecEnv(envs)
    if task.normalised:
        env = VecNormalize(env, gamma=options.get("gamma", 0.99))
    algorithm = getattr(sb3, task.algorithm)
    model = algorithm("MlpPolicy", env, seed=run.seed, device="cpu", **options)
    if resumed:
        model.learn(resumed)
    return model, settings


def _environment(task: Task, injection: Injection, seed: int) -> Callable[[], Any]:
    def make() -> Any:
        import gymnasium as gym
        from stable_baselines3.common.monitor import Monitor

        from rlvitals.faults.faulty_envs import TrueReturn

        env: Any = TrueReturn(gym.make(task.env_id, disable_env_checker=True))
        if injection.world is not None:
            env = injection.world(env, injection.clock, seed)
        return Monitor(env)

    return make


def _train(
    model: Any,
    task: Task,
    injection: Injection,
    rows: list[dict[str, Any]],
    episodes: list[tuple[int, float]],
) -> str:
    """Train; return "finished", or the last line of the exception that ended the run."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter, Logger

    clock = injection.clock

    class Follow(BaseCallback):
        def _on_step(self) -> bool:
            clock.steps = self.num_timesteps
            if injection.change is not None and clock.struck:
                injection.change(self.model)
                injection.change = None
            infos = self.locals["infos"]
            paid = [info["true_return"] for info in infos if "true_return" in info]
            episodes.extend((clock.steps, value) for value in paid)
            return True

    class Keep(KVWriter):
        def write(self, key_values: Mapping[str, Any], *_: Any) -> None:
            rows.append(dict(key_values))

        def close(self) -> None:
            """Nothing is open."""

    model.set_logger(Logger(None, [Keep()]))
    with _processor_clock():
        try:
            model.learn(task.steps, Follow(), log_interval=task.log_interval)
        except ValueError as error:  # what torch raises for a distribution with NaN parameters
            return f"ValueError: {str(error).splitlines()[0][:100]}"
    return "finished"


class _processor_clock:  # noqa: N801 - used as a with-statement, like contextlib's own
    """Replace the clock of Stable-Baselines3 by processor time."""

    def __enter__(self) -> None:
        import time

        self.own = time.time_ns
        time.time_ns = lambda: int(CLOCK_RATE * time.process_time_ns())

    def __exit__(self, *_: object) -> None:
        import time

        time.time_ns = self.own


def _as_csv(rows: list[dict[str, Any]]) -> str:
    columns = sorted({key for row in rows for key in row})
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        # As a console prints; halves the size.
        writer.writerow(
            {
                key: str(value) if isinstance(value, int) else f"{float(value):.6g}"
                for key, value in row.items()
            }
        )
    return text.getvalue()


def _measure_outcome(episodes: list[tuple[int, float]], steps: int) -> dict[str, float | None]:
    """Return the true returns at the start, at best, and at the end."""
    import numpy as np

    if not episodes:
        return {"first": None, "best": None, "outcome": None}
    step_values, paid = (np.array(column, float) for column in zip(*episodes, strict=True))

    def returns_in(low: float, high: float) -> "NDArray[np.float64]":
        return paid[(step_values > low * steps) & (step_values <= high * steps)]

    last = returns_in(1.0 - OUTCOME_SHARE, 1.0)
    last = last if len(last) >= MIN_OUTCOME_EPISODES else paid[-MIN_OUTCOME_EPISODES:]
    first = returns_in(0.0, OUTCOME_SHARE)
    first = first if len(first) >= MIN_OUTCOME_EPISODES else paid[:MIN_OUTCOME_EPISODES]
    blocks = [returns_in(i / BEST_BLOCKS, (i + 1) / BEST_BLOCKS) for i in range(BEST_BLOCKS)]
    best = max((float(block.mean()) for block in blocks if len(block)), default=None)
    return {
        "first": round(float(first.mean()), 3),
        "best": None if best is None else round(best, 3),
        "outcome": round(float(last.mean()), 3),
    }
