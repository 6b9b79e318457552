"""Run the training of a language model: resume or start, train, log, save."""

import time
from dataclasses import replace
from math import inf
from pathlib import Path

import torch
from transformers import PrinterCallback, set_seed

import rlvitals
from rlvitals.integrations import trl as vitals
from rlvitals.trainers import lock, schema
from rlvitals.trainers.health_monitor import HealthMonitor
from rlvitals.trainers.language import (
    chat_template,
    console,
    data,
    evaluate_model,
    factory,
    models,
    nan_guard,
    presets,
    rewards,
    sharded_models,
)
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.generate import Policy
from rlvitals.trainers.language.image_check import ImageCheck
from rlvitals.trainers.language.language_harness import ERROR_SHARE_METRIC, LanguageHarness
from rlvitals.trainers.language.modes import BatchResult, ModesTrainer
from rlvitals.trainers.language.schedule import Schedule
from rlvitals.trainers.language.trl_callback import ProgressCallback


class Training(LanguageHarness):
    """A training in its folder. `run` trains to the end and returns its status.

    Raises UsageError for settings that do not fit each other, the model or the data.
    """

    def __init__(self, config: Config) -> None:
        """Build everything; with several processes, each builds its own."""
        folder = factory.folder(config)
        # Before the model: ZeRO-3 shares it out as it is loaded.
        self.args = factory.arguments(config, folder)
        sharded_models.check(self.args, config.signal)
        first = self.args.process_index == 0
        if first:
            lock.check(folder)
        self.config = config
        # Before a model is loaded, which takes minutes.
        data.check(config.data)
        factory.sinks(config.monitoring, "", config.training.mode)
        self.configured_rewards = self._reward_functions(()) if config.rewards.functions else []
        self.titles: dict[str, str] = {}  # of the reward functions, by name
        self._shown = -inf  # when a generation was shown last, on the monotonic clock
        super().__init__(folder, config.monitoring, first=first)

    def train(self) -> str:
        """Load, resume and train."""
        config = self.config
        set_seed(config.training.seed)
        seed = config.training.seed
        base = self.folder / models.BASE_FOLDER
        dataset = data.find(config.data, self.log.info)  # before a model is loaded for nothing
        self.begin_usage(config, seed)  # before weights are fetched
        with self.args.main_process_first(local=False):  # a tiny model is made once
            models.prepare(config.model, seed=seed, base=base, tell=self.log.info)
        loaded = models.load(config.model, seed=seed, base=base, tell=self.log.info)
        if threads := config.training.threads or (1 if loaded.tiny else 0):
            torch.set_num_threads(threads)
        task = data.load(config.data, vision=loaded.vision, seed=seed, dataset=dataset)
        notes = chat_template.check(config.data, loaded, task)
        factory.check_samples(self.args, len(task.train))
        # A run may be moved.
        changed = schema.list_changes(
            self.folder / factory.LANGUAGE_CONFIG_FILE, config, besides=("training.output_dir",)
        )
        if self.first:
            with lock.acquire(self.folder):
                self._record()
            for note in (*task.notes, *notes):
                self.log.warning("%s: %s", task.name, note)
            started = [line] if (line := presets.line(config)) else []
            for text in (*started, *console.heading(config, len(task.train))):
                self.log.info("%s", text)
        trainer = self._trainer(loaded, task)
        checkpoint = self._find_checkpoint(changed)
        if self.first:  # what was refused is not what this run is trained with
            schema.write(self.folder / factory.LANGUAGE_CONFIG_FILE, config)
        with nan_guard.translate_errors(self.folder):
            trainer.train(resume_from_checkpoint=checkpoint)
        self.end_usage(trainer.state.global_step)
        self.stopping.check()
        if trainer.state.global_step < trainer.state.max_steps:
            return "stopped"
        trainer.save_model()
        return "finished"

    def _find_checkpoint(self, changed: list[str]) -> str | None:
        """Return the checkpoint to resume from. Raises VitalsError for one of another training."""

        def check(checkpoint: Path) -> None:
            sharded_models.check_resume(self.args, checkpoint)
            factory.check_weights(changed, str(checkpoint))

        fresh = self.fresh or not self.config.checkpointing.resume
        resume_path = rlvitals.resume_from(
            self.args, tell=self._tell, check=check, fresh=fresh,
            require_resume=self.require_resume,
        )  # fmt: skip
        if resume_path and changed:
            self._tell(f"settings changed: {'; '.join(changed)}")
        return resume_path

    def _record(self) -> None:
        """Begin to record, on the first process."""
        config, name = self.config, factory.fill_name(self.config.monitoring.run_name, self.config)
        self.recorder = rlvitals.start(
            self.folder, name=name, project=config.monitoring.wandb_project,
            seed=config.training.seed, settings=factory.flat(config),
            sinks=factory.sinks(config.monitoring, name, config.training.mode),
            tags=(config.training.mode,),
        )  # fmt: skip

    def _trainer(self, loaded: models.Loaded, task: data.Task) -> ModesTrainer:
        config = self.config
        reward_functions = self.configured_rewards or self._reward_functions(task.rewards)
        self.titles = {reward.name: reward.title for reward in reward_functions}
        self.args.reward_weights = rewards.weights(config.rewards, reward_functions)
        trainer = ModesTrainer(
            model=loaded.model, args=self.args, reward_funcs=reward_functions,
            train_dataset=task.train,
            processing_class=loaded.processor, peft_config=loaded.lora, mode=config.training.mode,
            signal=config.signal, correctness=config.rewards.correctness,
            on_batch=self._log_generation,
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)  # its dicts are in the file
        trainer.add_callback(Schedule(self._tell))
        judge = self._judge()
        trainer.add_callback(
            ProgressCallback(
                self.lines, self.progress, self.stopping, judge, self.recorder,
                usage=self.usage, skip_empty=config.signal.skip_empty_steps,
            )
        )  # fmt: skip
        if (check := self._image_check(trainer, loaded, task)) is not None:
            trainer.add_callback(check)
        every = config.monitoring.completions_every if config.monitoring.log_completions else 0
        health = None if judge is None else judge.health
        seal = vitals.Seal(keep=config.checkpointing.keep or None, health=health, tell=self._tell)
        trainer.add_callback(vitals.Record(trainer, every=every, run=self.recorder, seal=seal))
        return trainer

    def _image_check(
        self, trainer: ModesTrainer, loaded: models.Loaded, task: data.Task
    ) -> ImageCheck | None:
        """Return the check of the images; None without images, or with several processes."""
        checks = self.config.checks
        steps, questions = checks.image_check_steps, checks.image_check_questions
        has_images = "image" in task.train.column_names and self.args.world_size == 1
        if not (has_images and steps and questions):
            return None
        training = self.config.training
        policy = Policy(
            trainer.model, loaded.processor, training.temperature, training.max_completion_length
        )
        return ImageCheck(
            trainer, policy, task.train, evaluate_model.judge(self.config, task.rewards),
            questions, steps,
            evaluate_model.TINY_BATCH_SIZE if loaded.tiny else training.batch_size,
            self.log.info,
        )  # fmt: skip

    def _reward_functions(self, default: tuple[str, ...]) -> list[rewards.Reward]:
        reward_functions = rewards.functions(
            self.config.rewards, default, failed=self.record_failure
        )
        return [
            *reward_functions[:-1],
            replace(
                reward_functions[-1], last=lambda n: {ERROR_SHARE_METRIC: self.pop_failed_share(n)}
            ),
        ]

    def _judge(self) -> HealthMonitor | None:
        seconds = self.config.monitoring.diagnose_seconds
        if not (self.first and seconds):
            return None
        return HealthMonitor(self.folder, every=seconds, total_steps=0, tell=self.log_diagnosis)

    def _tell(self, text: str) -> None:
        self.log.info("[checkpoint] %s", text)

    def _log_generation(self, result: BatchResult) -> None:
        """Log a generation: complete lines in the file, short ones on the console."""
        mode, lambda_psr = self.config.training.mode, self.config.signal.lambda_psr
        line = console.batch_line(mode, result, lambda_psr, self.args.reward_weights)
        paid = [(self.titles.get(name, name), row) for name, row in result.rewards.items()]
        lines = [line, *(console.reward_line(title, row) for title, row in paid)]
        clock_s = time.monotonic()
        if clock_s - self._shown < self.config.monitoring.console_seconds:
            self.lines.write(lines)
            return
        self._shown = clock_s
        short = [
            line,
            *(console.reward_line(title, row, console.MAX_CONSOLE_REWARDS) for title, row in paid),
        ]
        self.log.info("%s", "\n".join(lines), extra={"short": "\n".join(short)})
