"""Quantiles of Student's t distribution, without a dependency on scipy."""

import math
from statistics import NormalDist


def t_quantile(confidence: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t: P(|t| <= answer) = confidence.

    `freedom` may be fractional and is at least 1. Accurate to about 1e-4 for freedom >= 2.
    Source: G. W. Hill 1970, Algorithm 396, Communications of the ACM 13(10).
    """
    p, n = 1 - confidence, max(freedom, 1.0)
    if n == 1:
        return math.tan(math.pi / 2 * confidence)
    if n == 2:
        return math.sqrt(2 / (p * (2 - p)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * p) ** (2 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(p / 2)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        inner = 1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)
        y = (inner * y - 1) * (n + 1) / (n + 2) + 1 / y
    return math.sqrt(n * y)
