"""Callback for trainers built on Hugging Face's Trainer that records into the output folder.

    from rlvitals.integrations import transformers as vitals

    vitals.register()  # once; from then on: TrainingArguments(..., report_to="rlvitals")

or hand `vitals.Record(...)` to `Trainer(callbacks=[...])`. What the Trainer logs is recorded
under the names it gives them, all its arguments are settings, a person's wish to save or to
stop reaches it, and its checkpoints are sealed: `rlvitals.resume_from(args)` finds the newest that
is whole. Read from transformers 5.23: src/transformers/trainer.py, trainer_callback.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import integration_utils
from transformers.trainer_utils import SaveStrategy

from rlvitals.checkpoints import accelerate_group
from rlvitals.integrations import completions, hook_facts
from rlvitals.integrations.transformers_seal import Seal
from rlvitals.tracking.requests import NO_REQUESTS
from rlvitals.tracking.run import Run
from rlvitals.tracking.start import start

__all__ = ["Record", "Seal", "register"]


def register() -> None:
    """Register the callback for `report_to="rlvitals"`; call it before creating the Trainer."""
    integration_utils.INTEGRATION_TO_CALLBACK["rlvitals"] = Record


class Record(TrainerCallback):
    """Records a Trainer's run on world process zero.

    `folder` is the Trainer's `output_dir` where none is given; `options` are those of
    `rlvitals.start`. Each `train()` is a separate attempt, and so is an evaluation after it.
    A `run` that is open already is recorded into, and left open. Checkpoints are sealed by `seal`,
    a `Seal` that says which of them are kept; False: they are left as the Trainer writes them.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        run: Run | None = None,
        seal: Seal | bool = True,
        **options: Any,
    ) -> None:
        """Store the options of `rlvitals.start`; nothing is written before training starts."""
        self.folder = folder
        self.options = options
        self.run = run
        self.seal = Seal() if seal is True else seal or TrainerCallback()
        self._given = run is not None
        self._training = False
        self._stopping = False  # as soon as a checkpoint is saved
        self._unread: int | None = None  # the step whose completions TRL is about to write

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start an attempt; finish one that an exception left open as failed."""
        self._finish("failed")
        self._training, self._stopping = True, False
        run = self._ensure_run(args, state, kwargs.get("model"))
        if run is not None and self._given:
            hook_facts.record_framework(run, hook_facts.framework(args))
            run.update_settings(hook_facts.read_settings(args, state, kwargs.get("model")))
        if run is not None:
            run.event("train_begin", step=state.global_step, max_steps=state.max_steps)
        if isinstance(self.seal, Seal):
            self.seal.run = run
        self.seal.on_train_begin(args, state, control, **kwargs)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Hand on to the checkpoints."""
        self.seal.on_step_begin(args, state, control, **kwargs)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Hand on to the checkpoints."""
        self.seal.on_epoch_begin(args, state, control, **kwargs)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Hand on to the checkpoints."""
        self.seal.on_epoch_end(args, state, control, **kwargs)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record the numbers and texts of a row."""
        self._take_completions(args)
        run = self._ensure_run(args, state, kwargs.get("model"))
        if run is None or not logs:
            return
        self._record(run, state, logs)
        # TRL writes the last step's file once more with the row that ends a training.
        if getattr(args, "log_completions", False) and "train_runtime" not in logs:
            self._unread = state.global_step

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Read the completions of training before an evaluation overwrites their file."""
        self._take_completions(args)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Finish the run of an evaluation outside of training; `on_log` recorded the numbers."""
        self._take_completions(args)
        if not self._training:
            self._finish("finished")

    def on_predict(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record the metrics of `predict()`, which the Trainer does not log."""
        run = self._ensure_run(args, state, kwargs.get("model"))
        if run is not None:
            self._record(run, state, metrics or {})
        if not self._training:
            self._finish("finished")

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Seal a checkpoint and record an event for it; stop if a stop was pending."""
        self.seal.on_save(args, state, control, **kwargs)
        control.should_training_stop = control.should_training_stop or self._stopping
        if self.run is not None:
            self.run.event(
                "checkpoint", step=state.global_step, folder=f"checkpoint-{state.global_step}"
            )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Apply external requests: save a checkpoint now, stop once it is saved, a lower rate."""
        self._take_completions(args)
        if args.world_size > 1 and not control.should_log:
            # Agree at logging steps only: agreement costs a message.
            save, stop, rate_factor = False, False, 1.0
        else:
            requests = NO_REQUESTS if self.run is None else self.run.requests()
            answer = requests.save, requests.stop, requests.rate_factor
            save, stop, rate_factor = accelerate_group.broadcast(answer, args.world_size)
        if rate_factor < 1:
            # Now and in the schedule that is left, which is saved with it.
            optimizer = kwargs["optimizer"]
            scheduler = kwargs["lr_scheduler"]
            scheduler = getattr(scheduler, "scheduler", scheduler)  # accelerate wraps it
            for name in ("base_lrs", "_last_lr"):  # the second one is what the Trainer logs
                if hasattr(scheduler, name):
                    setattr(
                        scheduler, name, [rate * rate_factor for rate in getattr(scheduler, name)]
                    )
            for group in optimizer.param_groups:
                group["lr"] *= rate_factor
        saves = args.save_strategy != SaveStrategy.NO
        self._stopping = self._stopping or (stop and saves)
        control.should_save = control.should_save or save or (stop and saves)
        control.should_training_stop = control.should_training_stop or (stop and not saves)
        self.seal.on_step_end(args, state, control, **kwargs)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Finish the attempt after the last step or a requested stop."""
        self._take_completions(args)
        self._training = False
        self.seal.on_train_end(args, state, control, **kwargs)
        if self.run is not None:
            best = {} if state.best_metric is None else {"best_metric": float(state.best_metric)}
            self.run.event("train_end", step=state.global_step, max_steps=state.max_steps, **best)
        self._finish("finished")

    def _ensure_run(
        self, args: TrainingArguments, state: TrainerState, model: object
    ) -> Run | None:
        """Return the run, starting it if needed; None on every process but the first."""
        if self.run is None and state.is_world_process_zero:
            # This is the default of TrainingArguments.project.
            options = {
                "name": args.run_name or None,
                "project": None if args.project == "huggingface" else args.project,
                "seed": args.seed,
                "settings": hook_facts.read_settings(args, state, model),
                **self.options,
            }
            home = Path(self.folder or args.output_dir)
            self.run = start(
                home / str(state.trial_name) if state.is_hyper_param_search else home, **options
            )
            hook_facts.record_framework(self.run, hook_facts.framework(args))
        return self.run

    def _record(self, run: Run, state: TrainerState, logs: Mapping[str, Any]) -> None:
        tokens = state.num_input_tokens_seen
        hook_facts.record(run, state.global_step, logs, **({"tokens": tokens} if tokens else {}))

    def _take_completions(self, args: TrainingArguments) -> None:
        """Record the completions of the last row; TRL writes their file after `on_log`."""
        step, self._unread = self._unread, None
        if step is None or self.run is None:
            return
        cells, problem = completions.from_file(Path(args.output_dir), step)
        if cells:
            self.run.log_table(step, completions.TABLE_NAME, cells)
        else:
            self.run.note(problem)

    def _finish(self, status: str) -> None:
        if self.run is not None and not self._given:
            self.run.finish(status)
            self.run = None
