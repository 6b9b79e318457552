"""Decide from successive diagnoses whether a run that goes on should stop.

    rule = StopRule()
    if reason := rule.update(diagnosis):
        ...

A run should stop where an error stands at two judgements, the second on a log at least 5 % longer,
and its outcome does not improve at either. Nothing is decided before learning has begun.
`benchmarks/stopping.py` counts the healthy runs that this stops, and the compute that it saves.
"""

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.answers import judged
from rlvitals.rules.going_on import in_grace
from rlvitals.rules.rule import Severity

MIN_LOG_GROWTH = 0.05  # of the steps, between the two judgements


class StopRule:
    """The judgements of one run, in order."""

    def __init__(self) -> None:
        """Start with none."""
        self._first_step = 0  # at which these errors were seen first
        self._errors: frozenset[str] = frozenset()  # rules that have stood since

    def update(self, diagnosis: Diagnosis) -> str:
        """Return why the run should stop; "" where it should not."""
        trace, errors = diagnosis.trace, find_errors(diagnosis)
        lasting = errors & self._errors
        self._errors = lasting or errors
        if not lasting:
            self._first_step = trace.last_step
            return ""
        length = max(self._first_step - trace.first_step, 1)
        if trace.last_step - self._first_step < MIN_LOG_GROWTH * length:
            return ""
        rule, finding = next(pair for pair in diagnosis.findings if pair[0].name in lasting)
        return f"{rule.name}: {finding.summary}"


def find_errors(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the rules with an error that counts: none while the outcome improves, or early."""
    trace = diagnosis.trace
    if in_grace(trace) or judged(trace).improves:
        return frozenset()
    return frozenset(
        rule.name for rule, finding in diagnosis.findings if finding.severity is Severity.ERROR
    )
