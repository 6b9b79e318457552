"""Find the errors of a run for which a person is worth waking.

`benchmarks/stopping.py` counts the healthy runs that show one at any point of their lives.
"""

import numpy as np

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import order_chance
from rlvitals.rules.going_on import in_grace
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.standing import up
from rlvitals.types import Trace


def find_urgent_errors(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the rules with an urgent error: all errors of a run that has ended.

    Of a run that goes on, none while the outcome improves, or before learning has begun. A fall
    that the outcome alone shows may be a task that changed, as an opponent does in self-play: it is
    urgent once the run had as long to learn again as it took to learn, and does not.
    """
    trace = diagnosis.trace
    errors = {
        rule.name: finding
        for rule, finding in diagnosis.findings
        if finding.severity is Severity.ERROR
    }
    if trace.lifecycle.over:
        return frozenset(errors)
    if in_grace(trace) or verdict_trend(trace).improves:
        return frozenset()
    return frozenset(
        name
        for name, finding in errors.items()
        if name != "return-collapse" or not _may_recover(trace, finding)
    )


def _may_recover(trace: Trace, finding: Finding) -> bool:
    """Return True while a fall is younger than the time that the gain took, or is being made up."""
    series, sign = trace[finding.metric].finite(), up(finding.metric)
    rise, fall = series.until(finding.began), series.since(finding.began)
    levels, fallen_levels = (
        np.array([sign * piece.mean() for piece in np.array_split(values, count) if piece.size])
        for values, count in ((rise.values, 10), (fall.values, 8))
    )
    # Nine tenths of the gain: a run may stay at its best for long.
    block = int((levels >= levels[0] + 0.9 * (levels.max() - levels[0])).argmax())
    gain_step = int(np.array_split(rise.steps, 10)[block][-1])
    is_young = trace.last_step - finding.began < gain_step - trace.first_step
    return is_young or order_chance(fallen_levels) <= 0.05
