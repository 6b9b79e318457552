"""Record pulses, adjustments and slow tails of a training as events with their cause."""

import logging
from collections.abc import Mapping

import rlvitals
from rlvitals.trainers.ppo import telemetry
from rlvitals.trainers.ppo.config import MonitoringConfig
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import Rollout


class Events:
    """Records pulses, adjustments, histograms and slow tails after each update."""

    def __init__(
        self, ppo: PPO, recorder: rlvitals.Run, log: logging.Logger, config: MonitoringConfig
    ) -> None:
        """Compare with how things are now."""
        self._ppo, self._recorder, self._log, self._config = ppo, recorder, log, config
        self._slow = False
        self._next = 0.0  # the step of the next histograms

    def after(self, rollout: Rollout, metrics: Mapping[str, float]) -> None:
        """Look at an update."""
        pulses = getattr(self._ppo.temperature, "pulses", None)
        while pulses:
            pulse = pulses.popleft()
            self._recorder.event(
                "temperature_pulse", self._ppo.global_step, decision=pulse.step,
                cause=pulse.cause,
                level=pulse.level,
            )  # fmt: skip
            self._log.debug("[PPO:temperature] pulse at decision %d by %s", pulse.step, pulse.cause)
        self._adjustments(metrics)
        slow = telemetry.is_slow(metrics, self._config)
        if slow and not self._slow:
            limit = self._config.tail_latency_tracking.alert_threshold_p99
            worst = metrics["latency_p99"]
            self._recorder.event("tail_latency", self._ppo.global_step, p99=worst, threshold=limit)
            self._log.warning("[PPO:tail] p99 latency %.2f s is above %.2f s", worst, limit)
        self._slow = slow
        envs, step = self._ppo.envs, self._ppo.global_step
        is_tracked = self._config.advanced_metrics.track_action_distribution
        if envs.continuous or not is_tracked or step < self._next:
            return
        # About 200 histograms of each action in a run.
        self._next = step + self._ppo.total_steps / 200
        for i, shares in enumerate(telemetry.shares_by_environment(rollout, envs.actions).T):
            self._recorder.log_histogram(step, f"Actions/replica_{i}", shares)

    def _adjustments(self, metrics: Mapping[str, float]) -> None:
        """Record each change of learning rate and minibatch caused by a spike or its end."""
        spikes, step = self._ppo.spikes, self._ppo.global_step
        if spikes is None:
            return
        previous, current = spikes.before, (spikes.lr_factor, spikes.minibatch_size)
        if (
            not metrics["gradient_spike"]
            and previous[1] == current[1]
            and abs(current[0] - previous[0]) < 0.01  # of the learning rate's factor
        ):
            return
        cause = "gradient spike" if metrics["gradient_spike"] else "quiet"
        self._recorder.event(
            "adjustment", step, cause=cause, grad_norm=metrics["pg_grad_norm"],
            usual=metrics["grad_norm_usual"], lr_factor=current[0], lr_factor_before=previous[0],
            minibatch_size=current[1], minibatch_size_before=previous[1],
        )  # fmt: skip
        self._log.log(
            logging.INFO if metrics["gradient_spike"] else logging.DEBUG,
            "[PPO:adjust] step=%d %s gnorm=%.3f (usually %.3f): lr x%.3f mb=%d", step, cause,
            metrics["pg_grad_norm"], metrics["grad_norm_usual"], *current,
        )  # fmt: skip
