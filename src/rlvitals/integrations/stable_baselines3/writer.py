"""Output format for Stable-Baselines3's logger that writes into a run."""

import math
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.logger import HParam, KVWriter

from rlvitals.integrations import hook_facts
from rlvitals.metrics.frameworks import sb3

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Writer(KVWriter):
    """An output format of Stable-Baselines3's logger that writes into a run.

    `Record` adds one by itself. Alone: `model.set_logger(Logger(folder, [Writer(run)]))`.
    """

    def __init__(self, run: "Run") -> None:
        """Write into `run`; closing the logger does not finish it."""
        self.run = run
        hook_facts.record_framework(run, sb3.NAMES.framework)
        self.skipped: set[str] = set()  # keys of figures, images, videos: noted once each

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Record the numbers, texts and hyperparameters of one dump of the logger."""
        numbers: dict[str, Any] = {}
        for key, value in key_values.items():
            if "rlvitals" in key_excluded.get(key, ()):  # for the logger's `exclude=`
                continue
            if isinstance(value, str):
                self.run.log_text(step, key, value)
            elif isinstance(value, HParam):
                self.run.update_settings(
                    {name: v for name, v in value.hparam_dict.items() if v is not None}
                )
            elif _is_number(value):
                numbers[key] = value
            elif key not in self.skipped:
                self.skipped.add(key)
                self.run.note(f"{key}: a {type(value).__name__} is not recorded")
        if numbers:
            self.run.log(step, numbers)

    def close(self) -> None:
        """Flush pending rows; the run stays open."""
        self.run.flush()


def _is_number(value: object) -> bool:
    # One-element arrays and tensors are numbers: the logger's own formats print them as such.
    shape = getattr(value, "shape", None)
    return isinstance(value, int | float) or (shape is not None and math.prod(shape) == 1)
