"""Whether a series rises or falls, with an interval that keeps its promise on RL's noise."""

import math
from dataclasses import dataclass

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scaled, unscaled
from rlvitals.signals.noise import LEAST, candidates, line_fit, slope_weights
from rlvitals.signals.student import t_quantile

POINTS = 256  # longer series are averaged into at most this many blocks first
# Point-to-point noise on top of slow noise hides the slow noise's memory; in blocks it shows. So
# the error is also taken from at least this many blocks, and the larger of the two counts.
COARSE = 48


@dataclass(frozen=True, slots=True)
class Trend:
    """The straight part of a series: its slope and change, with a confidence interval."""

    slope: float  # per sample
    low: float
    high: float
    change: float  # over the whole series: slope x (samples - 1)
    change_low: float
    change_high: float
    samples: int  # finite values
    effective: float  # independent samples that they are worth, at least 1

    @property
    def rises(self) -> bool:
        """Whether even the low end of the interval goes up."""
        return self.low > 0

    @property
    def falls(self) -> bool:
        """Whether even the high end of the interval goes down."""
        return self.high < 0


def trend(values: Array, *, confidence: float = 0.95, blocks: int = POINTS) -> Trend | None:
    """Fit a straight line and judge its slope against autocorrelated noise.

    Computed over the finite values, taken as equally spaced. `None` for fewer than 12 of them.
    The slope is by least squares; its error is that of AR(1) noise whose persistence is bounded
    from above (`noise.candidates`), a random walk where nothing less can be shown, so a short
    or sluggish series gets a wide interval. The curve need not be straight: `rises` then
    says that its level went up on the whole. A constant series has the interval [0, 0].
    `blocks` is the number of block means judged at most: fewer (64) see the memory of slow noise
    through point-to-point noise on top of it, which AR(1) does not describe, but miss more.
    """
    x = finite(values)
    if x.size < LEAST:
        return None
    if is_constant(x):
        return Trend(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, x.size, float(x.size))
    fine = math.ceil(x.size / max(blocks, LEAST))
    coarse = fine << max(int(math.log2(x.size / (fine * COARSE))), 0) if x.size > COARSE else fine
    unit, exponent = scaled(x)
    slope = line_fit(block_means(unit, fine))[0] / fine
    half, effective = max(
        _half_width(unit, fine, confidence, 1.0), _half_width(unit, coarse, confidence, 0.0)
    )
    low, high, span = slope - half, slope + half, x.size - 1
    return Trend(
        slope=unscaled(slope, exponent),
        low=unscaled(low, exponent),
        high=unscaled(high, exponent),
        change=unscaled(slope * span, exponent),
        change_low=unscaled(low * span, exponent),
        change_high=unscaled(high * span, exponent),
        samples=x.size,
        effective=max(effective, 1.0),
    )


def _half_width(values: Array, group: int, confidence: float, push: float) -> tuple[float, float]:
    """Return half the interval of the slope per sample, and the independent blocks behind it."""
    means = block_means(values, group)
    weights = slope_weights(means.size)
    return min(
        (
            t_quantile(confidence, noise.freedom) * math.sqrt(noise.variance(weights)) / group,
            means.size * (1 - noise.persistence) / (1 + noise.persistence),
        )
        for noise in candidates(means, push=push)
    )
