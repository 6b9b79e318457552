"""Choose the step of each row of W&B's history.

W&B counts calls of `log()` as `_step`. What trainers mean by a step is, in this order:

1. for the keys that `define_metric(keys, step_metric=...)` names, that metric;
2. for all others one column of the whole run: one of `KNOWN`, where the first row past step 0
   has it;
3. else `_step`.

A row that lacks its step column stands at the column's last value, as W&B fills it in. The choice
needs no row but those before it: reading on as a file grows gives what reading it at once gives.
"""

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats.columns import MAX_STEP
from rlvitals.readers.wandb.rows import Rows
from rlvitals.startup.fast_dataclass import dataclass

# Names that count steps from the start of a run and nothing else; what they count.
STEP_COLUMN_UNITS = {
    "global_step": "steps",  # W&B's copy of TensorBoard's step; CleanRL and many more
    "trainer/global_step": "updates",  # Lightning
    "train/global_step": "updates",  # Hugging Face's Trainer
    "training/global_step": "updates",  # verl
    "total_timesteps": "environment steps",
    "time/total_timesteps": "environment steps",  # Stable-Baselines3
    "timesteps_total": "environment steps",  # RLlib
    "num_timesteps": "environment steps",
    "num_env_steps": "environment steps",
    "total_env_steps": "environment steps",
    "env_steps": "environment steps",
    "env_step": "environment steps",
    "train/env_steps": "environment steps",  # Sample Factory
    "Cumulative Timesteps": "agent steps",  # rlgym-ppo
    "agent_steps": "agent steps",  # PufferLib, before 2.0 below "0verview/"
    "0verview/agent_steps": "agent steps",
    "total_steps": "steps",
    "training_step": "steps",
    "train_step": "steps",
    "trainer_step": "steps",
}
WANDB_STEP = "_step"
Steps = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepChoice:
    """The step columns chosen so far."""

    main: str | None = None  # the column for most keys; None: not known yet
    defined: Mapping[str, str] = field(default_factory=dict)  # key or pattern -> its step metric
    last: Mapping[str, int] = field(default_factory=dict)  # last value of each step column

    @property
    def unit(self) -> str:
        """Unit of the main step column."""
        return STEP_COLUMN_UNITS.get(self.main or WANDB_STEP, "steps")

    def define(self, keys: str, metric: str) -> "StepChoice":
        """Return the choice after `define_metric(keys, step_metric=metric)`."""
        return replace(self, defined={**self.defined, keys: metric})

    def metric_of(self, key: str) -> str:
        """Return the step metric that is defined for a key, "" for none; its own name wins."""
        if key in self.defined:
            return self.defined[key]
        globs = [k for k in self.defined if k.endswith("*") and key.startswith(k[:-1])]
        return self.defined[globs[-1]] if globs else ""


class RowSteps:
    """The steps of some rows, column by column."""

    def __init__(self, rows: Rows, previous: StepChoice) -> None:
        """Choose the main column where that is still open."""
        self._rows = rows
        wandb_steps, self.good = self._dense(WANDB_STEP)
        self._own = np.where(self.good, wandb_steps, 0)
        metrics = dict.fromkeys(metric for metric in previous.defined.values() if metric)
        candidates = [name for name in STEP_COLUMN_UNITS if name in rows.numbers]
        columns = dict.fromkeys([*metrics, *candidates])
        self._columns = {name: self._dense(name) for name in columns if name in rows.numbers}
        main = self._choose(candidates) if previous.main is None else previous.main
        last = dict(previous.last)
        for name in {*metrics, main or WANDB_STEP} & self._columns.keys():
            values, has = self._columns[name]
            if has.any():
                last[name] = int(values[has][-1])
        self.choice = replace(previous, main=main, last=last)
        self._before = previous
        self._filled: dict[str, Steps] = {}

    def of(self, key: str) -> Steps:
        """Return the step of every row for a key: int64 [rows]."""
        metric = self.choice.metric_of(key)
        name = metric if metric and metric != key else self.choice.main or WANDB_STEP
        if name not in self._filled:
            self._filled[name] = self._fill(name)
        return self._filled[name]

    def _dense(self, name: str) -> tuple[Steps, NDArray[np.bool_]]:
        """Return a column over all rows, and where it holds a whole number."""
        values = np.zeros(self._rows.count, np.int64)
        has = np.zeros(self._rows.count, bool)
        row_numbers, numbers = self._rows.numbers.get(name, (np.zeros(0, np.int64), np.zeros(0)))
        is_integer = (np.abs(numbers) <= MAX_STEP) & (numbers == np.floor(numbers))
        values[row_numbers[is_integer]] = numbers[is_integer].astype(np.int64)
        has[row_numbers[is_integer]] = True
        return values, has

    def _choose(self, candidates: list[str]) -> str | None:
        """Let the first row decide that does not stand at 0 in any case."""
        for row in np.flatnonzero(self.good).tolist():
            present = [name for name in candidates if self._columns[name][1][row]]
            if present and (self._own[row] or self._columns[present[0]][0][row]):
                return present[0]
            if self._own[row]:
                return WANDB_STEP
        return None

    def _fill(self, name: str) -> Steps:
        if name == WANDB_STEP:
            return self._own
        values, has = self._columns.get(name) or self._dense(name)
        newest = np.maximum.accumulate(np.where(has, np.arange(len(has)), -1))
        first = self._before.last.get(name)
        if first is None and name != self.choice.main:  # nothing yet: as the other keys
            start = self._fill(self.choice.main or WANDB_STEP)
        else:
            start = np.full(len(values), first or 0, np.int64)
        return np.where(newest >= 0, values[newest], start)
