"""A file of known findings: only what is not in it fails a check.

A finding is known by the run's name, the rule, the metric that shows it and how bad it is; no
step and no number, so that it stays the same finding while its run goes on. Worse is new.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import UsageError
from rlvitals.rules.rule import Severity

FORMAT = 1
# Verdicts, which no rule finds: a file may hold that a run failed, or that nobody can tell.
FAILED, UNTOLD = "run-failed", "cannot-tell"


@dataclass(frozen=True, slots=True, order=True)
class Known:
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


def compare(known: Baseline, run: Judged) -> tuple[Diagnosis, tuple[Gone, ...]]:
    """Mark which findings of a run are new, and tell which of the file's are gone."""
    key = _key(known, run)
    held = known.get(key, ())
    now = entries(run.found)
    fresh = tuple(one.rule for one in now if not any(_covers(old, one) for old in held))
    same = {(one.rule, one.metric) for one in now}
    gone = tuple(Gone(key, old) for old in held if (old.rule, old.metric) not in same)
    return replace(run.found, new=fresh), gone


def entries(found: Diagnosis) -> tuple[Known, ...]:
    """List a run's findings as a file holds them, sorted, and its verdict where it is no pass."""
    own = [Known(rule.name, one.metric, one.severity.name.lower()) for rule, one in found.findings]
    if found.verdict.word is Word.FAILED:
        own.append(Known(FAILED, "", Severity.ERROR.name.lower()))
    elif not found.can_tell:
        own.append(Known(UNTOLD, "", Severity.NOTE.name.lower()))
    return tuple(sorted(own))


def _covers(old: Known, now: Known) -> bool:
    alike = (old.rule, old.metric) == (now.rule, now.metric)
    return alike and Severity[now.severity.upper()] <= Severity[old.severity.upper()]


def _key(known: Baseline, run: Judged) -> str:
    """Return the name that the file has for a run: its own, or a longer one that its folder has.

    `diagnose runs` calls a run exp/a that `diagnose runs/exp` calls a.
    """
    if run.name in known:
        return run.name
    parts = run.root.absolute().parts
    longer = [
        name
        for name in known
        if name.endswith(f"/{run.name}") and parts[-len(split := name.split("/")) :] == (*split,)
    ]
    return max(longer, key=len, default=run.name)


def written(runs: Iterable[Judged]) -> str:
    """Write the file: sorted, one finding a line, no number that changes from day to day."""
    lines = []
    held: dict[str, set[Known]] = {}
    for run in runs:
        held.setdefault(run.name, set()).update(entries(run.found))
    for name, found in sorted(held.items()):
        if found:
            rows = ",\n".join(f"      {_line(one)}" for one in sorted(found))
            lines.append(f"    {json.dumps(name)}: [\n{rows}\n    ]")
    body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
    return f'{{\n  "format": {FORMAT},\n  "runs": {body}\n}}\n'


def _line(one: Known) -> str:
    return json.dumps({"rule": one.rule, "severity": one.severity, "metric": one.metric})


def write(path: Path, runs: Sequence[Judged]) -> None:
    """Write the file. Raises UsageError where it cannot be written."""
    try:
        path.write_text(written(runs), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the baseline cannot be written: {error}", where=str(path)) from error


def read(path: Path) -> Baseline:
    """Read a file of known findings. Raises UsageError where it is none."""
    again = f"rlvitals diagnose PATH --write-baseline {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError("there is no such baseline", where=str(path), hint=again) from error
    except (OSError, ValueError, RecursionError) as error:
        why = f"the baseline cannot be read: {error}"
        raise UsageError(why, where=str(path), hint=again) from error
    if isinstance(content, dict) and content.get("format", FORMAT) != FORMAT:
        why = f"the baseline has format {content['format']}, this program reads {FORMAT}"
        raise UsageError(why, where=str(path), hint=again)
    try:
        return {run: tuple(_known(one) for one in found) for run, found in content["runs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError("this is no baseline", where=str(path), hint=again) from error


def _known(one: Mapping[str, str]) -> Known:
    if one["severity"].upper() not in Severity.__members__:
        raise KeyError(one["severity"])
    return Known(str(one["rule"]), str(one["metric"]), one["severity"])
