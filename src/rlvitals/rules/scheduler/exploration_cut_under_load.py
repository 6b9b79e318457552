"""The temperature controller takes exploration away while the cluster is under load.

## What it sees
`exploration/temperature`, outside of pulses, more than half of the way from its base
(`exploration/base_temperature`, else its own start) down to the run's `min_temperature`, else 0.5,
in at least half of 20 successive decisions, over a fifth of the run so far; and its changes follow
those of the load, at once or up to 20 decisions later, against chance: the correlation of the
two series' differences, beyond what the memory left in them and the 41 lags looked at
allow (1 % in all). The load is `scheduler/latency_pressure`, else latency itself, else
`scheduler/qps_pressure`. Nothing is reported where latency is proven to fall meanwhile: then the
cut has helped. A note, never more.

## Why it matters
High latency may be the policy's own doing. A controller that answers it with less exploration
makes the policy repeat what caused it: latency stays high, so the temperature stays low.

## What to do
Let pressure cut the temperature less: lower `latency_sensitivity` and `qps_sensitivity`, or raise
`min_temperature`. Then look at why latency is high: whether one replica takes it all.

## When it is wrong
Under a load that no policy could serve, exploring costs latency and teaches little: there the
cut is right. That two series move together says neither that one causes the other, nor that a
third does not move both: a pulse or a change of the arrival rate does. A temperature that
follows the load slowly, and something else from decision to decision, is not found.

## References
- Pyper and Peterman 1998, "Comparison of methods to account for autocorrelation in correlation
  analyses of fish data": the effective number of pairs.
"""

from rlvitals.metrics.catalogue.exploration import BASE_TEMPERATURE, TEMPERATURE
from rlvitals.metrics.catalogue.outcome import LATENCY
from rlvitals.metrics.catalogue.scheduler import (
    LATENCY_EMA,
    LATENCY_PRESSURE,
    QPS_PRESSURE,
    RAW_LATENCY,
)
from rlvitals.metrics.metric import Bound, Metric
from rlvitals.rules import weigh
from rlvitals.rules.derived_series import (
    TEMPERATURE_WINDOW,
    outside_pulses,
    temperature_lag,
)
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import MIN_LASTING_SHARE, Stretch, below, start
from rlvitals.rules.standing import standing
from rlvitals.signals.lagged import Lagged
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MIN_CUT_DEPTH = Threshold(
    "exploration-cut-under-load.depth", 0.5, "share of the way from the base to the lowest"
)
MIN_LOAD_CORRELATION = Threshold(
    "exploration-cut-under-load.strength", 0.3, "least |correlation| that is worth a note"
)
LOAD_METRICS = (LATENCY_PRESSURE, LATENCY_EMA, RAW_LATENCY, LATENCY, QPS_PRESSURE)
LOAD_LATENCIES = (LATENCY_EMA, RAW_LATENCY, LATENCY, LATENCY_PRESSURE)


@dataclass(frozen=True, slots=True)
class _Load:
    """What the temperature answers to."""

    metric: Metric
    values: Series
    correlation: Lagged


def check(trace: Trace) -> Answer:
    """Find a lasting cut of the temperature, then what it follows, then whether it helped."""
    temperature = outside_pulses(trace)
    base, floor = _base(trace, temperature), TEMPERATURE.band(trace.profile).floor(trace)
    if len(temperature) < 2 * TEMPERATURE_WINDOW or base is None or floor is None:
        return Undecided("too few decisions outside of pulses", (TEMPERATURE.name,))
    if floor.value >= base:
        return Undecided("the base temperature is the lowest one: nothing can be cut")
    limit = MIN_CUT_DEPTH.bound(trace, "default, between its base and its lowest")
    cut = base - limit.value * (base - floor.value)
    stretch = below(temperature, cut, TEMPERATURE_WINDOW)
    if stretch is None or stretch.share < MIN_LASTING_SHARE:
        return Clear()
    loads = _loads(trace, temperature)
    if not loads:
        return Undecided("too little of the load's changes is logged to tell what it follows")
    leading = [load for load in loads if _follows(trace, load.correlation)]
    if not leading or _latency_falls(trace, stretch):
        return Clear()
    return _finding(trace, stretch, base, Bound(cut, limit.origin), leading[0])


def _base(trace: Trace, temperature: Series) -> float | None:
    """Return the temperature without pressure."""
    logged = trace.get(BASE_TEMPERATURE.name)
    level = None if logged is None else median(logged.finite().values)
    return start(temperature) if level is None else level


def _loads(trace: Trace, temperature: Series) -> list[_Load]:
    """Compare each measure of the load with the temperature, where both are logged."""
    loads = []
    for metric in LOAD_METRICS:
        load = trace.numbers(metric.name)
        lag = None if load is None else temperature_lag(load, temperature)
        if load is not None and lag is not None:
            loads.append(_Load(metric, load, lag))
    return loads


def _follows(trace: Trace, correlation: Lagged) -> bool:
    """Tell a temperature that falls when or after the load rises, beyond chance."""
    strong = correlation.correlation <= -MIN_LOAD_CORRELATION.on(trace)
    return correlation.is_significant and correlation.lag >= 0 and strong


def _latency_falls(trace: Trace, stretch: Stretch) -> bool:
    """Tell whether latency is proven to come down while the temperature is low."""
    for metric in LOAD_LATENCIES:
        if metric.name in trace:
            fit = trend(stretch.of(trace[metric.name]).finite().values)
            return fit is not None and fit.falls
    return False


def _finding(trace: Trace, stretch: Stretch, base: float, limit: Bound, load: _Load) -> Finding:
    outcome_trend = standing(trace, since=stretch.start)
    evidence, counter = weigh.sides(outcome_trend)
    lagged, name = load.correlation, load.metric.title.lower()
    delay_text = "at the same decision" if lagged.lag == 0 else f"{lagged.lag} decisions later"
    follows = (
        f"its changes follow those of {name} {delay_text}: correlation {lagged.correlation:.2f}, "
        f"by chance within {lagged.limit:.2f} ({lagged.effective:.0f} independent pairs)"
    )
    levels = first_last_change(load.values.values)
    course = (f"{name} goes {levels[0]:.3g} to {levels[1]:.3g}",) if levels else ()
    return Finding(
        f"the sampling temperature is cut to {stretch.worst:.2f} from a base of {base:.2f} while "
        f"{name} is high, and latency does not come down",
        severity=Severity.NOTE,
        metric=TEMPERATURE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=(follows, *course, *evidence),
        counter=counter,
    )


RULE = Rule(
    name="exploration-cut-under-load",
    needs=(TEMPERATURE,),
    needs_any=LOAD_METRICS,
    at_least=2 * TEMPERATURE_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "latency_sensitivity or qps_sensitivity is high beside the pressure",
        "latency that the policy itself causes, by sending all to one replica",
    ),
    remedies=(
        "lower latency_sensitivity and qps_sensitivity, or raise min_temperature",
        "raise the weight of latency and of imbalance in the reward",
        "set the latency target to what the cluster can keep",
    ),
    profiles=(Profile.SCHEDULER_PPO,),
    thresholds=(MIN_CUT_DEPTH, MIN_LOAD_CORRELATION),
)
