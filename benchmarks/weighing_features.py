"""Turn a log and its findings into a table of features, with NaN for what is not logged.

A feature is named `<fact>.<measure>`. Findings count by their class, once: the gravest of a class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from weighing_classes import CLASS_BY_RULE, CLASSES

import rlvitals
from rlvitals.signals.spread import noise_sd

Array = NDArray[np.float64]

OUTCOMES = ("outcome/return", "outcome/reward", "reward/mean", "outcome/eval_return")
LENGTHS = ("outcome/episode_length", "language/length_mean")
BLOCKS = 10
MIN_POINTS = 6
TINY = 1e-12
ZERO = 1e-7
NO_EXPLANATION = 0.05  # of the variance
FROZEN_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Facts:
    """The direction in which a feature speaks of a fault: 1, -1, or 0 for both."""

    sign: int
    value: float


def features(trace: rlvitals.Trace, diagnosis: rlvitals.Diagnosis) -> dict[str, Facts]:
    """Return every feature of a run; NaN where the log cannot show it."""
    table: dict[str, Facts] = {}
    curves = {name: _numbers(trace, metrics) for name, metrics in _METRICS.items()}
    for name, values in curves.items():
        for measure, (sign, function) in _MEASURES[name].items():
            value = float("nan")
            if values is not None:
                with np.errstate(all="ignore"):
                    value = function(values)
            table[f"{name}.{measure}"] = Facts(sign, _squash(value))
    table |= _relations(curves)
    table |= _columns(trace)
    table |= _findings(diagnosis)
    return table


def _numbers(trace: rlvitals.Trace, names: tuple[str, ...]) -> Array | None:
    for name in names:
        series = trace.numbers(name, MIN_POINTS)
        if series is not None:
            return np.clip(series.values, -1e30, 1e30)
    return None


def _squash(value: float) -> float:
    return float(np.clip(value, -30.0, 30.0)) if np.isfinite(value) else float("nan")


def _noise(values: Array) -> float:
    return max(noise_sd(values) or 0.0, 1e-3 * float(np.std(values)), TINY)


def _blocks(values: Array) -> Array:
    return np.array([part.mean() for part in np.array_split(values, min(BLOCKS, len(values)))])


def _third(values: Array, number: int) -> float:
    return float(np.mean(np.array_split(values, 3)[number]))


def _change(values: Array) -> float:
    """Return the last third less the first, in noise, on a scale that grows slowly."""
    return float(np.arcsinh((_third(values, 2) - _third(values, 0)) / _noise(values)))


def _log_change(values: Array) -> float:
    ends = [max(abs(_third(values, i)), TINY) for i in (2, 0)]
    return float(np.log10(ends[0] / ends[1]))


def _log_level(values: Array) -> float:
    return float(np.log10(max(float(np.median(np.abs(values))), TINY)))


def _log_peak(values: Array) -> float:
    size = np.abs(values)
    return float(np.log10(max(size.max(), TINY) / max(float(np.median(size)), TINY)))


def _lost(values: Array) -> float:
    """Return what was lost from the best block, as a share of the blocks' range."""
    means = _blocks(values)
    span = float(np.ptp(means))
    return float(means.max() - means[-1]) / span if span > TINY else 0.0


def _lost_noise(values: Array) -> float:
    means = _blocks(values)
    return float(np.arcsinh((means.max() - means[-1]) / _noise(values)))


def _below_start(values: Array) -> float:
    means = _blocks(values)
    span = float(np.ptp(means))
    return max(float(means[0] - means[-1]), 0.0) / span if span > TINY else 0.0


def _best_at(values: Array) -> float:
    means = _blocks(values)
    return float(np.argmax(means)) / (len(means) - 1)


def _step(values: Array) -> tuple[float, float]:
    """Return the largest shift of the mean, in noise, and where in the run it lies."""
    count = len(values)
    cuts = np.unique(np.linspace(0.15 * count, 0.85 * count, 15).astype(int))
    cuts = cuts[(cuts > 1) & (cuts < count - 1)]
    window = max(count // 7, 2)
    shifts = [
        values[cut : cut + window].mean() - values[max(cut - window, 0) : cut].mean()
        for cut in cuts
    ]
    if not shifts:
        return 0.0, 0.5
    best = int(np.argmax(np.abs(shifts)))
    return float(np.arcsinh(shifts[best] / _noise(values))), float(cuts[best]) / count


def _jitter(values: Array) -> float:
    spread = float(np.std(values))
    return _noise(values) / spread if spread > TINY else 0.0


def _variation(values: Array) -> float:
    """Return the logarithm of jitter over the mean: far too smooth is low."""
    middle = abs(float(np.mean(values)))
    return float(np.log10(max(_noise(values), TINY) / max(middle, TINY)))


def _same(values: Array) -> float:
    """Return the share of points in the second half that equal the one before."""
    half = values[len(values) // 2 :]
    return float(np.mean(np.diff(half) == 0.0)) if len(half) > 1 else 0.0


def _zeros(values: Array) -> float:
    return float(np.mean(np.abs(values) < ZERO))


def _outliers(values: Array) -> float:
    middle = float(np.median(values))
    spread = max(float(np.median(np.abs(values - middle))), TINY)
    return float(np.log10(max(float(np.abs(values - middle).max()) / spread, 1.0)))


Measure = tuple[int, Callable[[Array], float]]
_METRICS: Mapping[str, tuple[str, ...]] = {
    "return": OUTCOMES,
    "length": LENGTHS,
    "entropy": ("exploration/entropy",),
    "std": ("exploration/std",),
    "kl": ("policy/approx_kl", "policy/kl"),
    "clip": ("policy/clip_fraction",),
    "explained": ("value/explained_variance",),
    "value loss": ("value/loss",),
    "loss": ("optimiser/loss",),
    "policy loss": ("policy/loss",),
    "gradient": ("optimiser/grad_norm",),
    "rate": ("optimiser/learning_rate",),
    "epsilon": ("exploration/epsilon",),
    "temperature": ("exploration/entropy_coef",),
    "q": ("value/q_mean",),
    "speed": ("throughput/steps_per_second",),
}
_MEASURES: Mapping[str, Mapping[str, Measure]] = {
    "return": {
        "change": (-1, _change),
        "slope at the end": (-1, lambda v: _change(v[-max(len(v) // 3, MIN_POINTS) :])),
        "lost": (1, _lost),
        "lost in noise": (1, _lost_noise),
        "below start": (1, _below_start),
        "best at": (-1, _best_at),
        "step": (0, lambda v: _step(v)[0]),
        "step at": (0, lambda v: _step(v)[1]),
        "jitter": (1, _jitter),
        "same": (0, _same),
        "outliers": (1, _outliers),
    },
    "length": {
        "change": (0, _log_change),
        "step": (0, lambda v: _step(v)[0]),
        "same": (0, _same),
        "jitter": (0, _jitter),
    },
    "entropy": {
        "change": (0, _change),
        "ratio": (0, _log_change),
        "level": (-1, _log_level),
        "step": (0, lambda v: _step(v)[0]),
        "jitter": (0, _jitter),
        "same": (1, _same),
    },
    "std": {"ratio": (1, _log_change), "level": (0, _log_level)},
    "kl": {
        "level": (0, _log_level),
        "peak": (1, _log_peak),
        "ratio": (0, _log_change),
        "zeros": (1, _zeros),
        "variation": (0, _variation),
    },
    "clip": {
        "level": (0, lambda v: float(np.median(v))),
        "ratio": (0, lambda v: _third(v, 2) - _third(v, 0)),
        "zeros": (1, _zeros),
        "variation": (-1, _variation),
    },
    "explained": {
        "level": (-1, lambda v: float(np.clip(np.median(v), -2.0, 1.0))),
        "end": (-1, lambda v: float(np.clip(_third(v, 2), -2.0, 1.0))),
        "worst": (-1, lambda v: -float(np.arcsinh(max(-v.min(), 0.0)))),
        "low": (1, lambda v: float(np.mean(v < NO_EXPLANATION))),
        "variation": (0, _jitter),
        "step": (0, lambda v: _step(v)[0]),
    },
    "value loss": {
        "level": (0, _log_level),
        "ratio": (0, _log_change),
        "peak": (1, _log_peak),
        "same": (1, _same),
    },
    "loss": {
        "level": (0, _log_level),
        "ratio": (0, _log_change),
        "peak": (1, _log_peak),
        "same": (1, _same),
    },
    "policy loss": {
        "level": (0, _log_level),
        "peak": (1, _log_peak),
        "ratio": (0, _log_change),
    },
    "gradient": {"level": (0, _log_level), "peak": (1, _log_peak), "ratio": (0, _log_change)},
    "rate": {"level": (0, _log_level), "zeros": (1, _zeros), "peak": (1, _log_peak)},
    "epsilon": {
        "end": (1, lambda v: float(v[-1])),
        "fall": (0, lambda v: float(v[0] - v[-1])),
    },
    "temperature": {"level": (0, _log_level), "ratio": (0, _log_change)},
    "q": {"growth": (1, lambda v: float(np.arcsinh(np.abs(v[-len(v) // 3 :]).max()))),
          "change": (0, _change)},
    "speed": {"ratio": (-1, _log_change)},
}  # fmt: skip


def _relations(curves: Mapping[str, Array | None]) -> dict[str, Facts]:
    """Return the relations of two metrics, and which of two changed first."""
    nan = float("nan")
    found = {}
    outcome = curves["return"]
    for name in ("entropy", "kl", "value loss", "length", "explained"):
        other = curves[name]
        value = nan
        if outcome is not None and other is not None:
            pair = [np.interp(_GRID, np.linspace(0, 1, len(v)), v) for v in (outcome, other)]
            if min(np.std(pair, axis=1)) > TINY:
                value = float(np.corrcoef(np.diff(_smooth(pair)))[0, 1])
        found[f"return with {name}"] = Facts(0, value)
    for name in ("entropy", "kl", "value loss", "length"):
        other = curves[name]
        value = nan
        if outcome is not None and other is not None:
            (fall, at), (size, other_at) = _step(outcome), _step(other)
            both = min(abs(fall), 4.0) * min(abs(size), 4.0) / 16.0
            value = both * float(np.sign(at - other_at))
        found[f"{name} before return"] = Facts(0, value)
    loss, value = curves["value loss"], nan
    if outcome is not None and loss is not None:
        spread = max(float(np.var(outcome)), TINY)
        value = float(np.log10(max(float(np.median(np.abs(loss))), TINY) / spread))
    found["value loss over returns"] = Facts(0, _squash(value))
    return found


_GRID = np.linspace(0, 1, 24)


def _smooth(pair: list[Array]) -> Array:
    return np.array([values.reshape(12, 2).mean(axis=1) for values in pair])


def _columns(trace: rlvitals.Trace) -> dict[str, Facts]:
    """Return what all columns of the optimiser show together."""
    heads = ("policy/", "value/", "optimiser/", "exploration/entropy")
    steady = ("optimiser/learning_rate", "policy/clip_range", "optimiser/updates")
    names = [n for n in trace.series if n.startswith(heads) and n not in steady]
    logged = [s for n in names if (s := trace.numbers(n, MIN_POINTS)) is not None]
    frozen = [_same(s.values) > FROZEN_SHARE for s in logged]
    updates = trace.numbers("optimiser/updates", 1)
    span = max(trace.last_step - trace.first_step, 1)
    starts = [(int(s.steps[0]) - trace.first_step) / span for s in logged]
    return {
        "frozen columns": Facts(1, float(np.mean(frozen)) if frozen else float("nan")),
        "learning starts": Facts(1, min(starts) if starts else float("nan")),
        "no updates": Facts(
            1, float(updates.values[-1] <= 0) if updates is not None else float("nan")
        ),
    }


def _findings(diagnosis: rlvitals.Diagnosis) -> dict[str, Facts]:
    """Return the gravest finding of each class: 0 none, 1 a note, 2 a warning, 3 an error."""
    strengths: dict[str, float] = {f"finding: {name}": 0.0 for name in CLASSES}
    strengths |= {"finding: no-learning": 0.0, "finding: others": 0.0}
    for rule, finding in diagnosis.findings:
        name = CLASS_BY_RULE.get(
            rule.name, "no-learning" if rule.name == "no-learning" else "others"
        )
        key = f"finding: {name}"
        strengths[key] = max(strengths[key], 1.0 + float(finding.severity))
    word = str(diagnosis.verdict.word)
    facts = {key: Facts(1, value) for key, value in strengths.items()}
    facts["verdict: bad"] = Facts(1, float(word in {"stalled", "collapsed", "unstable"}))
    facts["verdict: good"] = Facts(-1, float(word in {"learning", "converged", "plateau"}))
    return facts
