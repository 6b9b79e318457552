"""Write diagnoses as JSON: the verdict, its causes, and each finding once.

A document contains `"format": 2`. Rules are written by name: `rlvitals rules --json` prints their
fields. `docs/json.md` lists the keys.
"""

from collections.abc import Sequence

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.remedies import neutral
from rlvitals.diagnosis.replay import Retraction
from rlvitals.diagnosis.root_cause import Case, flat
from rlvitals.errors import VitalsError
from rlvitals.rules.going_on import liveness
from rlvitals.views import json_view
from rlvitals.views import rules as rulebook
from rlvitals.views.json_view import Json, plain

DIAGNOSIS_FORMAT = 2


def diagnosis(result: Diagnosis) -> str:
    """Return one diagnosis as JSON."""
    return json_view.text_of(_document(result))


def diagnoses(runs: Sequence[tuple[str, Diagnosis | VitalsError]]) -> str:
    """Return the diagnoses of several runs as a list; an unreadable run contains its error."""
    documents: list[Json] = []
    for name, result in runs:
        if isinstance(result, Diagnosis):
            documents.append(_document(result))
        else:
            error: Json = {"problem": result.problem, "where": result.where, "hint": result.hint}
            documents.append({"format": DIAGNOSIS_FORMAT, "run": name, "error": error})
    return json_view.text_of(documents)


def _document(result: Diagnosis) -> Json:
    content: Json = {
        "format": DIAGNOSIS_FORMAT,
        "run": plain(result.trace.name),
        "profile": plain(result.trace.profile),
        "verdict": plain(result.verdict),
        "can_tell": result.can_tell,
        "goes_on": plain(liveness(result.trace)),
        "summary": plain(result.tldr),
        "causes": [_cause(rank, case) for rank, case in enumerate(result.cases, 1)],
        "findings": [entry for case in result.cases for entry in _findings(case, "")],
        "muted": [
            {
                "rule": muted.rule.name,
                "severity": plain(muted.finding.severity),
                "summary": plain(muted.finding.summary),
                "reason": plain(muted.reason),
            }
            for muted in result.muted
        ],
        "retracted": [_retraction(retraction) for retraction in result.retracted],
        "new": plain(result.new),
        "outlook": plain(result.outlook),
        "siblings": plain(result.siblings),
        "clear": [rule.name for rule in result.clear],
        "undecided": [
            {"rule": rule.name, "why": plain(answer.why), "wants": plain(answer.wants)}
            for rule, answer in result.undecided
        ],
        "coverage": plain(result.coverage),
        "trace": plain(result.trace),
    }
    return json_view.round_numbers(content)


def _cause(rank: int, case: Case) -> Json:
    """Return a root cause: the findings that it explains, for and against, and what to change."""
    finding = case.finding
    explained = flat(case)[1:]
    sentences = [f"{below.rule.name}: {below.finding.summary}" for below in explained]
    return {
        "name": case.rule.name,
        "class": rulebook.kind(case.rule),
        "rank": rank,
        "severity": plain(case.severity),
        "for": plain((finding.summary, *finding.evidence, *sentences)),
        "against": plain(finding.counter),
        "likely": plain(finding.causes or case.rule.causes),
        "remedy": plain(finding.remedies or tuple(map(neutral, case.rule.remedies))),
        "settings": plain(case.knobs),
        "samples": 0 if case.rate is None else case.rate.healthy,
        "rate": plain(case.rate),
        "own_rate": plain(case.own_rate),
        "explains": [below.rule.name for below in explained],
        "alternatives": [
            {"rule": other.rule.name, "why": plain(other.why)} for other in case.alternatives
        ],
        "not_excluded": [
            {"rules": plain(unlock.rules), "log": plain(unlock.names)}
            for unlock in case.open_causes
        ],
        "cost": plain(case.waste),
        "forecast": plain(case.forecast),
    }


def _findings(case: Case, cause: str) -> list[Json]:
    """Return a finding and those that it explains, each with the rule that explains it."""
    finding = case.finding
    entry: Json = {
        "rule": case.rule.name,
        "severity": plain(finding.severity),
        "severity_of_rule": plain(finding.severity if case.said is None else case.said),
        "summary": plain(finding.summary),
        "metric": finding.metric,
        "began": finding.began,
        "ended": finding.ended,
        "known": finding.known,
        "observed": plain(finding.observed),
        "limit": plain(finding.bound) if finding.has_limit else None,
        "cause": cause or None,
    }
    below = [entry for symptom in case.symptoms for entry in _findings(symptom, case.rule.name)]
    return [entry, *below]


def _retraction(retraction: Retraction) -> Json:
    return {
        "rule": retraction.rule.name,
        "severity": plain(retraction.finding.severity),
        "summary": plain(retraction.finding.summary),
        "reported": retraction.said,
        "taken_back": retraction.taken_back,
        "why": plain(retraction.why),
    }
