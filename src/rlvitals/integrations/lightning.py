"""Logger for Lightning's Trainer; the checkpoints are written into the run's folder.

    from rlvitals.integrations.lightning import Logger

    Trainer(logger=Logger("runs/one"))

Read from lightning 2.6: src/lightning/pytorch/loggers/, trainer/call.py.
"""

import sys
import traceback
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger as Base
from lightning.pytorch.loggers.logger import rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only

from rlvitals.integrations import hook_facts
from rlvitals.tracking.run import Run
from rlvitals.tracking.start import start


class Logger(Base):
    """Records the values of `self.log(...)` on rank zero.

    `folder` is the run's; `options` are those of `rlvitals.start`. The run stays open after `fit`,
    for `test`: `finish()` closes it, the end of the process too, and an exception in between is
    recorded with its traceback.
    """

    def __init__(self, folder: str | Path, **options: Any) -> None:
        """Store the options; the run starts with the first value to record."""
        super().__init__()
        self.folder = Path(folder)
        self.options = options
        self._run: Run | None = None

    @property
    def name(self) -> str:
        """Empty: Lightning puts it between `save_dir` and the checkpoints."""
        return ""

    @property
    def version(self) -> str:
        """The same."""
        return ""

    @property
    def save_dir(self) -> str:
        """The run's folder."""
        return str(self.folder)

    @property
    def log_dir(self) -> str:
        """The run's folder."""
        return str(self.folder)

    @property
    @rank_zero_experiment
    def experiment(self) -> Run:
        """The run, for texts, histograms and tables."""
        if self._run is None:
            self._run = start(self.folder, **self.options)
            hook_facts.record_framework(self._run, "lightning")  # names that are not the user's
        return self._run

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Record numbers at a step; Lightning counts optimiser steps."""
        hook_facts.record(self.experiment, step or 0, metrics)

    @rank_zero_only
    def log_hyperparams(self, params: Any = None, *_: Any, **__: Any) -> None:
        """Record the hyperparameters of `save_hyperparameters()`."""
        settings = vars(params) if isinstance(params, Namespace) else dict(params or {})
        self.experiment.update_settings(
            {str(key): hook_facts.to_json(v) for key, v in settings.items()}
        )

    @rank_zero_only
    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Record an event for a checkpoint."""
        saved = getattr(checkpoint_callback, "_last_checkpoint_saved", "")
        name = Path(saved or checkpoint_callback.best_model_path).name
        step = getattr(checkpoint_callback, "_last_global_step_saved", None)
        self.experiment.event("checkpoint", step=step, file=name)

    @rank_zero_only
    def save(self) -> None:
        """Flush pending rows."""
        if self._run is not None:
            self._run.flush()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Record the end of `fit` or `test`; an exception ends the run."""
        if self._run is None:
            return
        error = sys.exc_info()[1]
        if status == "success" or error is None:
            self._run.event("finalize", status=status)
            self._run.flush()
            return
        run_status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        self._run.finish(run_status, traceback="".join(traceback.format_exception(error)))
        self._run = None

    @rank_zero_only
    def finish(self) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()
            self._run = None
