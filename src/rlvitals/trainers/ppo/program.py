"""Run a PPO training: resume or start, train, log, save."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch

import rlvitals
from rlvitals.lab import quantity
from rlvitals.trainers import full_disk
from rlvitals.trainers.harness import RESUME_HINT, Harness
from rlvitals.trainers.health_monitor import HealthMonitor
from rlvitals.trainers.ppo import (
    chunks,
    console,
    demonstrations,
    factory,
    held_out_evaluation,
    normaliser_warmup,
    presets,
    telemetry,
    warm_start,
)
from rlvitals.trainers.ppo.cluster import ID as CLUSTER
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.environments import Step
from rlvitals.trainers.ppo.events import Events
from rlvitals.trainers.ppo.rollout import Rollout


class Training(Harness):
    """A training in its folder. `run` trains to the end and returns its status.

    `source` is where its settings were read, to be remembered. Raises UsageError for settings that
    do not fit each other or the environment.
    """

    def __init__(self, config: Config, *, verbose: bool = False, source: str = "") -> None:
        """Build everything; nothing is written before it is known to fit."""
        chunks.check(config)
        self.best = held_out_evaluation.best(config)
        self.config = config
        torch.set_num_threads(config.training.threads)
        self.ppo = factory.build(config)
        self.ppo.on_step = self._on_step
        folder, total = Path(config.training.output_dir), config.training.total_steps
        folder.mkdir(parents=True, exist_ok=True)
        self.bar = console.Bar(total, enabled=config.monitoring.progress_bar)
        super().__init__(folder, console.logger(folder, self.bar, total, verbose=verbose))
        actions = 0 if self.ppo.envs.continuous else self.ppo.envs.actions
        self.recorder = rlvitals.start(
            self.folder, seed=config.training.seed,
            settings=factory.flat(config) | ({"n_actions": actions} if actions else {}),
            sinks=factory.sinks(config.monitoring, actions),
            columns=telemetry.columns(
                config, self.ppo, evaluated=held_out_evaluation.is_enabled(config)
            ),
        )  # fmt: skip
        factory.write(config, self.folder)
        self.chunks = (
            chunks.Chunks(self.ppo, config.training.chunk_size, self.folder, self.log)
            if config.training.chunk_mode
            else None
        )
        self.keeper = self._keeper(source)
        self.monitor = HealthMonitor(
            self.folder, every=config.training.diagnose_seconds, total_steps=total,
            tell=self.log_diagnosis,
        )  # fmt: skip
        self.held_out = held_out_evaluation.Evaluator(self.ppo, config, self.recorder, self.log)
        self.events = Events(self.ppo, self.recorder, self.log, config.monitoring)
        self.checkpoints = self._checkpoints()
        self._saved = -1  # the step of the last checkpoint
        self._length = config.ppo_config.rollout_length  # of the next rollout
        self.log.info(telemetry.init_line(config, self.ppo))
        if preset_line := presets.line(config):
            self.log.info(preset_line)

    def train(self) -> str:
        """Resume or warm-start, settle the statistics, and learn."""
        resumed = self._resume()
        if not resumed or self.config.warm_start.force_warmstart:
            self._warm_start()
        config = self.config.statistics_stabilization
        for progress in normaliser_warmup.warm_up(self.ppo, config):
            self._log_warmup(
                f"step={progress.step}/{progress.steps} - collecting baseline statistics"
            )
            if progress.is_last:
                stats = telemetry.normaliser_numbers(self.ppo)
                steps = quantity(progress.steps, "step")
                self._log_warmup(f"Completed! Normalizer statistics collected over {steps}")
                self._log_warmup(
                    f"Final normalizer stats - mean_magnitude={stats['obs_norm_mean']:.4f}, "
                    f"std_magnitude={stats['obs_norm_std']:.4f}"
                )
                self._log_warmup("Transitioning to PPO training mode")
                if self.config.statistics_stabilization.collect_baseline_stats:
                    self.recorder.log(
                        0, {f"baseline/{name}": v for name, v in progress.baseline.items()}
                    )
        self.held_out.begin()
        self.keeper.update(self.ppo.global_step)
        self.monitor.begin(self.ppo.global_step)
        return self.learn()

    def log_interruption(self) -> None:
        """Log the checkpoint to resume from."""
        self.log.warning("[PPO:stopped] %s: %s", self._newest(), RESUME_HINT)

    def log_failure(self, error: Exception, trace: str, level: int) -> None:
        """Log the error, and the checkpoint to resume from."""
        self.log.log(level, "[PPO:failed] %s", error)
        self.log.debug("%s", trace)
        self.log.info("[PPO:failed] %s: %s", self._newest(), RESUME_HINT)

    def end(self, status: str, trace: str, problem: str) -> None:
        """Close the environments, and record how it ended wherever that is kept."""
        with suppress(Exception):  # the error that ended the training is the one to report
            self.ppo.envs.close()
        # How `training_progress.json` calls the ends that a recorder knows.
        outcome = {"finished": "completed", "failed": "failed"}.get(status, "stopped")
        if self.chunks is not None:
            self.chunks.end_chunk(outcome)
        self.keeper.finish(outcome, problem)
        self.recorder.finish(status, traceback=trace)
        self.bar.close()
        console.close(self.log)

    # -- the stages ------------------------------------------------------------------------------

    def _resume(self) -> bool:
        """Resume from the newest complete checkpoint; return False if there is none."""
        if self.checkpoints is None:
            if self.require_resume:
                raise rlvitals.CannotResume(
                    "checkpoints are off", hint="--enable, or no --require-resume"
                )
            return False
        resumed = self.checkpoints.restore(
            self.ppo.state().load, fresh=self.fresh, require_resume=self.require_resume
        )
        if resumed is None:
            return False
        self.log.info("[Resume] %s", resumed.sentence)
        self.ppo.normalise_obs.moments.keep_separate()
        self._saved = self.ppo.global_step
        if self.chunks is not None:
            self.chunks.repeat_status()
        if self.ppo.global_step >= self.ppo.total_steps:
            self.log.info("[Resume] it was trained to its end: --total-steps takes it further")
        return True

    def _warm_start(self) -> None:
        config = self.config.warm_start
        if config.skip_warmstart:
            return
        if config.external_pretrain:
            warm_start.load(self.ppo, Path(config.external_pretrain))
            self.log.info("[PPO:warmstart] weights of %s", config.external_pretrain)
        elif self.config.training.env == CLUSTER:
            self._clone()
        else:
            self.log.info("[PPO:warmstart] no scheduler plays %s", self.config.training.env)
            return
        self.ppo.optimizer.adam.state.clear()  # in a resumed run it is another actor's
        if config.hold_to_reference:
            self.ppo.hold_to_reference()

    def _clone(self) -> None:
        config = self.config.warm_start
        if config.demo_path:
            demos = demonstrations.load(Path(config.demo_path))
        else:
            demos = demonstrations.collect(
                self.config.environment, policies=config.demo_policies, steps=config.demo_steps,
                loads=config.demo_loads, seed=self.config.training.seed,
            )  # fmt: skip
        self.log.info("[PPO:warmstart] %d decisions of %s", len(demos), ", ".join(demos.names))
        for result in warm_start.clone(self.ppo, demos, config):
            is_logged = result.epoch in {1, config.bc_epochs} or result.epoch % 10 == 0
            self.log.log(
                logging.INFO if is_logged else logging.DEBUG,
                "[PPO:warmstart] epoch=%d/%d loss=%.4f accuracy=%.3f (the commonest action: %.3f)",
                result.epoch, config.bc_epochs, result.current.loss, result.current.accuracy,
                result.blind.accuracy,
            )  # fmt: skip
            self.recorder.event("warm_start", 0, epoch=result.epoch, **asdict(result.current))
            if result.epoch == config.bc_epochs:
                self.log.info("[PPO:warmstart] %s", result.verdict())
                if self.chunks is not None:
                    self.chunks.cloning = result
        warm_start.save(self.ppo, self.folder / warm_start.PRETRAINED_FILE)

    def _log_warmup(self, text: str) -> None:
        self.log.info("[STATS_STABILIZATION] %s", text)

    def learn(self) -> str:
        """Learn until the end, or until someone asks for it; returns how it ended."""
        ppo, chunks = self.ppo, self.chunks
        self.stopping.patient = True
        metrics: dict[str, float] = {}
        started = time.monotonic()
        while ppo.global_step < ppo.total_steps:
            if chunks is not None:
                self._length = chunks.length()
            rollout, stats = ppo.iterate(self._length)
            metrics = telemetry.numbers(ppo, rollout, stats)
            metrics |= self._tell(rollout, metrics)
            if chunks is not None:
                chunks.after(rollout, metrics)
            self._judge()
            requests = self.recorder.requests()
            if reason := self._why_save(requests, metrics):
                self._save(reason, metrics)
            if chunks is not None and chunks.is_complete:
                chunks.end_chunk("completed")
            self.stopping.check()
            if requests.stop:
                self.log.info(
                    "[PPO:stopped] at step %d, as asked: %s", ppo.global_step, RESUME_HINT
                )
                return "stopped"
        self._save("the end", metrics)
        seconds = time.monotonic() - started
        self.log.info(
            "[PPO:end] step=%d after %.0f s of learning: rlvitals diagnose %s", ppo.global_step,
            seconds, self.folder,
        )  # fmt: skip
        return "finished"

    # -- what goes along -------------------------------------------------------------------------

    def _on_step(self, steps_done: int, step: Step) -> None:
        length = self._length
        # Log four lines of each rollout.
        if steps_done % max(length // 4, 1) == 0:
            global_step = self.ppo.global_step + steps_done * self.ppo.envs.count
            reward = float(step.rewards.mean())
            self.log.debug(telemetry.rollout_line(global_step, steps_done, length, reward))

    def _tell(self, rollout: Rollout, metrics: Mapping[str, float]) -> dict[str, float]:
        """Log and record an update; return the evaluation's metrics, if there was one."""
        step = self.ppo.global_step
        recorded = telemetry.select_metrics(metrics, self.config.monitoring)
        self.log.info(telemetry.update_line(step, metrics), extra={"step": step})
        evaluated = self.held_out.after_update()
        self.recorder.log(step, recorded | evaluated)
        self.events.after(rollout, metrics)
        self.bar.update(step, metrics)
        self.keeper.update(step)
        return evaluated

    def _judge(self) -> None:
        """Diagnose the run if a diagnosis is due."""
        step = self.ppo.global_step
        if self.monitor.is_due(step):
            self.recorder.flush()
            self.monitor.diagnose(step)

    # -- progress and checkpoints ----------------------------------------------------------------

    def _keeper(self, source: str) -> rlvitals.lab.Keeper:
        facts = {} if self.chunks is None else self.chunks.facts()
        if self.config.training.env == CLUSTER:
            cluster = self.config.cluster
            facts |= {"num_replicas": cluster.replicas, "qps": factory.qps(self.config)}
        keeper = rlvitals.lab.Keeper(
            self.folder, self.ppo.total_steps, tell=self.log.warning, config_file=source,
            external_pretrain=self.config.warm_start.external_pretrain, **facts,
        )  # fmt: skip
        if self.chunks is not None:
            self.chunks.keeper = keeper
        return keeper

    def _checkpoints(self) -> rlvitals.Checkpoints | None:
        config = self.config.checkpointing
        if not config.enable:
            return None
        return rlvitals.Checkpoints(
            self.recorder,
            every=config.interval,
            keep=config.keep,
            keep_best=self.best,
            keep_every=config.keep_every or None,
            keep_healthy=config.keep_healthy,
            health=self.monitor.health,
            tell=lambda text: self.log.info("[PPO:checkpoint] %s", text),
        )

    def _why_save(self, requests: rlvitals.lab.Requests, metrics: Mapping[str, float]) -> str:
        """Return why a checkpoint is to be saved now; empty where none is."""
        ranked = "" if self.best is None else self.best.metric
        reasons = (
            (requests.save or requests.stop, "asked for"),
            (self.stopping.signal_number is not None, "interrupted"),
            (self.chunks is not None and self.chunks.is_complete, "the end of a chunk"),
            (self.checkpoints is not None and self.checkpoints.due(self.ppo.global_step), "due"),
            (ranked.startswith("eval_") and ranked in metrics, "evaluated"),
        )
        return next((reason for holds, reason in reasons if holds), "")

    def _save(self, reason: str, metrics: Mapping[str, float] | None = None) -> None:
        step = self.ppo.global_step
        if self.checkpoints is None or step == self._saved:
            return
        state = self.ppo.state()
        with self.checkpoints.save(step, metrics=metrics) as folder:
            state.save(folder)
        if not full_disk.is_saved(self.checkpoints, step, last=step >= self.ppo.total_steps):
            return
        self._saved = step
        self.keeper.update(step, latest_checkpoint=f"checkpoint-{step}")
        self.log.info("[PPO:checkpoint] step=%d saved (%s)", step, reason)

    def _newest(self) -> str:
        """Log the checkpoint to resume from."""
        try:
            checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        except rlvitals.CannotResume:
            return "the newest checkpoint cannot be read"
        return (
            "no checkpoint yet"
            if checkpoint is None
            else f"the newest checkpoint is {checkpoint.folder.name}"
        )
