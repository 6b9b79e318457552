"""Linear trend of a series, with a confidence interval for autocorrelated noise."""

import math
from functools import lru_cache

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit, unscale
from rlvitals.signals.noise import MIN_NOISE_POINTS, candidates, line_fit, slope_weights
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

# Point-to-point noise on top of slow noise hides the latter's persistence, which block means show.
# So the error is also estimated from at least this many blocks, and the larger one is used.
MIN_COARSE_BLOCKS = 48


@dataclass(frozen=True, slots=True)
class Trend:
    """The slope and change of a line through a series, with confidence intervals."""

    slope: float  # per sample
    low: float
    high: float
    change: float  # over the whole series: slope x (samples - 1)
    change_low: float
    change_high: float
    samples: int  # finite values
    effective: float  # effective number of independent samples, at least 1

    @property
    def rises(self) -> bool:
        """True if the low end of the interval is positive."""
        return self.low > 0

    @property
    def falls(self) -> bool:
        """True if the high end of the interval is negative."""
        return self.high < 0


def trend(values: Array, *, confidence: float = 0.95, blocks: int = 256) -> Trend | None:
    """Fit a straight line and test its slope against autocorrelated noise.

    Computed over the finite values, assumed equally spaced. `None` for fewer than 12 of them.
    The slope is a least-squares fit; its error is that of AR(1) noise whose persistence is
    bounded from above (`noise.candidates`), up to a random walk, so a short or persistent series
    has a wide interval. The curve need not be straight: `rises` then means that its level rose
    overall. A constant series has the interval [0, 0]. `blocks` is the maximum number of block
    means: fewer (64) show the persistence of slow noise through point-to-point noise on top of
    it, which AR(1) does not model, but detect less.
    """
    x = finite(values)
    if x.size < MIN_NOISE_POINTS:
        return None
    if is_constant(x):
        return Trend(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, x.size, float(x.size))
    fine = math.ceil(x.size / max(blocks, MIN_NOISE_POINTS))
    coarse = (
        fine << max(int(math.log2(x.size / (fine * MIN_COARSE_BLOCKS))), 0)
        if x.size > MIN_COARSE_BLOCKS
        else fine
    )
    unit, exponent = scale_to_unit(x)
    slope = line_fit(block_means(unit, fine))[0] / fine
    half, effective = max(
        _half_width(block_means(unit, fine).tobytes(), fine, confidence, 1.0),
        _half_width(block_means(unit, coarse).tobytes(), coarse, confidence, 0.0),
    )
    low, high, span = slope - half, slope + half, x.size - 1
    return Trend(
        slope=unscale(slope, exponent),
        low=unscale(low, exponent),
        high=unscale(high, exponent),
        change=unscale(slope * span, exponent),
        change_low=unscale(low * span, exponent),
        change_high=unscale(high * span, exponent),
        samples=x.size,
        effective=max(effective, 1.0),
    )


# Several rules ask for the trend of the same values. A key holds at most `blocks` means.
@lru_cache(maxsize=1024)
def _half_width(
    block_bytes: bytes, group: int, confidence: float, push: float
) -> tuple[float, float]:
    """Return half the interval of the slope per sample, and the effective number of blocks.

    `block_bytes`: the means of blocks of `group` samples, float64.
    """
    means = np.frombuffer(block_bytes)
    weights = slope_weights(means.size)
    return min(
        (
            t_quantile(confidence, noise.freedom) * math.sqrt(noise.variance(weights)) / group,
            means.size * (1 - noise.persistence) / (1 + noise.persistence),
        )
        for noise in candidates(means, push=push)
    )
