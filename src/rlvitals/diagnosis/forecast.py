"""Forecast of the step at which the metric of a persisting fault reaches a given level."""

from rlvitals.metrics.metric import Bound
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.known_task import environment
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.shapes import start
from rlvitals.rules.standing import OUTCOME_NAMES, label, outcome
from rlvitals.signals.forecast import Crossing, crossing
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

EXPLORATION_FLOOR_SHARE = 0.05  # of its first level, where exploration is over
FLOOR_METRICS = (
    "exploration/entropy",
    "exploration/std",
)  # forecast to a share of their first level
BOUND_METRICS = (  # forecast to the limit of the rule
    "policy/kl_to_reference",
    "policy/kl_to_reference_per_token",
    "policy/approx_kl",
    "language/truncated_share",
)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The step at which a metric will reach a level, if it goes on as it has of late."""

    metric: str  # canonical name
    level: float  # in the unit of the metric
    what: str  # what the level is: "5 % of its start"
    at: int  # step
    low: int  # step: the lower end of the 90 % interval
    high: int  # step: its upper end

    @property
    def sentence(self) -> str:
        """Say it with its numbers, no digit more than the interval allows."""
        # The power of ten that is about a twentieth of the interval's width.
        unit = int(10 ** max(len(str(max((self.high - self.low) // 20, 1))) - 1, 0))
        middle, low, high = (round(step / unit) * unit for step in (self.at, self.low, self.high))
        level = f"{self.level:.3g} ({self.what})"
        when = f"step {middle:,} ({low:,} to {high:,})"
        return f"at this pace {label(self.metric)} reaches {level} at {when}"


def forecast(trace: Trace, finding: Finding) -> Forecast | None:
    """Foretell where a finding that goes on leads; None where that is done, or cannot be told."""
    series = finding.curve.series if finding.curve else trace.get(finding.metric)
    if series is None or not len(series) or finding.ended < int(series.steps[-1]) or is_over(trace):
        return None
    target = finding.heading or _target(trace, finding, series)
    name = finding.curve.name if finding.curve else finding.metric
    return None if target is None else _ahead(trace, series, name, target)


def outlook(trace: Trace) -> Forecast | None:
    """Foretell when a return that rises will have solved its task."""
    trend, env = verdict_trend(trace), environment(trace)
    if is_over(trace) or trend.state != "rising" or env is None or env.solved_return is None:
        return None
    picked = outcome(trace)
    if picked is None or not picked[0].endswith("return"):
        return None
    return _ahead(trace, picked[1], picked[0], Bound(env.solved_return, f"{env.name} is solved"))


def is_over(trace: Trace) -> bool:
    """Tell a run that has come to its end: nothing lies ahead of it."""
    budget_reached = trace.budget is not None and trace.last_step >= trace.budget.steps
    return budget_reached or trace.lifecycle.over


def _target(trace: Trace, finding: Finding, series: Series) -> Bound | None:
    """Return the level that counts for a metric, where it is not there yet."""
    first = start(series)
    if finding.metric in FLOOR_METRICS and first is not None and first > 0:
        return Bound(EXPLORATION_FLOOR_SHARE * first, f"{EXPLORATION_FLOOR_SHARE:.0%} of its start")
    if finding.metric in OUTCOME_NAMES and first is not None and finding.severity > Severity.NOTE:
        picked = outcome(trace)
        better = picked is not None and picked[0] == finding.metric
        return Bound(first, "where it started") if better else None
    return finding.bound if finding.metric in BOUND_METRICS else None


def _ahead(trace: Trace, series: Series, name: str, target: Bound) -> Forecast | None:
    points = series.finite()
    reach = crossing(points.steps, points.values, target.value, confidence=0.90)
    last = trace.last_step
    if not isinstance(reach, Crossing) or reach.at <= last:
        return None
    if trace.budget is not None and reach.low > trace.budget.steps:
        return None
    low, high = max(round(reach.low), last), round(reach.high)
    return Forecast(name, target.value, target.origin, round(reach.at), low, high)
