"""Callback for TRL's trainers that records the Trainer's logs and the completions.

    from rlvitals.integrations import trl as vitals

    trainer.add_callback(vitals.Record(trainer))

With the trainer in hand the completions need no `log_completions=True`, which prints them. Where
`report_to="rlvitals"` does the recording (see `integrations/transformers.py`), they are recorded
if that is set. `Preflight` checks the first updates.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerControl, TrainerState, TrainingArguments

from rlvitals.integrations import completions, transformers
from rlvitals.integrations.transformers import Seal
from rlvitals.integrations.trl_preflight import Preflight

__all__ = ["Preflight", "Record", "Seal", "register"]

register = transformers.register


class Record(transformers.Record):
    """Records a TRL trainer's run, with the completions of each row that it logs.

    `every` keeps those of one row in so many; 0 keeps none. `folder` and `options` are those of
    the Trainer's callback.
    """

    def __init__(
        self, trainer: Any, folder: str | Path | None = None, *, every: int = 1, **options: Any
    ) -> None:
        """Store the trainer; nothing is written before training starts."""
        super().__init__(folder, **options)
        self.trainer = trainer
        self.every = every
        self._logged = 0

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record a row and the samples of the last generation."""
        super().on_log(args, state, control, logs, **kwargs)
        self._unread = None  # the completions are in memory
        batch = getattr(self.trainer, "_logs", None)
        if self.run is None or not batch or "train_runtime" in (logs or {}):
            return
        self._logged += 1
        if self.every and self._logged % self.every == 0 and batch["prompt"]:
            cells = completions.from_memory(batch)
            self.run.log_table(state.global_step, completions.TABLE_NAME, cells)
