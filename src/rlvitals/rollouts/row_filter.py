"""Select and sort rollouts by their columns, without opening a sample."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError, nearest
from rlvitals.rollouts.rollout_columns import Rollouts, hash_text
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which rollouts to keep; None and an empty text keep all."""

    step: int | None = None
    task: str = ""
    group: str = ""
    stop_reason: str = ""
    error: str | None = None  # a part of the error's text; "": any error
    min_reward: float | None = None
    max_reward: float | None = None


def select(rollouts: Rollouts, chosen: Filter) -> NDArray[np.int64]:
    """Return the indices of the rollouts that a filter keeps, in order. Raises UsageError."""
    rows = rollouts.rows
    mask = np.ones(len(rollouts), np.bool_)
    if chosen.step is not None:
        mask &= rows["step"] == check_step(rollouts, chosen.step, "--step")
    for name, text in (("task", chosen.task), ("stop_reason", chosen.stop_reason)):
        if text:
            has_text = rollouts.text_is(name, text)
            if not has_text.any():
                numbers = np.unique(rows[name]).tolist()
                texts = sorted(filter(None, (rollouts.texts[number] for number in numbers)))
                raise UsageError(
                    f"no rollout has {text!r}",
                    where=f"--{name.replace('_', '-')}",
                    hint=nearest(text, texts)
                    or f"one of {', '.join(texts[:8]) or 'none is recorded'}",
                )
            mask &= has_text
    if chosen.group:
        mask &= rows["group"] == hash_text(chosen.group)
    if chosen.error is not None:
        names = [number for number, text in enumerate(rollouts.texts) if chosen.error in text]
        mask &= (rows["error"] != 0) & np.isin(rows["error"], names)
    if chosen.min_reward is not None:
        mask &= rows["reward"] >= chosen.min_reward
    if chosen.max_reward is not None:
        mask &= rows["reward"] <= chosen.max_reward
    return rollouts.indices(mask)


def check_step(rollouts: Rollouts, step: int, flag: str) -> int:
    """Return a step with rollouts. Raises UsageError that names the nearest ones."""
    steps = np.unique(rollouts.rows["step"])
    if step not in steps:
        location = int(np.searchsorted(steps, step))
        close = ", ".join(str(s) for s in steps[max(0, location - 2) : location + 2].tolist())
        raise UsageError(f"step {step} has no rollouts", where=flag, hint=f"nearest: {close}")
    return step


def sort(
    rollouts: Rollouts, indices: NDArray[np.int64], key: str, *, descending: bool = False
) -> NDArray[np.int64]:
    """Return indices in the order of a key of `SORT_KEYS`; rollouts without a number come last."""
    values = rollouts.rows[
        {"reward": "reward", "length": "characters", "turns": "turns", "step": "step"}[key]
    ][indices].astype(np.float64)
    return indices[np.argsort(-values if descending else values, kind="stable")]
