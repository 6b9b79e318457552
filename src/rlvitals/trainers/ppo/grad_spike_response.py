"""Respond to a spike of the gradient norm: lower the learning rate, change the minibatch."""

import math

from rlvitals import UsageError
from rlvitals.trainers.ppo.config import SpikeConfig

NORM_AVERAGE_UPDATES = 20  # updates that the usual norm is averaged over


class SpikeReaction:
    """Cuts the learning rate and moves the minibatch at a spike; both come back in quiet updates.

    The usual norm is a geometric mean over about 20 updates that were no spikes.
    """

    def __init__(self, config: SpikeConfig, minibatch_size: int) -> None:
        """Start with the configured minibatch. Raises UsageError for bounds it is outside of."""
        self._least = config.min or max(minibatch_size // 2, 1)
        self._most = config.max or 2 * minibatch_size
        if not self._least <= minibatch_size <= self._most:
            raise UsageError(
                f"minibatch_size {minibatch_size} is outside of {self._least} to {self._most}",
                where="advanced_optimization.adaptive_batch_size",
                hint="set its min and max around ppo_config.minibatch_size",
            )
        self.config, self._usual_size = config, float(minibatch_size)
        self._size = float(minibatch_size)
        self.lr_factor = 1.0
        self.before = (1.0, minibatch_size)  # both, before the last update
        self._log_norm = math.nan
        self._seen = 0

    @property
    def minibatch_size(self) -> int:
        """The rows of a minibatch."""
        return round(self._size)

    def after(self, norm: float) -> dict[str, float]:
        """Update from the gradient norm before clipping; return the metrics to log."""
        self.before = (self.lr_factor, self.minibatch_size)
        if not math.isfinite(norm):
            spike = True
        else:
            has_history = self._seen >= NORM_AVERAGE_UPDATES // 2
            spike = has_history and norm > self.config.spike_threshold * math.exp(self._log_norm)
        rate = self.config.adaptation_rate
        if spike:
            self.lr_factor = max(self.lr_factor * (1.0 - rate), self.config.min_lr_factor)
            self._size *= 1.0 + rate if self.config.direction == "up" else 1.0 - rate
            self._size = min(max(self._size, self._least), self._most)
        else:
            self.lr_factor += rate * (1.0 - self.lr_factor)
            self._size += rate * (self._usual_size - self._size)
            if not norm <= 0.0:
                self._seen += 1
                weight = 1.0 / min(self._seen, NORM_AVERAGE_UPDATES)
                mean = 0.0 if self._seen == 1 else self._log_norm
                self._log_norm = mean + weight * (math.log(norm) - mean)
        return {
            "gradient_spike": float(spike),
            "lr_factor": self.lr_factor,
            "minibatch_size_next": float(self.minibatch_size),
            "grad_norm_usual": math.exp(self._log_norm),
        }
