"""Callback that records a Stable-Baselines3 training."""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecMonitor, is_vecenv_wrapped

from rlvitals.integrations.guard import Guard
from rlvitals.integrations.stable_baselines3 import hyperparameters, rollouts
from rlvitals.integrations.stable_baselines3.episodes import Episodes
from rlvitals.integrations.stable_baselines3.exploration import Exploration
from rlvitals.integrations.stable_baselines3.gradients import Gradients
from rlvitals.integrations.stable_baselines3.writer import Writer
from rlvitals.startup.fast_dataclass import dataclass

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

DEFAULT_LOOK_STEPS = 1000  # environment steps between two summaries of about 1 ms


@dataclass(frozen=True, slots=True)
class ScaledSchedule:
    """A learning rate by the remaining progress, times a factor; it is saved with the model."""

    schedule: Callable[[float], float]
    factor: float

    def __call__(self, progress_remaining: float) -> float:
        """Return the learning rate."""
        return self.factor * self.schedule(progress_remaining)


class Record(BaseCallback):
    """Records a training into a run: `model.learn(100_000, callback=Record(run))`.

    Every return by itself, NaN with the tensor and the step it appeared in, speed of each interval,
    gradient norms before clipping, action counts, exploration of off-policy algorithms, all
    hyperparameters, and the logger's own keys. Training is the same, bit for bit.
    Without a run one is started, and finished when training ends; then `stop_on="error"` ends a
    training with a persistent error, as `rlvitals.start(stop_on="error")` does.
    """

    def __init__(
        self, run: "Run | None" = None, *, every: int = DEFAULT_LOOK_STEPS, stop_on: str = ""
    ) -> None:
        """Record into `run`; summarise the rollouts every `every` environment steps."""
        super().__init__()
        self.stop_on = stop_on
        self.run: Any = run
        self.own = run is None
        self.every = every
        self.due = 0
        self.reported: set[str] = set()  # what has been said to be no number

    def _on_training_start(self) -> None:
        if self.own:
            from rlvitals.tracking.start import start  # noqa: PLC0415 - only where it is asked for

            self.run = start(stop_on=self.stop_on or None)
        self.guard = Guard(self.run)
        self.episodes: Episodes | None = None
        self.gradients: Gradients | None = None
        self.exploration: Exploration | None = None
        self.writer: Writer | None = None
        self.position = 0
        self.covered = 0
        self.pending: list[rollouts.Collected] = []  # short rollouts, looked at together
        self.gathered = 0  # environment steps in them
        self.looked = False
        self.guard("settings", self._settings)
        self.guard("the logger's keys", self._attach)
        self.guard("episodes", self._count_episodes)
        self.guard("gradients", self._watch_gradients)
        self.marked = (self.num_timesteps, perf_counter())
        self.phases = {"collect": 0.0, "learn": 0.0}
        self.phase_began = perf_counter()
        self.due = self.num_timesteps + self.every

    def _settings(self) -> None:
        total = self.locals.get("total_timesteps")
        self.run.update_settings(hyperparameters.settings(self.model, total))

    def _attach(self) -> None:
        self.writer = Writer(self.run)
        self.logger.output_formats.append(self.writer)

    def _count_episodes(self) -> None:
        env = self.training_env
        monitored = is_vecenv_wrapped(env, VecMonitor) or all(env.env_is_wrapped(Monitor))
        self.episodes = Episodes(self.run, None if monitored else env)

    def _watch_gradients(self) -> None:
        if isinstance(self.model, OffPolicyAlgorithm):
            self.exploration = Exploration(self.model)
            buffer: Any = self.model.replay_buffer
            self.position = buffer.pos
            self.covered = self.num_timesteps  # what is in the buffer was looked at, or is old
            self.every = min(self.every, buffer.buffer_size * self.model.n_envs // 2)
        self.gradients = Gradients(self.model, self._report_gradient, self.guard)

    def _on_rollout_start(self) -> None:
        """End an update: SB3 alternates between collection and training."""
        self._phase("learn")
        if self.gradients is not None:
            self.gradients.end()
        if self.looked:
            self.looked = False
            self.guard("gradients", self._log_gradients)

    def _on_step(self) -> bool:
        if self.episodes is not None and self.episodes.wants(self.locals):
            self.guard("episodes", self._episodes_over)
        if self.num_timesteps < self.due:
            return True
        self.due = self.num_timesteps + self.every
        if self.exploration is not None:
            self._look()
            self.guard("gradients", self._log_gradients)
        return not self._asked_to_stop()

    def _episodes_over(self) -> None:
        assert self.episodes is not None  # noqa: S101 - for the type checker: asked just before
        self.episodes.step(self.num_timesteps, self.locals)

    def _on_rollout_end(self) -> None:
        self._phase("collect")
        if self.exploration is None:
            self.guard("rollouts", self._gather)
        if self.gradients is not None:
            self.gradients.begin()

    def _gather(self) -> None:
        """Gather rollouts until they have `every` steps; A2C's have five steps each."""
        model: Any = self.model
        rollout = rollouts.of_rollout(model.rollout_buffer)
        steps = len(rollout) * model.n_envs
        self.pending.append(rollout)
        self.gathered += steps
        if self.gathered >= self.every or not rollouts.is_finite(rollout):
            self._look()
            self.looked = True

    def _look(self) -> None:
        self.guard("speed", self._log_speed)
        self.guard("rollouts", self._log_rollout)

    def _log_rollout(self) -> None:
        model: Any = self.model
        if self.exploration is None:
            rollout = rollouts.concatenate(self.pending)
            self.pending, self.gathered = [], 0
            self.covered = self.num_timesteps - len(rollout) * model.n_envs
        else:
            rollout = rollouts.of_replay(model.replay_buffer, self.position)
            self.position = model.replay_buffer.pos
        if not len(rollout):
            return
        for name, index, value in rollouts.find_nonfinite(rollout):
            self._report_nonfinite(
                name, value, self.covered + (index[0] + 1) * model.n_envs, list(index)
            )
        self.covered += len(rollout) * model.n_envs
        numbers = rollouts.numbers(rollout)
        if self.exploration is not None:
            numbers |= self.exploration.numbers(rollout.observations)
        self.run.log(self.num_timesteps, numbers)

    def _log_speed(self) -> None:
        end_time = perf_counter()
        start_step, start_time = self.marked
        self.marked = (self.num_timesteps, end_time)
        if end_time > start_time and self.num_timesteps > start_step:
            phases = {f"time/phase/{name}": seconds for name, seconds in self.phases.items()}
            speed = (self.num_timesteps - start_step) / (end_time - start_time)
            self.run.log(self.num_timesteps, {"time/steps_per_second": speed, **phases})
        self.phases = dict.fromkeys(self.phases, 0.0)

    def _log_gradients(self) -> None:
        if self.gradients is not None and (norms := self.gradients.take()):
            self.run.log(self.num_timesteps, norms)

    def _phase(self, name: str) -> None:
        end_time = perf_counter()
        self.phases[name] += end_time - self.phase_began
        self.phase_began = end_time

    def _report_gradient(self, name: str, value: float) -> None:
        self._report_nonfinite(name, value, self.num_timesteps, [])

    def _report_nonfinite(self, name: str, value: float, step: int, index: list[int]) -> None:
        """Report the first non-finite value of each variable."""
        if name in self.reported:
            return
        self.reported.add(name)
        text = "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
        self.run.event("not-a-number", step=step, variable=name, value=text, at=index)
        self.run.note(f"{name} is {text} at step {step}")

    def _asked_to_stop(self) -> bool:
        try:
            requests = self.run.requests()
            if requests.save:
                path = self.run.folder / f"model-{self.num_timesteps}.zip"
                self.model.save(path)
                self.run.event("checkpoint", step=self.num_timesteps, file=path.name)
            if requests.rate_factor < 1:
                schedule = ScaledSchedule(self.model.lr_schedule, requests.rate_factor)
                self.model.learning_rate = schedule  # what a saved model starts from
                self.model._setup_lr_schedule()  # noqa: SLF001 - as `learning_rate` is taken up
        except Exception as error:  # noqa: BLE001 - what is asked for must not end a training
            self.run.note(f"a request could not be met: {type(error).__name__}: {error}")
            return False
        return bool(requests.stop)

    def _on_training_end(self) -> None:
        self._phase("learn")
        if self.gradients is not None:
            self.gradients.end()
        if self.exploration is not None or self.pending:
            self._look()
        self.guard("gradients", self._log_gradients)
        self.guard("the last update", self._log_the_last_update)
        if self.gradients is not None:
            self.gradients.close()
        if self.writer in self.logger.output_formats:
            self.logger.output_formats.remove(self.writer)
        if self.own:
            self.run.finish()

    def _log_the_last_update(self) -> None:
        """Write the losses of the last update, which the logger never dumps."""
        if self.writer is not None:
            values = dict(self.logger.name_to_value)
            self.writer.write(values, self.logger.name_to_excluded, self.num_timesteps)
