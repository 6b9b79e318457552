"""Callback that seals the checkpoints of Hugging Face's Trainer.

    trainer.add_callback(Seal(keep=3, keep_best="eval_loss"))

`Record` of `integrations/transformers.py` brings one along. The Trainer writes each
`checkpoint-N/` straight into its place; once every process has, its files are hashed and a
manifest is written, and only then older checkpoints may go. Read from transformers 5.23:
src/transformers/trainer.py, `_save_checkpoint`, `_maybe_log_save_evaluate`.
"""

from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import SaveStrategy

from rlvitals.checkpoints import accelerate_group, disk, huggingface, naming, progress
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.huggingface_folder import KEEP_ALL, FolderOwner, HuggingFaceCheckpoints
from rlvitals.checkpoints.manager import Health
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume
from rlvitals.checkpoints.retention import Best
from rlvitals.integrations import data_order, grpo_boundaries, huggingface_root
from rlvitals.tracking.run import Run


class Seal(TrainerCallback):
    """Seals each checkpoint that a Trainer writes, and deletes those that are not kept.

    `keep`: the newest so many (default: the Trainer's `save_total_limit`, else all). `keep_best`:
    a metric that is logged (default: `metric_for_best_model`). `keep_every`, `keep_healthy`,
    `health` and `tell` are those of `rlvitals.Checkpoints`.
    """

    def __init__(  # noqa: PLR0913 - what is kept, each by its name
        self,
        *,
        keep: int | None = None,
        keep_best: str | Best | None = None,
        keep_every: int | None = None,
        keep_healthy: bool = True,
        health: Health | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Store the options; nothing is written before training starts."""
        self.keep, self.keep_best, self.keep_every = keep, keep_best, keep_every
        self.keep_healthy, self.health, self._tell = keep_healthy, health, tell
        self.run: Run | None = None  # the run that records this training
        self.checkpoints: HuggingFaceCheckpoints | None = (
            None  # on world process zero, while training
        )
        self._progress: progress.Keeper | None = None
        self._limit: int | None = None  # the Trainer's own
        self._off = False
        self._cuts: grpo_boundaries.Generations | None = None
        self._there: set[int] = set()  # steps whose folder a save would overwrite
        self._before: frozenset[int] = frozenset()  # those of earlier attempts
        self._waits = self._evaluates = False
        self._since = 0  # the last step sealed
        self._loader: Any = None
        self._passes = 0  # passes over the data that this process started

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take over the retention of checkpoints; restore the data order of a resume."""
        self._off = state.is_hyper_param_search  # each trial has a folder of its own
        if self._off:
            return
        step, loader = state.global_step, kwargs.get("train_dataloader")
        self._since, self._waits, self._loader, self._passes = step, False, loader, 0
        self._cuts = grpo_boundaries.read_generations(args, loader, step)
        if args.save_total_limit is not None:
            self._limit, args.save_total_limit = args.save_total_limit, None
        if state.is_world_process_zero:
            self.checkpoints = self._build_checkpoints(args)
            self.checkpoints.goes_on_from(step)
            self._progress = progress.Keeper(args.output_dir, state.max_steps, tell=self._tell)
            self._progress.update(step)
            if self.run is not None:
                self.run.at_finish(self._finish_early)
        later_steps = [
            saved_step
            for saved_step in naming.find_checkpoints(Path(args.output_dir))
            if saved_step > step
        ]
        self._there = set(accelerate_group.broadcast(later_steps, args.world_size))
        self._before = frozenset(self._there)
        self._find_best(args, state)
        epoch = step // (data_order.steps(loader, args.gradient_accumulation_steps) or step + 1)
        if data_order.restore(loader, epoch):
            self._say(f"the order of the data is that of epoch {epoch + 1} again")
        self._report_save_policy(args, state)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the passes over the data."""
        self._passes += 1

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore a checkpoint that was hidden for a save that did not happen."""
        if self.checkpoints is not None:
            self.checkpoints.show()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Delay a save to the end of its generation, and hide an older one of its step."""
        if self._off:
            return
        self._wait(args, state, control)
        self._check_room(args, state, control)
        self._hide_older(args, state)
        if self._progress is not None:
            self._progress.update(state.global_step)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Hide an older checkpoint of the same step before a save at the end of an epoch."""
        if control.should_save and not self._off:
            self._check_room(args, state, control)
            self._hide_older(args, state)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Seal a checkpoint once all processes have written their part."""
        if self._off:
            return
        accelerate_group.wait_for_all(args.world_size)
        self._there.add(state.global_step)
        if self.checkpoints is not None:
            self._seal(args, state, state.global_step)
        accelerate_group.wait_for_all(args.world_size)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Seal checkpoints without an event (on SIGTERM), and record how training ended."""
        if self._limit is not None:
            args.save_total_limit, self._limit = self._limit, None
        if args.enable_jit_checkpoint:
            accelerate_group.wait_for_all(args.world_size)
        if self.checkpoints is None:
            return
        self.checkpoints.show()
        if args.enable_jit_checkpoint:
            # For the checkpoint that was saved on SIGTERM there was no event.
            for step in (state.global_step - 1, state.global_step):
                folder = naming.checkpoint_path(Path(args.output_dir), step)
                written = folder.is_dir() and not (folder / naming.MANIFEST_FILE).exists()
                if written and step not in self._before:
                    self._seal(args, state, step, "the place within a step, where SIGTERM came,")
        self._finish_root(args, state, kwargs.get("model"))
        self.checkpoints = self._progress = self._loader = None

    def _finish_root(self, args: TrainingArguments, state: TrainerState, model: object) -> None:
        """Write the final files into the run's folder."""
        root = Path(args.output_dir)
        last = (
            naming.checkpoint_path(root, state.global_step)
            if self._since == state.global_step
            else None
        )
        try:
            huggingface_root.finish(root, args, state, model, last)
        except OSError as error:
            self._say(f"the run's folder has not got all at the end: {error}")
        if self._progress is not None:
            is_complete = state.global_step >= state.max_steps
            self._progress.finish(progress.COMPLETED if is_complete else progress.STOPPED)

    def _finish_early(self, status: str) -> None:
        """Record that a training ended early, by an exception or with its process."""
        keeper, self._progress = self._progress, None
        if keeper is not None:
            keeper.finish(progress.FAILED if status == "failed" else progress.STOPPED)

    def _build_checkpoints(self, args: TrainingArguments) -> HuggingFaceCheckpoints:
        run, settings = self.run, huggingface.training_arguments(args)
        folder, size = Path(args.output_dir), int(args.world_size)
        note = None if run is None else run.note
        run_id, attempt = ("", 0) if run is None else (run.id, run.attempt)
        best = self.keep_best
        if best is None and args.metric_for_best_model:
            name = str(args.metric_for_best_model)
            name = name if name.startswith("eval_") else f"eval_{name}"
            best = Best(name, "max" if args.greater_is_better else "min")
        return HuggingFaceCheckpoints(
            FolderOwner(folder, run_id, attempt, size, settings, note),
            keep=self.keep or self._limit or KEEP_ALL,
            keep_best=best,
            keep_every=self.keep_every,
            keep_healthy=self.keep_healthy,
            health=None if self.health is None else self._check_health,
            tell=self._tell,
        )

    def _seal(self, args: TrainingArguments, state: TrainerState, step: int, *losses: str) -> None:
        checkpoints = self.checkpoints
        if checkpoints is None:
            return
        folder = naming.checkpoint_path(checkpoints.folder, step)
        names = [path.relative_to(folder).as_posix() for path in disk.walk_files(folder)]
        missing = huggingface.missing_files(
            names, args.world_size, weights_only=args.save_only_model, scaler=bool(args.fp16)
        )
        if missing:
            checkpoints.tell(f"{folder.name} is not sealed: it holds no {', no '.join(missing)}")
            return
        if args.hub_token is not None and (folder / "training_args.bin").exists():
            with suppress(OSError):  # a checkpoint is copied and shared
                huggingface_root.write_arguments(folder, args)
        facts = {
            "weights_only": args.save_only_model,
            "not_saved": [*losses, *self._list_losses(args, step)],
        }
        best = {state.best_global_step} if state.best_global_step else set()
        sealed = checkpoints.seal(
            step, metrics=self._metrics(state), facts=facts, shielded=frozenset(best)
        )
        if sealed is None:
            return
        self._since = step
        try:
            huggingface_root.keep(folder, checkpoints.folder, args)
        except OSError as error:
            checkpoints.tell(f"{folder.name} is not copied into the run's folder: {error}")
        if self._progress is not None:
            self._progress.update(step, latest_checkpoint=folder.name)

    def _check_health(self, step: int) -> str:
        """Return the health of a step; an exception of the diagnosis does not end training."""
        try:
            return str(self.health(step)) if self.health is not None else ""
        except Exception as error:  # noqa: BLE001 - whatever a person's function raises
            self._say(f"the health of step {step:,} is not known: {error!r}")
            return ""

    def _metrics(self, state: TrainerState) -> dict[str, float]:
        """Return the newest value of each metric logged since the last checkpoint."""
        newest: dict[str, Any] = {}
        for row in state.log_history:
            if row["step"] > self._since:
                newest |= {k: v for k, v in row.items() if type(v) is float or isinstance(v, Real)}
        numbers = {key: float(value) for key, value in newest.items() if key != "step"}
        return {key: value for key, value in numbers.items() if isfinite(value)}

    def _list_losses(self, args: TrainingArguments, step: int) -> list[str]:
        losses = []
        if self._cuts is not None and not self._cuts.ends_at(step):
            losses.append(grpo_boundaries.GENERATION_LOSS)
        if getattr(args, "sync_ref_model", False) and getattr(args, "beta", 0.0):
            losses.append(grpo_boundaries.REFERENCE_LOSS)
        return losses + data_order.list_losses(args, self._loader, step, self._passes)

    def _wait(self, args: TrainingArguments, state: TrainerState, control: TrainerControl) -> None:
        """Delay a save to the end of its generation, with the evaluation it depends on."""
        if self._cuts is None:
            return
        by_score = args.load_best_model_at_end or args.save_strategy == SaveStrategy.BEST
        if self._cuts.ends_at(state.global_step) or control.should_training_stop:
            control.should_save = control.should_save or self._waits
            control.should_evaluate = control.should_evaluate or self._evaluates
            self._waits = self._evaluates = False
            return
        self._waits, control.should_save = self._waits or control.should_save, False
        if by_score:
            self._evaluates = self._evaluates or control.should_evaluate
            control.should_evaluate = False

    def _check_room(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl
    ) -> None:
        """Skip a save without disk space: the Trainer would end with an error."""
        if control.should_save:
            room = self.checkpoints is None or self.checkpoints.has_room(state.global_step)
            control.should_save = accelerate_group.broadcast(room, args.world_size)

    def _hide_older(self, args: TrainingArguments, state: TrainerState) -> None:
        if state.global_step in self._there:
            self._there.discard(state.global_step)
            if self.checkpoints is not None:
                self.checkpoints.hide(state.global_step)
            accelerate_group.wait_for_all(args.world_size)

    def _find_best(self, args: TrainingArguments, state: TrainerState) -> None:
        """Find the best checkpoint in a moved folder: the Trainer keeps its old path."""
        if not state.best_global_step:
            return
        folder = naming.checkpoint_path(Path(args.output_dir), state.best_global_step)
        problem = ""
        if self.checkpoints is not None:
            try:
                manifests.verify(folder)
            except manifests.NotSealed:
                problem = "" if folder.is_dir() else "it is not there"
            except (BadCheckpoint, CannotResume) as error:
                problem = error.problem
        problem = accelerate_group.broadcast(problem, args.world_size)
        if problem:
            self._say(
                f"the best checkpoint so far, {folder.name}, cannot be used ({problem}): "
                "the best of what comes is loaded at the end, if it is better"
            )
        state.best_model_checkpoint = None if problem else str(folder)

    def _report_save_policy(self, args: TrainingArguments, state: TrainerState) -> None:
        if args.save_strategy == SaveStrategy.NO:
            return
        if args.save_only_model:
            self._say(
                "save_only_model: the checkpoints hold weights alone. A training cannot be "
                "resumed from them: leave it out, if this one is to survive its process"
            )
        cuts = self._cuts
        if cuts is None or args.save_strategy != SaveStrategy.STEPS or not state.save_steps:
            return
        past, every = state.global_step // state.save_steps, state.save_steps
        first = [every * (past + i) for i in (1, 2, 3, 4) if every * (past + i) < state.max_steps]
        ends = [cuts.next_end(step) for step in first]
        if first != ends:
            self._say(
                f"save_steps={every:g}, but TRL goes on exactly only where a generation ends, each "
                f"{cuts.cycle} steps: saved is at "
                f"{', '.join(f'{step:,}' for step in dict.fromkeys(ends))} ..."
            )

    def _say(self, text: str) -> None:
        """Print a message, on one process."""
        if self.checkpoints is not None:
            self.checkpoints.tell(text)
