"""Compare two diagnoses of one run."""

from collections.abc import Iterator, Mapping

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.replay import why_taken_back
from rlvitals.following.changes import Change, Cleared, Fired, Judged, Regraded
from rlvitals.rules.rule import Answer, Clear, Finding, Rule

RunAndTime = tuple[str, float]  # the run's name, and the time


def find_changes(
    run_and_time: RunAndTime, previous: Diagnosis | None, current: Diagnosis
) -> Iterator[Change]:
    """Yield the differences of a diagnosis from the previous one, the verdict first."""
    step = current.trace.last_step
    has_turned = previous is None or previous.verdict.word is not current.verdict.word
    yield Judged(*run_and_time, current, has_turned, previous is None)
    old, new = _findings_by_rule(previous), _findings_by_rule(current)
    causes = {below.rule.name: case.rule.name for case in current.every for below in case.symptoms}
    for name, (rule, finding) in old.items():
        if name not in new:
            yield Cleared(*run_and_time, rule, finding, _explain_clear(rule, current), step)
    for name, (rule, finding) in new.items():
        if name not in old:
            yield Fired(*run_and_time, rule, finding, step, causes.get(name, ""))
        elif old[name][1].severity is not finding.severity:
            yield Regraded(*run_and_time, rule, finding, old[name][1].severity, step)


def _findings_by_rule(diagnosis: Diagnosis | None) -> Mapping[str, tuple[Rule, Finding]]:
    return {
        rule.name: (rule, finding) for rule, finding in (diagnosis.findings if diagnosis else ())
    }


def _explain_clear(rule: Rule, current: Diagnosis) -> str:
    """Return why a finding no longer applies."""
    for muted in current.muted:
        if muted.rule.name == rule.name:
            return f"muted: {muted.reason}"
    answer: Answer | None = next((a for r, a in current.undecided if r.name == rule.name), None)
    if answer is None and any(clear_rule.name == rule.name for clear_rule in current.clear):
        answer = Clear()
    if answer is None:
        return f"it is not asked of a run of the kind {current.trace.profile}"
    return why_taken_back(answer, current.trace)
