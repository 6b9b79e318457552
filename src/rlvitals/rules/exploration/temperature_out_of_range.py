"""The sampling temperature leaves its range outside of pulses.

## What it sees
`exploration/temperature` above the upper or below the lower limit (the run's `max_temperature`
and `min_temperature`, else 2.0 and 0.5) in at least half of 20 successive decisions that are
not marked as pulses. Points marked by `exploration/is_pulsing` are left out.

## Why it matters
Too hot, and the sampled actions say little of the policy that is trained; too cold, and nothing
new is tried. Either way the ratio of new to old probabilities is not that of the sampler.

## What to do
Check the controller's targets and sensitivities: a pressure that never changes sign pushes the
temperature to one end. `qps_sensitivity` and `latency_sensitivity` scale it.

## When it is wrong
Some controllers do not mark the last step of a pulse: isolated points beyond the limit are
therefore not counted.

## References
- Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", on tuned temperatures.
"""

from rlvitals.metrics.catalogue.exploration import TEMPERATURE
from rlvitals.metrics.metric import Bound
from rlvitals.rules.derived_series import TEMPERATURE_WINDOW, outside_pulses
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import Stretch, above, below
from rlvitals.rules.standing import standing
from rlvitals.types import Profile, Series, Trace

MAX_TEMPERATURE = Threshold(
    "temperature-out-of-range.high",
    2.0,
    "sampling temperature; where it is not set, the run's max_temperature",
)
MIN_TEMPERATURE = Threshold(
    "temperature-out-of-range.low",
    0.5,
    "sampling temperature; where it is not set, the run's min_temperature",
)
MAX_OUTSIDE_SHARE = Threshold(
    "temperature-out-of-range.share",
    0.5,
    "share of 20 successive decisions that are out of range",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Leave pulses out, then compare with both ends of the range."""
    temperature = outside_pulses(trace)
    if len(temperature) < TEMPERATURE_WINDOW:
        return Undecided("too few decisions outside of pulses", (TEMPERATURE.name,))
    band = TEMPERATURE.band(trace.profile)
    high = (
        MAX_TEMPERATURE.bound(trace, "")
        if MAX_TEMPERATURE.name in trace.thresholds
        else band.ceiling(trace)
    )
    low = (
        MIN_TEMPERATURE.bound(trace, "")
        if MIN_TEMPERATURE.name in trace.thresholds
        else band.floor(trace)
    )
    share = MAX_OUTSIDE_SHARE.on(trace)
    if high and (stretch := above(temperature, high.value, TEMPERATURE_WINDOW, share)):
        return _finding(trace, temperature, stretch, high, "above")
    if low and (stretch := below(temperature, low.value, TEMPERATURE_WINDOW, share)):
        return _finding(trace, temperature, stretch, low, "below")
    return Clear()


def _finding(trace: Trace, series: Series, stretch: Stretch, bound: Bound, side: str) -> Finding:
    during = series.since(stretch.start).until(stretch.end).values
    outside = during > bound.value if side == "above" else during < bound.value
    improves = standing(trace, since=stretch.start).improves
    return Finding(
        f"the sampling temperature is {side} {bound.value:g} outside of pulses in "
        f"{outside.mean():.0%} of these decisions, {stretch.worst:.2f} at the extreme",
        severity=Severity.NOTE if improves else stretch.severity(Severity.WARNING),
        metric=TEMPERATURE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=bound,
        counter=("the outcome improves all the same",) if improves else (),
    )


RULE = Rule(
    name="temperature-out-of-range",
    needs=(TEMPERATURE,),
    at_least=TEMPERATURE_WINDOW,
    check=check,
    doc=__doc__,
    causes=("the temperature controller's targets or sensitivities", "pulses that are too strong"),
    remedies=(
        "check the controller's target: its pressure should change sign",
        "lower {qps_sensitivity} and {latency_sensitivity}",
        "set {min_temperature} and {max_temperature} to what is meant",
    ),
    profiles=(Profile.SCHEDULER_PPO,),
    thresholds=(MAX_TEMPERATURE, MIN_TEMPERATURE, MAX_OUTSIDE_SHARE),
)
