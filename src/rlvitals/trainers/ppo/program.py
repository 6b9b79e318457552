"""A whole training: begin or resume, learn, tell, save, and end well whatever happens."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import environments, networks, stabilise, telemetry
from rlvitals.trainers.ppo.config import Config, MonitoringConfig
from rlvitals.trainers.ppo.environments import Step
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.reactions import SpikeReaction
from rlvitals.trainers.ppo.temperature import Controller, Fixed

GROWTH = 0.05  # of the run: so far apart are live diagnoses at least
ROLLOUT_LINES = 4  # in each rollout
OFF_AT_ZERO = frozenset({"target_kl", "max_grad_norm", "entropy_min", "kl_coef"})


class Training:
    """One training in its folder. `run` trains to the end and returns how it ended."""

    def __init__(self, config: Config, *, verbose: bool = False) -> None:
        """Build everything, and resume from the newest checkpoint that is whole."""
        self.config = config
        self.folder = Path(config.training.output_dir)
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(config.training.threads)
        self.log = telemetry.logger(self.folder, verbose=verbose)
        self.recorder = rlvitals.start(
            self.folder,
            seed=config.training.seed,
            settings=flat(config),
            sinks=sinks(config.monitoring),
        )
        self.ppo = build(config)
        self.ppo.on_step = self._on_step
        self.diagnosis: rlvitals.Diagnosis | None = None
        self._saved = -1  # the step of the last checkpoint
        self._judged = (time.monotonic(), 0)  # when, at which step
        self.checkpoints = self._checkpoints()
        self.log.info(telemetry.init_line(config, self.ppo))

    def run(self) -> str:
        """Train; returns "finished", or "stopped" where someone asked for it.

        Ctrl-C saves a checkpoint, says how to go on, and is raised again. So is any error: the
        newest checkpoint is kept.
        """
        status = "failed"
        try:
            self._resume()
            self._stabilise()
            status = self._learn()
        except KeyboardInterrupt:
            status = "interrupted"
            self._save("interrupted")
            self.log.info("run the same command again to go on")
            raise
        except Exception as error:
            self.log.exception("[PPO:failed] %s", error)  # noqa: TRY401 - the line is read alone
            raise
        finally:
            with suppress(Exception):  # what ended the training is what is told
                self.ppo.envs.close()
            self.recorder.finish(status)
            telemetry.close(self.log)
        return status

    # -- the stages ------------------------------------------------------------------------------

    def _resume(self) -> None:
        if self.checkpoints is None:
            return
        state = self.ppo.state()
        resumed = self.checkpoints.restore(state.load)
        if resumed is not None:
            self.log.info("[Resume] %s", resumed.sentence)

    def _stabilise(self) -> None:
        config = self.config.statistics_stabilization
        for at in stabilise.stabilise(self.ppo, config):
            self._settling(f"step={at.step}/{at.steps} - collecting baseline statistics")
            if at.over:
                self._stabilised(at)

    def _settling(self, text: str) -> None:
        self.log.info("[STATS_STABILIZATION] %s", text)

    def _stabilised(self, at: stabilise.Stabilised) -> None:
        held = telemetry.normaliser_numbers(self.ppo)
        self._settling(f"Completed! Normalizer statistics collected over {at.steps} steps")
        self._settling(
            f"Final normalizer stats - mean_magnitude={held['obs_norm_mean']:.4f}, "
            f"std_magnitude={held['obs_norm_std']:.4f}"
        )
        self._settling("Transitioning to PPO training mode")
        if self.config.statistics_stabilization.collect_baseline_stats:
            self.recorder.log(0, {f"baseline/{name}": v for name, v in at.baseline.items()})

    def _learn(self) -> str:
        ppo = self.ppo
        while ppo.at.steps < ppo.total_steps:
            rollout, stats = ppo.iterate()
            told = telemetry.numbers(ppo, rollout, stats)
            self.recorder.log(ppo.at.steps, told, episode=None)
            self._pulses()
            self.log.info(telemetry.update_line(ppo.at.steps, told, rollout.facts))
            self._judge()
            asked = self.recorder.requests()
            if asked.save or asked.stop or self._due():
                self._save("asked for" if asked.save else "due", told)
            if asked.stop:
                self.log.info("[PPO:stopped] at step %d, as asked", ppo.at.steps)
                return "stopped"
        self._save("the end")
        return "finished"

    # -- what goes along -------------------------------------------------------------------------

    def _on_step(self, done: int, step: Step) -> None:
        length = self.config.ppo_config.rollout_length
        if done % max(length // ROLLOUT_LINES, 1) == 0:
            at = self.ppo.at.steps + done * self.ppo.envs.count
            reward = float(step.rewards.mean())
            self.log.debug(telemetry.rollout_line(at, done, length, reward))

    def _pulses(self) -> None:
        pulses = getattr(self.ppo.temperature, "pulses", None)
        while pulses:
            one = pulses.popleft()
            self.recorder.event(
                "temperature_pulse", self.ppo.at.steps, decision=one.step, cause=one.cause,
                level=one.level,
            )  # fmt: skip

    def _judge(self) -> None:
        """Diagnose the run as it stands, not too often, and say what is new."""
        every = self.config.training.diagnose_seconds
        then, step = self._judged
        grown = self.ppo.at.steps - step >= GROWTH * self.ppo.total_steps
        if not every or not grown or time.monotonic() - then < every:
            return
        self._judged = (time.monotonic(), self.ppo.at.steps)
        self.recorder.flush()
        try:
            found = rlvitals.diagnose(self.folder)
        except rlvitals.VitalsError as error:
            self.recorder.note(f"no live diagnosis: {error.problem}")
            return
        known = (
            set() if self.diagnosis is None else {one.name for one, _ in self.diagnosis.findings}
        )
        for rule, finding in found.findings:
            if rule.name not in known and finding.severity > rlvitals.Severity.NOTE:
                self.log.warning("[diagnosis] %s since step %s", rule.name, finding.began)
        if self.diagnosis is None or found.verdict.word is not self.diagnosis.verdict.word:
            self.log.info("[diagnosis] the run is %s", found.verdict.word.value)
        self.diagnosis = found

    # -- checkpoints -----------------------------------------------------------------------------

    def _checkpoints(self) -> rlvitals.Checkpoints | None:
        config = self.config.checkpointing
        if not config.enable:
            return None
        return rlvitals.Checkpoints(
            self.recorder,
            every=config.interval,
            keep=config.keep,
            keep_best=config.keep_best or None,
            keep_every=config.keep_every or None,
            keep_healthy=config.keep_healthy,
            health=self._health,
            tell=lambda text: self.log.info("[PPO:checkpoint] %s", text),
        )

    def _health(self, step: int) -> str:
        del step  # the last diagnosis is the nearest there is
        if self.diagnosis is None:
            return "not judged"
        bad = [
            rule.name
            for rule, finding in self.diagnosis.findings
            if finding.severity > rlvitals.Severity.NOTE
        ]
        return ", ".join(bad) or "healthy"

    def _due(self) -> bool:
        return self.checkpoints is not None and self.checkpoints.due(self.ppo.at.steps)

    def _save(self, why: str, told: Mapping[str, float] | None = None) -> None:
        step = self.ppo.at.steps
        if self.checkpoints is None or step == self._saved:
            return
        self._saved = step
        state = self.ppo.state()
        with self.checkpoints.save(step, metrics=told) as folder:
            state.save(folder)
        self.log.info("[PPO:checkpoint] step=%d saved (%s)", step, why)


def build(config: Config) -> PPO:
    """Build the environments, the policy and the trainer of a configuration."""
    at, own = config.training, config.ppo_config
    torch.manual_seed(at.seed)
    envs = environments.make(at.env, at.num_envs, processes=at.processes)
    policy = networks.build(
        envs.features, envs.actions, continuous=envs.continuous,
        hidden=config.network.hidden_sizes, activation=config.network.activation,
    )  # fmt: skip
    led, spikes = config.temperature_control, config.advanced_optimization.adaptive_batch_size
    return PPO(
        envs, policy, own, total_steps=at.total_steps, seed=at.seed,
        schedule=config.advanced_optimization.learning_rate_schedule,
        reference=config.kl_regularization,
        temperature=Controller(led) if led.enabled else Fixed(led.base_temperature),
        spikes=SpikeReaction(spikes, own.minibatch_size) if spikes.enable else None,
    )  # fmt: skip


def sinks(config: MonitoringConfig) -> dict[str, Mapping[str, Any]]:
    """Return what is written beside the run's own files, with its options."""
    found: dict[str, Mapping[str, Any]] = {}
    if config.tensorboard_enabled:
        found["tensorboard"] = {"port": config.tensorboard_port}
    if config.metrics_export_enabled:
        found[config.metrics_export_format] = {
            "interval": config.metrics_export_interval,
            "subsamples": config.metrics_subsamples,
        }
    if config.wandb:
        found["wandb"] = {"project": config.wandb_project}
    return found


def flat(config: Config) -> dict[str, object]:
    """Return the settings that a run is recorded with: each key by itself, sections by name.

    What is off is None: a limit of 0 would be another thing.
    """
    found: dict[str, object] = {}
    for key in schema.keys(Config):
        if key.path[-1] == "output_dir":
            continue  # a run may be moved
        value: Any = config
        for name in key.path:
            value = getattr(value, name)
        plain = ".".join(key.path[1:]) if key.path[0] in ("training", "ppo_config") else key.name
        off = key.path[-1] in OFF_AT_ZERO and value == 0
        found[plain] = None if off else list(value) if isinstance(value, tuple) else value
    return found
