"""The checkpoints of Hugging Face's Trainer, sealed as they are written.

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

BETWEEN = "the place within a step, where SIGTERM came,"


class Seal(TrainerCallback):
    """Seals each checkpoint that a Trainer writes, and keeps those worth keeping.

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
        """Keep what is to be kept; nothing is written before training begins."""
        self.keep, self.keep_best, self.keep_every = keep, keep_best, keep_every
        self.keep_healthy, self.health, self._tell = keep_healthy, health, tell
        self.run: Run | None = None  # that is being recorded beside
        self.checkpoints: HuggingFaceCheckpoints | None = (
            None  # on world process zero, while training
        )
        self._progress: progress.Keeper | None = None
        self._limit: int | None = None  # the Trainer's own
        self._off = False
        self._cuts: grpo_boundaries.Generations | None = None
        self._there: set[int] = set()  # steps that have a folder, which a save would write into
        self._before: frozenset[int] = frozenset()  # those of earlier attempts
        self._waits = self._evaluates = False
        self._since = 0  # the last step sealed
        self._loader: Any = None
        self._passes = 0  # how often this process has begun the data

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take over which checkpoints are kept; mend what a resume loses."""
        self._off = state.is_hyper_param_search  # each trial has a folder of its own
        if self._off:
            return
        step, loader = state.global_step, kwargs.get("train_dataloader")
        self._since, self._waits, self._loader, self._passes = step, False, loader, 0
        self._cuts = grpo_boundaries.of(args, loader, step)
        if args.save_total_limit is not None:
            self._limit, args.save_total_limit = args.save_total_limit, None
        if state.is_world_process_zero:
            self.checkpoints = self._made(args)
            self.checkpoints.goes_on_from(step)
            self._progress = progress.Keeper(args.output_dir, state.max_steps, tell=self._tell)
            self._progress.update(step)
            if self.run is not None:
                self.run.at_finish(self._broke_off)
        there = [one for one in naming.find_checkpoints(Path(args.output_dir)) if one > step]
        self._there = set(accelerate_group.broadcast(there, args.world_size))
        self._before = frozenset(self._there)
        self._find_best(args, state)
        begun = step // (data_order.steps(loader, args.gradient_accumulation_steps) or step + 1)
        if data_order.restore(loader, begun):
            self._say(f"the order of the data is that of epoch {begun + 1} again")
        self._say_what_is_saved(args, state)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count how often the data is begun."""
        self._passes += 1

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Put back what made way for a save that did not come."""
        if self.checkpoints is not None:
            self.checkpoints.show()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Let a save wait for the end of its generation, and make way for it."""
        if self._off:
            return
        self._wait(args, state, control)
        self._look_for_room(args, state, control)
        self._make_way(args, state)
        if self._progress is not None:
            self._progress.update(state.global_step)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Make way for a save at the end of an epoch, if its step has been saved already."""
        if control.should_save and not self._off:
            self._look_for_room(args, state, control)
            self._make_way(args, state)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Seal what was written, once all processes have written their part."""
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
        """Seal what was saved without a word (on SIGTERM), and say how it ended."""
        if self._limit is not None:
            args.save_total_limit, self._limit = self._limit, None
        if args.enable_jit_checkpoint:
            accelerate_group.wait_for_all(args.world_size)
        if self.checkpoints is None:
            return
        self.checkpoints.show()
        if args.enable_jit_checkpoint:
            self._seal_what_was_saved_unsaid(args, state)
        self._leave(args, state, kwargs.get("model"))
        self.checkpoints = self._progress = self._loader = None

    def _seal_what_was_saved_unsaid(self, args: TrainingArguments, state: TrainerState) -> None:
        """Seal what was saved on SIGTERM: no event tells of it."""
        for step in (state.global_step - 1, state.global_step):
            folder = naming.checkpoint_path(Path(args.output_dir), step)
            written = folder.is_dir() and not (folder / naming.MANIFEST_FILE).exists()
            if written and step not in self._before:
                self._seal(args, state, step, BETWEEN)

    def _leave(self, args: TrainingArguments, state: TrainerState, model: object) -> None:
        """Write the end of the training into the run's folder."""
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
            over = state.global_step >= state.max_steps
            self._progress.finish(progress.COMPLETED if over else progress.STOPPED)

    def _broke_off(self, status: str) -> None:
        """Say that a training ended without its end: by an exception, or with its process."""
        kept, self._progress = self._progress, None
        if kept is not None:
            kept.finish(progress.FAILED if status == "failed" else progress.STOPPED)

    def _made(self, args: TrainingArguments) -> HuggingFaceCheckpoints:
        run, settings = self.run, huggingface.training_arguments(args)
        folder, size = Path(args.output_dir), int(args.world_size)
        note = None if run is None else run.note
        who, attempt = ("", 0) if run is None else (run.id, run.attempt)
        best = self.keep_best
        if best is None and args.metric_for_best_model:
            name = str(args.metric_for_best_model)
            name = name if name.startswith("eval_") else f"eval_{name}"
            best = Best(name, "max" if args.greater_is_better else "min")
        return HuggingFaceCheckpoints(
            FolderOwner(folder, who, attempt, size, settings, note),
            keep=self.keep or self._limit or KEEP_ALL,
            keep_best=best,
            keep_every=self.keep_every,
            keep_healthy=self.keep_healthy,
            health=None if self.health is None else self._judged,
            tell=self._tell,
        )

    def _seal(self, args: TrainingArguments, state: TrainerState, step: int, *lost: str) -> None:
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
        if args.hub_token is not None and (folder / huggingface_root.ARGUMENTS).exists():
            with suppress(OSError):  # a checkpoint is copied and shared
                huggingface_root.write_arguments(folder, args)
        told = {
            "weights_only": args.save_only_model,
            "not_saved": [*lost, *self._not_saved(args, step)],
        }
        best = {state.best_global_step} if state.best_global_step else set()
        sealed = checkpoints.seal(
            step, metrics=self._metrics(state), facts=told, shielded=frozenset(best)
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

    def _judged(self, step: int) -> str:
        """Ask for the health of a step; a diagnosis that fails ends no training."""
        try:
            return str(self.health(step)) if self.health is not None else ""
        except Exception as error:  # noqa: BLE001 - whatever a person's function raises
            self._say(f"the health of step {step:,} is not known: {error!r}")
            return ""

    def _metrics(self, state: TrainerState) -> dict[str, float]:
        """Return what was logged since the last checkpoint, the newest of each."""
        found: dict[str, Any] = {}
        for row in state.log_history:
            if row["step"] > self._since:
                found |= {k: v for k, v in row.items() if type(v) is float or isinstance(v, Real)}
        known = {key: float(value) for key, value in found.items() if key != "step"}
        return {key: value for key, value in known.items() if isfinite(value)}

    def _not_saved(self, args: TrainingArguments, step: int) -> list[str]:
        found = []
        if self._cuts is not None and not self._cuts.ends_at(step):
            found.append(grpo_boundaries.UNFINISHED)
        if getattr(args, "sync_ref_model", False) and getattr(args, "beta", 0.0):
            found.append(grpo_boundaries.REFERENCE)
        return found + data_order.lost(args, self._loader, step, self._passes)

    def _wait(self, args: TrainingArguments, state: TrainerState, control: TrainerControl) -> None:
        """Put a save off to the end of its generation, with the evaluation it goes by."""
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

    def _look_for_room(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl
    ) -> None:
        """Leave out a save that the disk cannot take: the Trainer would end by its error."""
        if control.should_save:
            room = self.checkpoints is None or self.checkpoints.has_room(state.global_step)
            control.should_save = accelerate_group.broadcast(room, args.world_size)

    def _make_way(self, args: TrainingArguments, state: TrainerState) -> None:
        if state.global_step in self._there:
            self._there.discard(state.global_step)
            if self.checkpoints is not None:
                self.checkpoints.hide(state.global_step)
            accelerate_group.wait_for_all(args.world_size)

    def _find_best(self, args: TrainingArguments, state: TrainerState) -> None:
        """Find the best checkpoint in a folder that was moved: the Trainer keeps its old path."""
        if not state.best_global_step:
            return
        own = naming.checkpoint_path(Path(args.output_dir), state.best_global_step)
        why = ""
        if self.checkpoints is not None:
            try:
                manifests.verify(own)
            except manifests.NotSealed:
                why = "" if own.is_dir() else "it is not there"
            except (BadCheckpoint, CannotResume) as error:
                why = error.problem
        why = accelerate_group.broadcast(why, args.world_size)
        if why:
            self._say(
                f"the best checkpoint so far, {own.name}, cannot be used ({why}): "
                "the best of what comes is loaded at the end, if it is better"
            )
        state.best_model_checkpoint = None if why else str(own)

    def _say_what_is_saved(self, args: TrainingArguments, state: TrainerState) -> None:
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
        """Tell a person, from one process."""
        if self.checkpoints is not None:
            self.checkpoints.tell(text)
