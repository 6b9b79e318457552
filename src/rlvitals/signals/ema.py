"""The exponential moving average, without the pull towards zero at its start."""

import numpy as np

from rlvitals.signals.finite import Array, scaled

# Within a chunk the recursion becomes a weighted sum with weights (1 - alpha)^-k, which must
# stay finite: the chunk is as long as keeps the largest below this.
LARGEST_WEIGHT = 1e12


def ema(values: Array, alpha: float) -> Array:
    """Return the bias-corrected exponential moving average, of the length of `values`.

    out[t] = sum (1 - alpha)^(t - i) x[i] / sum (1 - alpha)^(t - i) over the finite x[i], i <= t:
    a weighted mean of what was seen, as in Adam (Kingma and Ba 2015, section 3). `alpha` in
    (0, 1] is the newest value's weight; 1 returns the values. NaN and infinities are no
    evidence: the last average is carried over them; before the first finite value it is NaN.
    """
    if not 0 < alpha <= 1:
        message = f"alpha must be in (0, 1], not {alpha}"
        raise ValueError(message)
    column = np.asarray(values, dtype=np.float64).ravel()
    known = np.isfinite(column)
    averages = np.full(column.size, np.nan)
    if not known.any():
        return averages
    unit, exponent = scaled(column[known])
    with np.errstate(over="ignore"):
        smooth = np.ldexp(unit if alpha == 1 else _smooth(unit, 1 - alpha), exponent)
    seen = np.cumsum(known)
    averages[seen > 0] = smooth[seen[seen > 0] - 1]
    return averages


def _smooth(values: Array, keep: float) -> Array:
    length = int(min(max(np.log(LARGEST_WEIGHT) / -np.log(keep), 1), values.size))
    total, weight = 0.0, 0.0
    smooth = np.empty_like(values)
    decay = keep ** np.arange(length, dtype=np.float64)
    for start in range(0, values.size, length):
        chunk = values[start : start + length]
        fade = decay[: chunk.size]
        totals = fade * (keep * total + np.cumsum(chunk / fade))
        weights = fade * (keep * weight + np.cumsum(1 / fade))
        smooth[start : start + chunk.size] = totals / weights
        total, weight = float(totals[-1]), float(weights[-1])
    return smooth
