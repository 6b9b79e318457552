"""Write traces, changes and other results as strict JSON, with the names of their fields.

Every document contains `"format": 1`; a diagnosis has a format of its own (`diagnosis_json`). JSON
has no NaN and no infinity: NaN is `null`, infinities are the strings "Infinity" and "-Infinity". A
metric is written as its name, a severity as its word.
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
from rlvitals.following.changes import Change, Cleared, Fired, Judged, Points, Regraded
from rlvitals.metrics.metric import Metric
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rate import Rate
from rlvitals.rules.rule import Rule
from rlvitals.types import Series, Trace
from rlvitals.views import lists
from rlvitals.views import rules as rulebook

JSON_FORMAT = 1
KEYED_FIELDS = ("series", "histograms", "texts", "tables")  # mappings of a trace
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def trace(run: Trace) -> str:
    """Return a trace with its columns as JSON."""
    return _document({"format": JSON_FORMAT, **_trace(run, columns=True)})


def rules() -> str:
    """Return the catalogue of rules with their kinds and summaries as JSON."""
    entries: list[Json] = [
        {"kind": rulebook.kind(rule), "sees": lists.rule(rule)[1], **_rule(rule)}
        for rule in CATALOGUE
    ]
    return _document({"format": JSON_FORMAT, "rules": entries})


def change(event: Change) -> str:
    """Return one change of a followed run as JSON on one line.

    The first points of a run and the traces of a judgement are written as counts.
    """
    members: dict[str, Json] = {"format": JSON_FORMAT, "change": type(event).__name__.lower()}
    # These fields of a change are written in a short form.
    members |= {
        f.name: plain(getattr(event, f.name))
        for f in fields(event)
        if f.name not in ("series", "diagnosis", "rule")
    }
    match event:
        case Points():
            write_series = _extent if event.first else _columns
            members["series"] = {
                _text(key): write_series(series) for key, series in event.series.items()
            }
        case Judged():
            diagnosis = event.diagnosis
            members |= {
                "verdict": diagnosis.verdict.word.value,
                "why": _text(diagnosis.verdict.why),
            }
            members |= {"step": diagnosis.trace.last_step, "profile": diagnosis.trace.profile.value}
            members["findings"] = {
                rule.name: finding.severity.name.lower() for rule, finding in diagnosis.findings
            }
        case Fired() | Regraded() | Cleared():
            members["rule"] = event.rule.name
    return json.dumps(members, allow_nan=False, ensure_ascii=True)


def coverage(runs: Sequence[Diagnosis]) -> str:
    """Return the rules that could judge each run, and the missing metrics, as JSON."""
    documents: list[Json] = []
    for diagnosis in runs:
        more, _ = unlocks(diagnosis.trace, diagnosis.undecided)
        waiting: list[Json] = [
            {"rule": rule.name, "why": answer.why, "wants": plain(answer.wants)}
            for rule, answer in diagnosis.undecided
        ]
        documents.append(
            {
                "run": _text(diagnosis.trace.name),
                "profile": diagnosis.trace.profile.value,
                "asked": diagnosis.coverage.asked,
                "judged": plain(rulebook.judging_rules(diagnosis)),
                "unlocks": plain(more),
                "undecided": waiting,
                "not_for_this_profile": plain(rulebook.inapplicable_rules(diagnosis)),
            }
        )
    return _document({"format": JSON_FORMAT, "runs": documents})


def document(members: Mapping[str, object]) -> str:
    """Return a document of the given members as JSON."""
    return _document(
        {"format": JSON_FORMAT, **{key: plain(value) for key, value in members.items()}}
    )


def text_of(content: Json) -> str:
    """Return JSON of another format, which has its own version."""
    return _document(content)


def noun(value: object) -> str:
    """Return a dataclass instance as JSON, field by field."""
    return _document({"format": JSON_FORMAT, **_members(value)})


def _document(content: Json) -> str:
    # ASCII only: names from a log can neither break a parser nor move a cursor.
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=True)


def _trace(run: Trace, *, columns: bool) -> dict[str, Json]:
    series: dict[str, Json] = {
        _text(name): _columns(s) if columns else _extent(s) for name, s in run.series.items()
    }
    members = {
        f.name: plain(getattr(run, f.name))
        for f in fields(run)
        if f.name not in {*KEYED_FIELDS, "ranks", "provenance"}  # notes contain the last
    }
    # Of each metric that several ranks log, the ranks: their numbers are in the log.
    members["ranks"] = {_text(key): plain(values.ranks) for key, values in run.ranks.items()}
    by_key: dict[str, Json] = {
        name: {
            _text(key): plain(entries) if columns else {"entries": len(entries)}
            for key, entries in getattr(run, name).items()
        }
        for name in KEYED_FIELDS[1:]
    }
    return {**members, "series": series, **by_key}


def _extent(series: Series) -> Json:
    if not len(series):
        return {"points": 0}
    return {
        "points": series.count,
        "first_step": int(series.steps[0]),
        "last_step": int(series.steps[-1]),
    }


def _columns(series: Series) -> Json:
    columns = (series.steps, series.times, series.values)
    names = ("steps", "times", "values")
    return {
        name: [plain(v) for v in column.tolist()]
        for name, column in zip(names, columns, strict=True)
    }


def plain(value: object) -> Json:  # noqa: C901, PLR0911 - one case for each kind of value
    """Return a value as JSON: a metric by its name, a severity by its word, NaN as None."""
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
            number = float(value)
            if isfinite(number):
                return number
            return None if isnan(number) else "Infinity" if number > 0 else "-Infinity"
        case Metric():
            return value.name
        case Trace():
            return _trace(value, columns=False)
        case Rule():
            return _rule(value)
        case Mapping():
            return {_text(str(k)): plain(v) for k, v in value.items()}
        case tuple() | list():
            return [plain(v) for v in value]
        case np.ndarray():
            return [plain(v) for v in value.tolist()]
    return _fields(value)


def _members(value: object) -> dict[str, Json]:
    if isinstance(value, type) or not is_dataclass(value):
        raise TypeError(f"{value!r} cannot be written as JSON")
    return {f.name: plain(getattr(value, f.name)) for f in fields(value)}


def _fields(value: object) -> Json:
    members = _members(value)
    match value:
        case Rate():
            members |= {"false_alarms": plain(value.false_alarms), "recall": plain(value.recall)}
        case Forecast():
            members |= {"sentence": value.sentence}
    return members


def _rule(rule: Rule) -> dict[str, Json]:
    """Return every field except the check function and the docstring."""
    names = (f.name for f in fields(rule) if f.name not in {"check", "doc"})
    members: dict[str, Json] = {name: plain(getattr(rule, name)) for name in names}
    return {**members, "remedies": [neutral(remedy) for remedy in rule.remedies]}


def round_numbers(content: Json) -> Json:
    """Return JSON with its numbers rounded to 12 digits.

    The order in which a processor adds up decides the last digits of a mean: without them a log
    gives the same answer everywhere.
    """
    match content:
        case float():
            return float(f"{content:.12g}")
        case list():
            return [round_numbers(member) for member in content]
        case dict():
            return {key: round_numbers(member) for key, member in content.items()}
    return content


def _text(text: str) -> str:
    # A lone surrogate, from a file name that is not UTF-8, is not valid JSON text.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
