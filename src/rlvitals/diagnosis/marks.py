"""Read and write a person's labels of runs, beside the runs.

A label is one line of `marks.jsonl` in a recorded run's folder, else of `.rlvitals-marks.jsonl` in
the folder of the log, with what the rules said of the run when it was marked. The newest line of a
run's name counts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path

from rlvitals.diagnosis.calibration import Judged, reduce_diagnosis
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import UsageError
from rlvitals.readers.discovery.sources import Run
from rlvitals.rules import CATALOGUE
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import events, safe_files
from rlvitals.storage.run_folder import is_run


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's label of a run; `subject` is the cause of a broken one, or the wrong finding."""

    label: str  # healthy, broken or wrong
    subject: str = ""
    features: Mapping[str, object] = field(default_factory=dict)


def file_of(run: Run) -> Path:
    """Return the file that a run's labels are in."""
    return run.root / ("marks.jsonl" if is_run(run.root) else ".rlvitals-marks.jsonl")


def write(run: Run, mark: Mark) -> Path:
    """Append a label to the file of a run; return the file. Raises UsageError."""
    path = file_of(run)
    try:
        events.append(path, "mark", run=run.name, **asdict(mark))
    except OSError as error:
        raise UsageError(f"the mark cannot be written: {error}", where=str(path)) from error
    return path


def read(run: Run) -> Mark | None:
    """Return the newest label of a run; None without one. Raises UsageError."""
    path = file_of(run)
    try:
        lines = events.read(path).events
    except OSError as error:
        raise UsageError(f"the marks cannot be read: {error}", where=str(path)) from error
    facts = [line.facts for line in lines if line.kind == "mark"]
    facts = [fact for fact in facts if fact.get("run") == run.name]
    if not facts or facts[-1].get("label") not in {"healthy", "broken", "wrong"}:
        return None
    newest, features = facts[-1], facts[-1].get("features")
    return Mark(
        str(newest["label"]),
        str(newest.get("subject", "")),
        features if isinstance(features, Mapping) else {},
    )


def features(diagnosis: Diagnosis) -> dict[str, object]:
    """Return what the rules said of a run: no name, no path, and none of its values."""
    counts = reduce_diagnosis(diagnosis, healthy=False)
    trace = diagnosis.trace
    return {
        "profile": trace.profile.value,
        "frameworks": sorted({source.framework for source in trace.measured.values()}),
        "verdict": diagnosis.verdict.word.value,
        "first": counts.first,
        "said": {
            name: "clear" if severity is None else severity.name.lower()
            for name, severity in sorted(counts.said.items())
        },
        "points": max((series.count for series in trace.series.values()), default=0),
    }


def count_run(mark: Mark, diagnosis: Diagnosis) -> Judged:
    """Return what a marked run counts for: a wrong finding counts for that rule alone."""
    if mark.label == "broken":
        is_rule = any(rule.name == mark.subject for rule in CATALOGUE)
        return reduce_diagnosis(
            diagnosis, healthy=False, expects=(mark.subject,) if is_rule else ()
        )
    run = reduce_diagnosis(diagnosis, healthy=True)
    if mark.label == "healthy":
        return run
    severities = {name: severity for name, severity in run.said.items() if name == mark.subject}
    return Judged(run.family, healthy=True, said=severities)


def export(path: Path, marks: Iterable[Mark]) -> None:
    """Write labels and features without names, paths, times or values. Raises UsageError."""
    rows: Sequence[Mapping[str, object]] = [asdict(mark) for mark in marks]
    text = json.dumps({"format": 1, "marks": rows}, indent=1, sort_keys=True)
    try:
        with safe_files.atomic_write(path) as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"the marks cannot be written: {error}", where=str(path)) from error
