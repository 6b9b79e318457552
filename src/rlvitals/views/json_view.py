"""The nouns as strict JSON, field by field under their own names.

Every document holds `"format": 1`. JSON has no NaN and no infinity: NaN is `null`, infinities
are the texts "Infinity" and "-Infinity". A metric stands for itself by its name, a severity by
its word. A diagnosis tells how long each series is; `trace` gives the columns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import IntEnum
from math import isfinite, isnan

import numpy as np

from rlvitals.diagnosis.coverage import unlocks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.forecast import Forecast
from rlvitals.diagnosis.remedies import neutral
from rlvitals.diagnosis.replay import Retraction
from rlvitals.diagnosis.root_cause import Alternative
from rlvitals.errors import VitalsError
from rlvitals.following.changes import Change, Cleared, Fired, Judged, Points, Regraded
from rlvitals.metrics.metric import Metric
from rlvitals.rules import CATALOGUE
from rlvitals.rules.going_on import liveness
from rlvitals.rules.rate import Rate
from rlvitals.rules.rule import Rule
from rlvitals.types import Series, Trace
from rlvitals.views import lists
from rlvitals.views import rules as rulebook

FORMAT = 1
HELD = ("series", "histograms", "texts", "tables")  # what a trace holds by key
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def diagnosis(found: Diagnosis) -> str:
    """Write one diagnosis."""
    return _document({"format": FORMAT, **_diagnosis(found)})


def diagnoses(runs: Sequence[tuple[str, Diagnosis | VitalsError]]) -> str:
    """Write the diagnoses of several runs as a list; a run that cannot be read holds its error."""
    documents: list[Json] = []
    for name, found in runs:
        if isinstance(found, Diagnosis):
            documents.append({"format": FORMAT, **_diagnosis(found)})
        else:
            error: Json = {"problem": found.problem, "where": found.where, "hint": found.hint}
            documents.append({"format": FORMAT, "run": name, "error": error})
    return _document(documents)


def trace(run: Trace) -> str:
    """Write a trace with its columns."""
    return _document({"format": FORMAT, **_trace(run, columns=True)})


def rules() -> str:
    """Write the catalogue, each rule with its kind and what it sees."""
    return _document({"format": FORMAT, "rules": [_listed(rule) for rule in CATALOGUE]})


def change(told: Change) -> str:
    """Write one change of a run that is followed, on one line.

    Points that were there when the run was found, and a judgement's traces, are told by how many
    there are.
    """
    said: dict[str, Json] = {"format": FORMAT, "change": type(told).__name__.lower()}
    said |= {f.name: _plain(getattr(told, f.name)) for f in fields(told) if f.name not in SHORT}
    match told:
        case Points():
            told_as = _extent if told.first else _columns
            said["series"] = {_text(key): told_as(one) for key, one in told.series.items()}
        case Judged():
            found = told.diagnosis
            said |= {"verdict": found.verdict.word.value, "why": _text(found.verdict.why)}
            said |= {"step": found.trace.last_step, "profile": found.trace.profile.value}
            said["findings"] = {
                rule.name: finding.severity.name.lower() for rule, finding in found.findings
            }
        case Fired() | Regraded() | Cleared():
            said["rule"] = told.rule.name
    return json.dumps(said, allow_nan=False, ensure_ascii=True)


SHORT = ("series", "diagnosis", "rule")  # of a change: told by what they come to


def _listed(rule: Rule) -> Json:
    _, sees, _, _ = lists.rule(rule)
    return {"kind": rulebook.kind(rule), "sees": sees, **_rule(rule)}


def coverage(runs: Sequence[Diagnosis]) -> str:
    """Write which rules could judge each run, and what would let the others."""
    return _document({"format": FORMAT, "runs": [_coverage(found) for found in runs]})


def _coverage(found: Diagnosis) -> Json:
    more, _ = unlocks(found.trace, found.undecided)
    waiting: list[Json] = [
        {"rule": rule.name, "why": answer.why, "wants": _plain(answer.wants)}
        for rule, answer in found.undecided
    ]
    return {
        "run": _text(found.trace.name),
        "profile": found.trace.profile.value,
        "asked": found.coverage.asked,
        "judged": _plain(rulebook.judged(found)),
        "unlocks": _plain(more),
        "undecided": waiting,
        "not_for_this_profile": _plain(rulebook.apart(found)),
    }


def document(members: Mapping[str, object]) -> str:
    """Write what a view has chosen to tell, under its own names."""
    return _document({"format": FORMAT, **{key: _plain(value) for key, value in members.items()}})


def noun(told: object) -> str:
    """Write a noun field by field."""
    return _document({"format": FORMAT, **_members(told)})


def _document(content: Json) -> str:
    # ASCII alone: what a log's names hold can neither break a parser nor move a cursor.
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=True)


def _diagnosis(found: Diagnosis) -> dict[str, Json]:
    return {
        "can_tell": found.can_tell,
        "goes_on": _plain(liveness(found.trace)),
        **{f.name: _plain(getattr(found, f.name)) for f in fields(found)},
    }


def _trace(run: Trace, *, columns: bool) -> dict[str, Json]:
    series: dict[str, Json] = {
        _text(name): _columns(s) if columns else _extent(s) for name, s in run.series.items()
    }
    rest = {f.name: _plain(getattr(run, f.name)) for f in fields(run) if f.name not in HELD}
    held: dict[str, Json] = {
        name: {
            _text(key): _plain(found) if columns else {"entries": len(found)}
            for key, found in getattr(run, name).items()
        }
        for name in HELD[1:]
    }
    return {**rest, "series": series, **held}


def _extent(series: Series) -> Json:
    if not len(series):
        return {"points": 0}
    return {
        "points": len(series),
        "first_step": int(series.steps[0]),
        "last_step": int(series.steps[-1]),
    }


def _columns(series: Series) -> Json:
    columns = (series.steps, series.times, series.values)
    names = ("steps", "times", "values")
    return {
        name: [_plain(v) for v in column.tolist()]
        for name, column in zip(names, columns, strict=True)
    }


def _plain(value: object) -> Json:  # noqa: C901, PLR0911 - one case for each kind of value
    match value:
        case None | bool():
            return value
        case IntEnum():
            return value.name.lower()
        case str():
            return _text(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _number(float(value))
        case Metric():
            return value.name
        case Trace():
            return _trace(value, columns=False)
        case Rule():
            return _rule(value)
        case Mapping():
            return {_text(str(k)): _plain(v) for k, v in value.items()}
        case tuple() | list():
            return [_plain(v) for v in value]
        case np.ndarray():
            return [_plain(v) for v in value.tolist()]
    return _fields(value)


def _members(value: object) -> dict[str, Json]:
    if isinstance(value, type) or not is_dataclass(value):
        raise TypeError(f"{value!r} is no noun")
    return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}


def _fields(value: object) -> Json:
    told = _members(value)
    match value:
        case Rate():
            told |= {"false_alarms": _plain(value.false_alarms), "recall": _plain(value.recall)}
        case Forecast():
            told |= {"sentence": value.sentence}
        case Alternative() | Retraction():
            told["rule"] = value.rule.name  # it stands in full among the rest
    return told


def _rule(rule: Rule) -> dict[str, Json]:
    """Everything but the function that checks and the page that explains."""
    kept = (f.name for f in fields(rule) if f.name not in {"check", "doc"})
    told: dict[str, Json] = {name: _plain(getattr(rule, name)) for name in kept}
    return {**told, "remedies": [neutral(remedy) for remedy in rule.remedies]}


def _number(value: float) -> Json:
    if isfinite(value):
        return value
    return None if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(text: str) -> str:
    # Half of a surrogate pair, from a file name that is not UTF-8, is no JSON text.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
