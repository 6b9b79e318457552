"""Callback that checks a TRL trainer at its first updates.

    trainer = GRPOTrainer(...)
    trainer.add_callback(Preflight(trainer, examples=[{"prompt": ..., "right": ..., "wrong": ...}]))
    trainer.train()

The report is in `report`, is printed once, and is an event of the run that records. It is
there after the second generation. Trainers without samples of their own (SFT, DPO) have only
their weights checked, and say so.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from accelerate.utils import gather_object
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvitals.integrations import trl_checks
from rlvitals.integrations.trl_hooks import Tap, draws_samples, local
from rlvitals.sanity_checks import language
from rlvitals.sanity_checks.check import Check, Failed
from rlvitals.sanity_checks.check import Preflight as Report
from rlvitals.startup.fast_dataclass import dataclass

Stop = Literal["never", "failed", "always"]


@dataclass(frozen=True, slots=True)
class _Watched:
    """The weight of a tensor with the largest gradient, before an update."""

    index: int
    before: float
    dtype: str


class Preflight(TrainerCallback):
    """Checks a trainer's first updates and reports; training is not changed.

    `examples`: known answers, each a dict with `prompt`, `right`, `wrong` and what else the reward
    functions are handed. `skip` leaves checks out by name, of a method that means it differently:
    advantages that are not centred, for instance. `stop` ends the training when a check `failed`,
    or `always`: a rehearsal. `quiet` prints nothing.
    """

    def __init__(
        self,
        trainer: Any,
        *,
        examples: Sequence[Mapping[str, Any]] = (),
        skip: Iterable[str] = (),
        stop: Stop = "never",
        quiet: bool = False,
    ) -> None:
        """Store the options; nothing happens before training starts."""
        self.trainer = trainer
        self.examples = examples
        self.skip = frozenset(skip)
        self.stop = stop
        self.quiet = quiet
        self.report: Report | None = None
        self.tap = Tap(trainer)
        self._scored: Check | None = None
        self._moved: Check | None = None
        self._before: dict[str, _Watched] = {}
        self._rate = 0.0
        self._resumed = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Score the known answers, and install the hooks."""
        self._resumed = state.global_step
        if self.report is None and draws_samples(self.trainer):
            self._scored = trl_checks.right_beats_wrong(self.trainer, self.examples)
            self.tap.open()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Store one weight of each tensor before the update."""
        self.tap.updated = True
        self._rate = max(group["lr"] for group in kwargs["optimizer"].param_groups)
        if self._moved is None and self._rate > 0:
            model = self._model()
            largest: list[tuple[str, _Watched]] = []
            for name, tensor in model.named_parameters():
                if not tensor.requires_grad or tensor.grad is None:
                    continue
                grad = local(tensor.grad).detach().flatten()
                if not grad.numel():
                    continue
                index = int(grad.abs().argmax())
                if grad[index] != 0:
                    value = local(tensor).detach().flatten()[index].item()
                    largest.append(
                        (name, _Watched(index, value, str(tensor.dtype).removeprefix("torch.")))
                    )
            self._before = dict(largest)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check whether the weights moved; report once the sampler has used them."""
        if self.report is not None:
            return
        if self._moved is None and self._before:
            if getattr(self.trainer.accelerator, "optimizer_step_was_skipped", False):
                self._before = {}  # float16: the gradient overflowed, and the scale is lowered
            else:
                tensors = dict(self._model().named_parameters())
                weights = [
                    language.WeightChange(
                        name,
                        watched.index,
                        watched.before,
                        local(tensors[name]).flatten()[watched.index].item(),
                        watched.dtype,
                    )
                    for name, watched in self._before.items()
                ]
                self._moved = language.check_weight_changes(weights, self._rate)
                self.tap.watched = {
                    weight.tensor: weight.index
                    for weight in weights
                    if weight.before != weight.after
                }
        sampled = self.tap.second is not None or not draws_samples(self.trainer)
        if self._moved is not None and sampled:
            self._finish(state)
            failed = self.report is not None and bool(self.report.failed)
            if self.stop == "always" or (self.stop == "failed" and failed):
                control.should_training_stop = True

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Report the checks so far, if training ended before all were run."""
        if self.report is None:
            self._finish(state)

    def _model(self) -> Any:
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    def _finish(self, state: TrainerState) -> None:
        self.tap.close()
        moved = self._moved or language.check_weight_changes((), self._rate)
        checks = trl_checks.run_checks(self.tap, self._resumed, moved, self._scored)
        selected = [check for check in checks if check.name not in self.skip]
        self.report = Report(tuple(_worst(gather_object([selected]))))
        if state.is_world_process_zero:
            self._tell(self.report, state.global_step)

    def _tell(self, report: Report, step: int) -> None:
        if not self.quiet:
            sys.stderr.write(f"{report}\n")
        for callback in self.trainer.callback_handler.callbacks:
            run: Any = getattr(callback, "run", None)
            if hasattr(run, "event"):
                run.event(
                    "preflight",
                    step=step,
                    passed=[check.name for check in report.passed],
                    failed=[f"{check.name}: {check.outcome}" for check in report.failed],
                    not_checked=[check.name for check in report.unchecked],
                )


def _worst(reports: Sequence[Sequence[Check]]) -> Iterator[Check]:
    """Yield each check from the first process on which it failed, else from process 0."""
    for reports_of_check in zip(*reports, strict=True):
        yield next(
            (check for check in reports_of_check if isinstance(check.outcome, Failed)),
            reports_of_check[0],
        )
