"""Decide from successive diagnoses whether a running training should stop.

    rule = StopRule()
    if reason := rule.update(diagnosis):
        ...

A run should stop if an error is present in three diagnoses, each of a log at least 5 % longer, and
its outcome improves at none of them. Nothing is decided before learning has begun. A fall that the
outcome alone shows may be a task that changed, as an opponent does in self-play: it counts once
the run had as long to learn again as it took to learn, and does not.
`benchmarks/stopping.py` counts the healthy runs that this stops, and the compute that it saves.
"""

import numpy as np

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import order_chance
from rlvitals.rules.going_on import in_grace
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.standing import up
from rlvitals.types import Trace

# Of 1 to 6, chosen on the splits `tuning` and `seen` of `benchmarks/stopping.py`: from 2 to 3, a
# third fewer of the runs are stopped that end well, and a tenth less compute is saved.
MIN_JUDGEMENTS = 3


class StopRule:
    """The judgements of one run, in order."""

    def __init__(self) -> None:
        """Start with none."""
        self._errors: frozenset[str] = frozenset()  # rules whose error has stood so far
        self._count = 0  # judgements at which they stood
        self._step = 0  # of the last of these

    def update(self, diagnosis: Diagnosis) -> str:
        """Return why the run should stop; "" where it should not."""
        trace, errors = diagnosis.trace, find_errors(diagnosis)
        lasting = errors & self._errors
        if not lasting:
            self._errors, self._count, self._step = errors, 1, trace.last_step
            return ""
        self._errors = lasting
        length = max(self._step - trace.first_step, 1)
        # Judgements count that are 5 % of the steps apart.
        if trace.last_step - self._step >= 0.05 * length:
            self._count, self._step = self._count + 1, trace.last_step
        if self._count < MIN_JUDGEMENTS:
            return ""
        rule, finding = next(pair for pair in diagnosis.findings if pair[0].name in lasting)
        return f"{rule.name}: {finding.summary}"


def find_errors(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the rules with an error that counts: none while the outcome improves, or early."""
    trace = diagnosis.trace
    if in_grace(trace) or verdict_trend(trace).improves:
        return frozenset()
    return frozenset(
        rule.name
        for rule, finding in diagnosis.findings
        if finding.severity is Severity.ERROR
        and not (rule.name == "return-collapse" and _may_recover(trace, finding))
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
