"""What goes along with a Trainer: the line of progress, the judge, and a gentle end."""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import SaveStrategy

import rlvitals
from rlvitals.trainers.health_monitor import Judge
from rlvitals.trainers.language.console import Lines, Progress
from rlvitals.trainers.language.usage import Usage
from rlvitals.trainers.signal_handlers import Stopping


class Following(TrainerCallback):
    """Shows how far a training is, judges it now and then, and ends it after a step when asked.

    A signal saves first: at the end of the generation that is learned from. `skip_empty` leaves
    out an optimizer step whose gradient is exactly zero, so that Adam's momentum moves nothing.
    """

    def __init__(  # noqa: PLR0913 - what goes along, each by its name
        self,
        lines: Lines,
        progress: Progress,
        stopping: Stopping,
        judge: Judge | None,
        run: rlvitals.Run | None,
        *,
        usage: Usage,
        skip_empty: bool,
    ) -> None:
        """Follow nothing yet. Other processes than the first have no judge and no run."""
        self._log, self._progress, self._stopping = lines.log, progress, stopping
        self._judge, self._run, self._skip_empty = judge, run, skip_empty
        self._usage = usage
        self._asked = False  # by a signal, on any process
        self.skipped = 0  # optimizer steps

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin where the training does."""
        self._progress.begin(state.global_step, state.max_steps)
        if state.global_step >= state.max_steps:
            self._log.info("it was trained to its end: more --max-steps or --num-epochs go on")
        if self._judge is not None:
            self._judge.plan(state.global_step, state.max_steps)
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
        if not self._agreed(args, control):
            return
        if args.save_strategy == SaveStrategy.NO:
            control.should_training_stop = True
        else:
            control.should_save = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Say that a checkpoint stands, and stop where that was waited for."""
        self._log.info("✓ Checkpoint saved: checkpoint-%d", state.global_step)
        if self._asked:
            control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge the run as it stands, not too often."""
        if self._judge is None or self._run is None or not self._judge.due(state.global_step):
            return
        self._run.flush()
        self._judge.judge(state.global_step)

    def _agreed(self, args: TrainingArguments, control: TrainerControl) -> bool:
        """Whether a signal came: the same answer on every process, at the steps that log."""
        local_stop = self._stopping.asked is not None
        if args.world_size == 1:
            self._asked = local_stop
        elif control.should_log:
            flag = torch.tensor([local_stop], dtype=torch.int32, device=args.device)
            torch.distributed.all_reduce(flag)
            self._asked = bool(flag)
        return self._asked
