"""A Trainer callback: progress, live diagnosis, and a graceful stop."""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import SaveStrategy

import rlvitals
from rlvitals.trainers.health_monitor import HealthMonitor
from rlvitals.trainers.language.console import LogFiles, Progress
from rlvitals.trainers.language.usage import Usage
from rlvitals.trainers.signal_handlers import SignalHandler


class ProgressCallback(TrainerCallback):
    """Shows how far a training is, judges it now and then, and ends it after a step when asked.

    A signal saves first: at the end of the generation that is learned from. `skip_empty` leaves
    out an optimizer step whose gradient is exactly zero, so that Adam's momentum moves nothing.
    """

    def __init__(  # noqa: PLR0913 - what goes along, each by its name
        self,
        lines: LogFiles,
        progress: Progress,
        stopping: SignalHandler,
        monitor: HealthMonitor | None,
        run: rlvitals.Run | None,
        *,
        usage: Usage,
        skip_empty: bool,
    ) -> None:
        """Follow nothing yet. Other processes than the first have no judge and no run."""
        self._log, self._progress, self._stopping = lines.log, progress, stopping
        self._monitor, self._run, self._skip_empty = monitor, run, skip_empty
        self._usage = usage
        self._stop_requested = False  # by a signal, on any process
        self.skipped = 0  # optimizer steps

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin where the training does."""
        self._progress.begin(state.global_step, state.max_steps)
        if state.global_step >= state.max_steps:
            self._log.info("it was trained to its end: more --max-steps or --num-epochs go on")
        if self._monitor is not None:
            self._monitor.plan(state.global_step, state.max_steps)
        self._stopping.patient = True

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take the gradients away where all of them are zero."""
        if not self._skip_empty:
            return
        model: torch.nn.Module = kwargs["model"]
        gradients = [
            parameter.grad for parameter in model.parameters() if parameter.grad is not None
        ]
        if gradients and not any(bool(grad.any()) for grad in gradients):
            model.zero_grad(set_to_none=True)
            self.skipped += 1
            self._log.debug("step %d: nothing to learn from, skipped", state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Show the step; save, or stop, where a signal came."""
        self._usage.step()
        if line := self._progress.update(state.global_step):
            self._log.info("%s", line)
        # All processes agree at logging steps.
        local_stop = self._stopping.signal_number is not None
        if args.world_size == 1:
            self._stop_requested = local_stop
        elif control.should_log:
            flag = torch.tensor([local_stop], dtype=torch.int32, device=args.device)
            torch.distributed.all_reduce(flag)
            self._stop_requested = bool(flag)
        if not self._stop_requested:
            return
        if args.save_strategy == SaveStrategy.NO:
            control.should_training_stop = True
        else:
            control.should_save = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log that a checkpoint is saved, and stop if a stop was requested."""
        self._log.info("✓ Checkpoint saved: checkpoint-%d", state.global_step)
        if self._stop_requested:
            control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Diagnose the run if a diagnosis is due."""
        if (
            self._monitor is None
            or self._run is None
            or not self._monitor.is_due(state.global_step)
        ):
            return
        self._run.flush()
        self._monitor.diagnose(state.global_step)
