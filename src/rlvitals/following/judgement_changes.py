"""Two judgements of one run, told as what differs between them."""

from collections.abc import Iterator, Mapping

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.replay import why_taken_back
from rlvitals.following.changes import Change, Cleared, Fired, Judged, Regraded
from rlvitals.rules.rule import Answer, Clear, Finding, Rule

Named = tuple[str, float]  # the run's name, and the time


def differences(named: Named, before: Diagnosis | None, now: Diagnosis) -> Iterator[Change]:
    """Yield what a judgement says that the one before it did not, the verdict first."""
    step = now.trace.last_step
    turned = before is None or before.verdict.word is not now.verdict.word
    yield Judged(*named, now, turned, before is None)
    old, new = _by_rule(before), _by_rule(now)
    causes = {below.rule.name: case.rule.name for case in now.every for below in case.symptoms}
    for name, (rule, finding) in old.items():
        if name not in new:
            yield Cleared(*named, rule, finding, _why(rule, now), step)
    for name, (rule, finding) in new.items():
        if name not in old:
            yield Fired(*named, rule, finding, step, causes.get(name, ""))
        elif old[name][1].severity is not finding.severity:
            yield Regraded(*named, rule, finding, old[name][1].severity, step)


def _by_rule(found: Diagnosis | None) -> Mapping[str, tuple[Rule, Finding]]:
    return {rule.name: (rule, finding) for rule, finding in (found.findings if found else ())}


def _why(rule: Rule, now: Diagnosis) -> str:
    """Say why a finding no longer stands."""
    for muted in now.muted:
        if muted.rule.name == rule.name:
            return f"muted: {muted.reason}"
    answer: Answer | None = next((a for r, a in now.undecided if r.name == rule.name), None)
    if answer is None and any(one.name == rule.name for one in now.clear):
        answer = Clear()
    if answer is None:
        return f"it is not asked of a run of the kind {now.trace.profile}"
    return why_taken_back(answer, now.trace)
