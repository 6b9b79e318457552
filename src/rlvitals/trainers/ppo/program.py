"""A whole training: begin or resume, learn, tell, save, and end well whatever happens."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch

import rlvitals
from rlvitals.trainers.ppo import building, demos, stabilise, telemetry, warm_start
from rlvitals.trainers.ppo.cluster import ID as CLUSTER
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.environments import Step

GROWTH = 0.05  # of the run: so far apart are live diagnoses at least
ROLLOUT_LINES = 4  # in each rollout


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
            settings=building.flat(config),
            sinks=building.sinks(config.monitoring),
        )
        self.ppo = building.build(config)
        building.write(config, self.folder)
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
            if not self._resume():
                self._warm_start()
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

    def _resume(self) -> bool:
        """Go on from the newest checkpoint that is whole; False where there is none."""
        if self.checkpoints is None:
            return False
        state = self.ppo.state()
        resumed = self.checkpoints.restore(state.load)
        if resumed is None:
            return False
        self.log.info("[Resume] %s", resumed.sentence)
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
        if config.hold_to_reference:
            self.ppo.hold_to_reference()

    def _clone(self) -> None:
        config = self.config.warm_start
        if config.demo_path:
            held = demos.load(Path(config.demo_path))
        else:
            held = demos.collect(
                self.config.environment, policies=config.demo_policies, steps=config.demo_steps,
                loads=config.demo_loads, seed=self.config.training.seed,
            )  # fmt: skip
        self.log.info("[PPO:warmstart] %d decisions of %s", len(held), ", ".join(held.names))
        for at in warm_start.clone(self.ppo, held, config):
            self.log.info(
                "[PPO:warmstart] epoch=%d/%d loss=%.4f accuracy=%.3f (the commonest action: %.3f)",
                at.epoch, config.bc_epochs, at.loss, at.accuracy, at.baseline,
            )  # fmt: skip
            self.recorder.event("warm_start", 0, epoch=at.epoch, loss=at.loss, accuracy=at.accuracy)
        warm_start.save(self.ppo, self.folder / warm_start.PRETRAINED)

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
