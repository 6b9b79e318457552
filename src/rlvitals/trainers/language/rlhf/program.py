"""Run an RLHF training: resume or start, train, log, save."""

import logging
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext

import torch
from accelerate import Accelerator

import rlvitals
from rlvitals.trainers import full_disk, lock, schema
from rlvitals.trainers.health_monitor import HealthMonitor
from rlvitals.trainers.language import data
from rlvitals.trainers.language.language_harness import ERROR_SHARE_METRIC, LanguageHarness
from rlvitals.trainers.language.rlhf import factory, save_state
from rlvitals.trainers.language.rlhf.config import RLHF_CONFIG_FILE, Config
from rlvitals.trainers.language.rlhf.ppo import PPO, Update


class Training(LanguageHarness):
    """A training in its folder. `run` trains to the end and returns its status.

    Several processes each make one, and train one policy. Raises UsageError for settings that do
    not fit each other, the model or the data.
    """

    def __init__(self, config: Config) -> None:
        """Build everything."""
        self.config = config
        folder = factory.folder(config)
        self.accelerator = Accelerator(
            cpu=not torch.cuda.is_available(),
            mixed_precision="bf16" if config.rlhf.bf16 else "no",
        )
        first = self.accelerator.is_main_process
        if first:
            lock.check(folder)
        factory.check(config.rlhf, self.accelerator.num_processes)
        data.check(config.data)
        name = factory.fill_name(config.monitoring.run_name, config)
        sinks = factory.sinks(config.monitoring, name)
        super().__init__(folder, config.monitoring, first=first)
        with self.lines:  # a model may take minutes
            self.begin_usage(config, config.rlhf.seed)
            self.ppo = factory.build(
                config, folder, self.accelerator, failed=self.record_failure, tell=self.log.info
            )
        # A run may be moved.
        self.changed = schema.list_changes(
            folder / RLHF_CONFIG_FILE, config, besides=("rlhf.output_dir",)
        )
        # The others record in the same folder: the first would take them for another training.
        with (
            self.accelerator.main_process_first(),
            lock.acquire(folder) if first else nullcontext(),
        ):
            self.recorder: rlvitals.Run = self._recorder(name, sinks)
        self.monitor = HealthMonitor(
            self.folder, every=config.monitoring.diagnose_seconds if self.first else 0.0,
            total_steps=self.ppo.updates, tell=self.log_diagnosis,
        )  # fmt: skip
        self.checkpoints = self._checkpoints()
        self._saved = -1  # the update of the last checkpoint

    def train(self) -> str:
        """Resume, and go through the updates."""
        ppo = self.ppo
        for line in heading(self.config, ppo):
            self.log.info("%s", line)
        self._resume()
        self.progress.begin(ppo.counters.updates, ppo.updates)
        self.monitor.begin(ppo.counters.updates)
        self.stopping.patient = True
        started, episodes = time.monotonic(), ppo.counters.episodes
        metrics: Mapping[str, float] = {}
        while ppo.counters.updates < ppo.updates:
            update = ppo.iterate()
            self.usage.step()
            speed = (ppo.counters.episodes - episodes) / (time.monotonic() - started)
            # The share of an update's responses, of all processes, that a function failed on;
            # processes have as many responses as each other.
            share = torch.tensor(
                self.pop_failed_share(self.ppo.share), device=self.accelerator.device
            )
            metrics = {
                **update.numbers,
                "eps": speed,
                ERROR_SHARE_METRIC: float(self.accelerator.reduce(share, "mean")),
            }
            self._tell(update, metrics)
            stop = self._save_or_stop(metrics)
            self.stopping.check()
            if stop:
                return "stopped"
        self.end_usage(ppo.counters.updates)
        self._save("the end", metrics)
        if self.first:
            save_state.save_model(ppo, self.folder)
        return "finished"

    def _resume(self) -> None:
        """Resume from the newest complete checkpoint, if there is one."""
        if self.checkpoints is None:
            if self.require_resume:
                raise rlvitals.CannotResume(
                    "checkpoints are off", hint="--save-steps, or no --require-resume"
                )
            return
        resumed = self.checkpoints.restore(
            lambda folder: save_state.load(self.ppo, folder),
            fresh=self.fresh or not self.config.checkpointing.resume,
            require_resume=self.require_resume,
        )
        if resumed is None:
            return
        self._saved = self.ppo.counters.updates
        if self.changed:
            self.log.info("[checkpoint] settings changed: %s", "; ".join(self.changed))
        if self._saved >= self.ppo.updates:
            self.log.info("it was trained to its end: --total-episodes takes it further")

    # -- what goes along -------------------------------------------------------------------------

    def _tell(self, update: Update, metrics: Mapping[str, float]) -> None:
        if not self.first:
            return
        counters, monitoring = self.ppo.counters, self.config.monitoring
        if (
            counters.updates % max(monitoring.logging_steps, 1) == 0
            or counters.updates == self.ppo.updates
        ):
            self.recorder.log(counters.updates, metrics, episode=counters.episodes)
            for name, values in update.distributions.items():
                self.recorder.log_histogram(counters.updates, name, values)
            row = counters.updates // max(monitoring.logging_steps, 1)
            if monitoring.log_completions and row % max(monitoring.completions_every, 1) == 0:
                self.recorder.log_table(counters.updates, "game_log", update.table)
            is_logged = (
                counters.updates <= 3  # the first updates, then 20 of the run
                or counters.updates % max(self.ppo.updates // 20, 1) == 0
            )
            line = update_line(counters.updates, metrics)
            self.log.log(logging.INFO if is_logged else logging.DEBUG, "%s", line)
        if line := self.progress.update(counters.updates):
            self.log.info("%s", line)
        if self.monitor.is_due(counters.updates):
            self.recorder.flush()
            self.monitor.diagnose(counters.updates)

    def _save_or_stop(self, metrics: Mapping[str, float]) -> bool:
        """Save where it is due or asked for; True where someone wants the training to stop.

        What any process was asked for is done by all.
        """
        requests = self.recorder.requests()
        signalled = self.stopping.signal_number or 0
        wants = torch.tensor([requests.save, requests.stop, signalled], dtype=torch.float32)
        if self.accelerator.num_processes > 1:
            wants = self.accelerator.gather(wants[None].to(self.accelerator.device)).max(0)[0]
        save, stop, signal = (int(value) for value in wants.tolist())
        self.stopping.signal_number = signal or None
        step = self.ppo.counters.updates
        is_due = self.checkpoints is not None and self.checkpoints.due(step)
        if reason := "asked for" if save or stop else "interrupted" if signal else "due" * is_due:
            self._save(reason, metrics)
        return bool(stop)

    def _save(self, reason: str, metrics: Mapping[str, float]) -> None:
        step = self.ppo.counters.updates
        if self.checkpoints is None or step == self._saved:
            return
        with self.checkpoints.save(step, metrics=metrics) as folder:
            save_state.save(self.ppo, folder)
        if not full_disk.is_saved(self.checkpoints, step, last=step >= self.ppo.updates):
            return
        self._saved = step
        self.log.info("✓ Checkpoint saved: checkpoint-%d (%s)", step, reason)

    # -- parts -----------------------------------------------------------------------------------

    def _recorder(self, name: str, sinks: Mapping[str, Mapping[str, object]]) -> rlvitals.Run:
        config = self.config
        recorder = rlvitals.start(
            self.folder, name=name, project=config.monitoring.wandb_project,
            framework="rlvitals-rlhf",
            seed=config.rlhf.seed, sinks=sinks, tags=(factory.RLHF_MODE,),
            settings={**factory.flat(config), "total_steps": self.ppo.updates},
            resume="auto" if config.checkpointing.resume else "never",
        )  # fmt: skip
        if self.first:
            schema.write(self.folder / RLHF_CONFIG_FILE, config)
        return recorder

    def _checkpoints(self) -> rlvitals.Checkpoints | None:
        config = self.config.checkpointing
        if not config.save_steps:
            return None
        return rlvitals.Checkpoints(
            self.recorder, every=config.save_steps, keep=config.keep or sys.maxsize,
            health=self.monitor.health, together=self.accelerator.num_processes > 1,
            tell=lambda text: self.log.info("[checkpoint] %s", text),
        )  # fmt: skip


def heading(config: Config, ppo: PPO) -> list[str]:
    """Return the lines that describe a training before it starts."""
    settings, policy = config.rlhf, ppo.policy
    trained = sum(parameter.numel() for parameter in ppo.learning)
    return [
        "RLHF PPO TRAINING CONFIGURATION:",
        f"  Policy: {config.model.vlm_name}, {trained:,} of "
        f"{sum(parameter.numel() for parameter in policy.parameters()):,} parameters learn"
        + (" (adapters)" if policy.has_adapters else ""),
        f"  Prompts: {len(ppo.rows):,} of {config.data.dataset_name}",
        f"  Updates: {ppo.updates:,} of {settings.batch_size} responses",
        f"  KL price: {settings.kl_coef:g}, {settings.kl_controller}",
    ]


def update_line(step: int, metrics: Mapping[str, float]) -> str:
    """Return the line about an update."""
    columns = (
        ("score", "objective/scores", ".3f"), ("rlhf_reward", "objective/rlhf_reward", ".3f"),
        ("kl", "objective/kl", ".3f"), ("kl_coef", "objective/kl_coef", ".4f"),
        ("approxkl", "policy/approxkl_avg", ".4f"), ("clipfrac", "policy/clipfrac_avg", ".3f"),
        ("ratio", "val/ratio", ".3f"), ("entropy", "policy/entropy_avg", ".3f"),
        ("value_loss", "loss/value_avg", ".4f"), ("eps", "eps", ".1f"),
    )  # fmt: skip
    text = " ".join(f"{name}={metrics[key]:{how}}" for name, key, how in columns if key in metrics)
    return f"[RLHF:update] step={step} {text}"
