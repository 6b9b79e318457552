"""What happens now and then in a training, as events of the run: with its cause each."""

import logging
from collections.abc import Mapping

import rlvitals
from rlvitals.trainers.ppo import telemetry
from rlvitals.trainers.ppo.config import MonitoringConfig
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import Rollout

MOVED = 0.01  # a change of the learning rate's factor that is worth an event
HISTOGRAMS = 200  # of each action in a run, about


class Events:
    """Records pulses, adjustments, histograms and slow tails after each update."""

    def __init__(
        self, ppo: PPO, recorder: rlvitals.Run, log: logging.Logger, config: MonitoringConfig
    ) -> None:
        """Compare with how things are now."""
        self._ppo, self._recorder, self._log, self._config = ppo, recorder, log, config
        self._slow = False
        self._next = 0.0  # the step of the next histograms

    def after(self, rollout: Rollout, told: Mapping[str, float]) -> None:
        """Look at an update."""
        self._pulses()
        self._adjustments(told)
        self._tail(told)
        self._histograms(rollout)

    def _pulses(self) -> None:
        pulses = getattr(self._ppo.temperature, "pulses", None)
        while pulses:
            one = pulses.popleft()
            self._recorder.event(
                "temperature_pulse", self._ppo.at.steps, decision=one.step, cause=one.cause,
                level=one.level,
            )  # fmt: skip
            self._log.debug("[PPO:temperature] pulse at decision %d by %s", one.step, one.cause)

    def _adjustments(self, told: Mapping[str, float]) -> None:
        """Tell each move of learning rate and minibatch that a spike, or its end, caused."""
        spikes, step = self._ppo.spikes, self._ppo.at.steps
        if spikes is None:
            return
        before, now = spikes.before, (spikes.lr_factor, spikes.minibatch_size)
        if not told["gradient_spike"] and before[1] == now[1] and abs(now[0] - before[0]) < MOVED:
            return
        cause = "gradient spike" if told["gradient_spike"] else "quiet"
        self._recorder.event(
            "adjustment", step, cause=cause, grad_norm=told["pg_grad_norm"],
            usual=told["grad_norm_usual"], lr_factor=now[0], lr_factor_before=before[0],
            minibatch_size=now[1], minibatch_size_before=before[1],
        )  # fmt: skip
        self._log.log(
            logging.INFO if told["gradient_spike"] else logging.DEBUG,
            "[PPO:adjust] step=%d %s gnorm=%.3f (usually %.3f): lr x%.3f mb=%d", step, cause,
            told["pg_grad_norm"], told["grad_norm_usual"], *now,
        )  # fmt: skip

    def _tail(self, told: Mapping[str, float]) -> None:
        slow = telemetry.is_slow(told, self._config)
        if slow and not self._slow:
            limit = self._config.tail_latency_tracking.alert_threshold_p99
            worst = told["latency_p99"]
            self._recorder.event("tail_latency", self._ppo.at.steps, p99=worst, threshold=limit)
            self._log.warning("[PPO:tail] p99 latency %.2f s is above %.2f s", worst, limit)
        self._slow = slow

    def _histograms(self, rollout: Rollout) -> None:
        envs, step = self._ppo.envs, self._ppo.at.steps
        wanted = self._config.advanced_metrics.track_action_distribution
        if envs.continuous or not wanted or step < self._next:
            return
        self._next = step + self._ppo.total_steps / HISTOGRAMS
        for i, shares in enumerate(telemetry.shares_by_environment(rollout, envs.actions).T):
            self._recorder.log_histogram(step, f"Actions/replica_{i}", shares)
