"""A file of known findings: only what is not in it fails a check.

A finding is known by the run's name, the rule, the metric that shows it and how bad it is; no
step and no number, so that it stays the same finding while its run goes on. Worse is new.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import UsageError
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass

BASELINE_FORMAT = 1
# Verdicts, which no rule finds: a file may hold that a run failed, or that nobody can tell.
RUN_FAILED_FINDING, CANNOT_TELL_FINDING = "run-failed", "cannot-tell"


class Known(NamedTuple):
    """A finding as the file holds it."""

    rule: str
    metric: str
    severity: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A run's name, where its files lie, and what was found."""

    name: str
    root: Path
    found: Diagnosis


@dataclass(frozen=True, slots=True)
class Gone:
    """A finding of the file that its run no longer has."""

    run: str
    known: Known


Baseline = Mapping[str, tuple[Known, ...]]  # by the run's name


def compare(baseline: Baseline, run: Judged) -> tuple[Diagnosis, tuple[Gone, ...]]:
    """Mark which findings of a run are new, and tell which of the file's are gone."""
    key = _key(baseline, run)
    old_entries = baseline.get(key, ())
    entries_now = entries(run.found)
    fresh = tuple(
        entry.rule for entry in entries_now if not any(_covers(old, entry) for old in old_entries)
    )
    matches = {(entry.rule, entry.metric) for entry in entries_now}
    resolved = tuple(Gone(key, old) for old in old_entries if (old.rule, old.metric) not in matches)
    return replace(run.found, new=fresh), resolved


def entries(diagnosis: Diagnosis) -> tuple[Known, ...]:
    """List a run's findings as a file holds them, sorted, and its verdict where it is no pass."""
    result = [
        Known(rule.name, finding.metric, finding.severity.name.lower())
        for rule, finding in diagnosis.findings
    ]
    if diagnosis.verdict.word is Word.FAILED:
        result.append(Known(RUN_FAILED_FINDING, "", Severity.ERROR.name.lower()))
    elif not diagnosis.can_tell:
        result.append(Known(CANNOT_TELL_FINDING, "", Severity.NOTE.name.lower()))
    return tuple(sorted(result))


def _covers(old: Known, new: Known) -> bool:
    alike = (old.rule, old.metric) == (new.rule, new.metric)
    return alike and Severity[new.severity.upper()] <= Severity[old.severity.upper()]


def _key(baseline: Baseline, run: Judged) -> str:
    """Return the name that the file has for a run: its own, or a longer one that its folder has.

    `diagnose runs` calls a run exp/a that `diagnose runs/exp` calls a.
    """
    if run.name in baseline:
        return run.name
    parts = run.root.absolute().parts
    longer = [
        name
        for name in baseline
        if name.endswith(f"/{run.name}") and parts[-len(split := name.split("/")) :] == (*split,)
    ]
    return max(longer, key=len, default=run.name)


def format_baseline(runs: Iterable[Judged]) -> str:
    """Write the file: sorted, one finding a line, no number that changes from day to day."""
    lines = []
    by_run: dict[str, set[Known]] = {}
    for run in runs:
        by_run.setdefault(run.name, set()).update(entries(run.found))
    for name, known in sorted(by_run.items()):
        if known:
            rows = ",\n".join(f"      {_line(entry)}" for entry in sorted(known))
            lines.append(f"    {json.dumps(name)}: [\n{rows}\n    ]")
    body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
    return f'{{\n  "format": {BASELINE_FORMAT},\n  "runs": {body}\n}}\n'


def _line(entry: Known) -> str:
    return json.dumps({"rule": entry.rule, "severity": entry.severity, "metric": entry.metric})


def write(path: Path, runs: Sequence[Judged]) -> None:
    """Write the file. Raises UsageError where it cannot be written."""
    try:
        path.write_text(format_baseline(runs), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the baseline cannot be written: {error}", where=str(path)) from error


def read(path: Path) -> Baseline:
    """Read a file of known findings. Raises UsageError where it is none."""
    hint = f"rlvitals diagnose PATH --write-baseline {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError("there is no such baseline", where=str(path), hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = f"the baseline cannot be read: {error}"
        raise UsageError(reason, where=str(path), hint=hint) from error
    if isinstance(content, dict) and content.get("format", BASELINE_FORMAT) != BASELINE_FORMAT:
        reason = (
            f"the baseline has format {content['format']}, this program reads {BASELINE_FORMAT}"
        )
        raise UsageError(reason, where=str(path), hint=hint)
    try:
        return {
            run: tuple(_parse_entry(row) for row in rows) for run, rows in content["runs"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError("this is no baseline", where=str(path), hint=hint) from error


def _parse_entry(entry: Mapping[str, str]) -> Known:
    if entry["severity"].upper() not in Severity.__members__:
        raise KeyError(entry["severity"])
    return Known(str(entry["rule"]), str(entry["metric"]), entry["severity"])
