"""Exponential moving average with bias correction at the start."""

import numpy as np

from rlvitals.signals.finite import Array, scale_to_unit


def ema(values: Array, alpha: float) -> Array:
    """Return the bias-corrected exponential moving average, with the length of `values`.

    out[t] = sum (1 - alpha)^(t - i) x[i] / sum (1 - alpha)^(t - i) over the finite x[i], i <= t:
    a weighted mean of the past values, as in Adam (Kingma and Ba 2015, section 3). `alpha` in
    (0, 1] is the newest value's weight; 1 returns the values. NaN and infinities are skipped:
    they repeat the last average; before the first finite value the average is NaN.
    """
    if not 0 < alpha <= 1:
        message = f"alpha must be in (0, 1], not {alpha}"
        raise ValueError(message)
    column = np.asarray(values, dtype=np.float64).ravel()
    is_finite = np.isfinite(column)
    averages = np.full(column.size, np.nan)
    if not is_finite.any():
        return averages
    unit, exponent = scale_to_unit(column[is_finite])
    smooth = unit.copy()
    if alpha < 1:
        # Within a chunk the recursion is a weighted sum with weights (1 - alpha)^-k, which must
        # stay finite: the largest is 1e12.
        keep = 1 - alpha
        length = int(min(max(np.log(1e12) / -np.log(keep), 1), unit.size))
        total, weight = 0.0, 0.0
        decay = keep ** np.arange(length, dtype=np.float64)
        for start in range(0, unit.size, length):
            chunk = unit[start : start + length]
            fade = decay[: chunk.size]
            totals = fade * (keep * total + np.cumsum(chunk / fade))
            weights = fade * (keep * weight + np.cumsum(1 / fade))
            smooth[start : start + chunk.size] = totals / weights
            total, weight = float(totals[-1]), float(weights[-1])
    with np.errstate(over="ignore"):
        smooth = np.ldexp(smooth, exponent)
    count = np.cumsum(is_finite)
    averages[count > 0] = smooth[count[count > 0] - 1]
    return averages
