"""Read, judge and label the runs of several paths or of an index."""

import json
import math
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals import settings
from rlvitals.cli import diagnose, flags
from rlvitals.cli.command import EXIT_PROBLEM
from rlvitals.errors import UnreadableLog, UsageError, harmless, quantity
from rlvitals.settings import Settings
from rlvitals.storage import toml_files

if TYPE_CHECKING:  # they load numpy
    from rlvitals.diagnosis.engine import Diagnosis
    from rlvitals.readers.discovery.sources import Run
    from rlvitals.storage.index import Index
    from rlvitals.storage.run_query import IndexedFinding


def judge_runs(
    paths: Sequence[Path], args: Namespace
) -> "tuple[list[tuple[int, Run, Diagnosis]], list[UnreadableLog]]":
    """Read and judge the runs at each path.

    Returns (path index, run, diagnosis) tuples and the errors of unreadable logs.
    """
    from rlvitals.diagnosis import batch, load
    from rlvitals.views.progress import progress

    by_path: list[tuple[int, tuple[Run, ...]]] = []
    requests: list[batch.Asked] = []
    errors: list[UnreadableLog] = []
    for index, path in enumerate(paths):
        options = flags.settings_for(path, args)
        load.run_overrides(options)
        try:
            runs = load.runs(path)
        except UnreadableLog as error:
            errors.append(error)
            continue
        by_path.append((index, runs))
        requests += [(run, options) for run in runs]
    results = []
    answers = progress(
        batch.diagnose(requests, ray_address=getattr(args, "ray", None)), len(requests)
    )
    for index, runs in by_path:
        for run, answer in batch.list_once(runs, [next(answers) for _ in runs]):
            if isinstance(answer, UnreadableLog):
                errors.append(answer)
            else:
                results.append((index, run, answer))
    return results, errors


def labels(
    results: "Sequence[tuple[int, Run, Diagnosis]]", user_labels: Sequence[str], paths: int
) -> list[str]:
    """Return the user's label of each run, else its name. Raises UsageError for a wrong count."""
    if user_labels and len(user_labels) not in {paths, len(results)}:
        raise UsageError(
            f"{quantity(len(user_labels), 'label')} for {quantity(paths, 'run')}:"
            f" {', '.join(user_labels)}",
            where="--labels",
            hint="one label for each run, in their order",
        )
    path_counts = Counter(index for index, _, _ in results)
    default_names = _default_names([run for _, run, _ in results])
    names = []
    for number, (index, run, _) in enumerate(results):
        name = default_names[number]
        if user_labels and len(user_labels) == paths:
            name = (
                user_labels[index]
                if path_counts[index] == 1
                else f"{user_labels[index]} {run.name}"
            )
        elif user_labels:
            name = user_labels[number]
        names.append(name)
    return names


def _default_names(runs: "Sequence[Run]") -> list[str]:
    """Return the name of each run; of equal names with the folders that tell the runs apart."""
    name_counts = Counter(run.name for run in runs)
    names = [
        run.name if name_counts[run.name] == 1 else f"{run.root.name} {run.name}" for run in runs
    ]
    counts = Counter(names)
    equal = [run.root.absolute() for run, name in zip(runs, names, strict=True) if counts[name] > 1]
    if len(set(equal)) < 2:  # one folder has no other to be told from
        return names
    common = os.path.commonpath(equal)
    return [
        name if counts[name] == 1 else os.path.relpath(run.root.absolute(), common)
        for run, name in zip(runs, names, strict=True)
    ]


def judge_index(index: "Index", *, judge_all: bool = False) -> None:
    """Judge the runs of an index that are new, have changed or may be running, or every one.

    An index keeps the verdict, the findings and, as JSON, the row of `triage`: `row`, `rank` among
    the worst first, and exit `code`. Runs with wrong settings are not judged: stderr names them.
    """
    from rlvitals.diagnosis import batch
    from rlvitals.views.progress import progress

    root, judge = index.root, _judge_id(index.root)
    paths = index.unjudged("" if judge_all else judge)
    requests: dict[str, tuple[Run, Settings]] = {}
    verdicts = dict.fromkeys(paths, "unreadable")
    for path in paths:
        if (run := _native_run(root / path)) is None:
            continue
        try:
            requests[path] = (run, settings.load(root / path, {}, os.environ))
        except UsageError as error:
            del verdicts[path]
            text = f"{path} is not judged: {error.problem} ({error.where})"
            sys.stderr.write(f"{harmless(text)}\n")
    findings: dict[str, list[IndexedFinding]] = {path: [] for path in verdicts}
    summaries = {}
    answers = progress(batch.diagnose([*requests.values()]), len(requests))
    for (path, (_, options)), answer in zip(requests.items(), answers, strict=True):
        if not isinstance(answer, UnreadableLog):
            verdicts[path] = str(answer.verdict.word)
            findings[path] = _index_findings(answer)
        from rlvitals.views import runs_table, triage_table

        code = diagnose.code(answer, options.diagnose.fail_on)
        row = triage_table.row(path, answer, broken=code == EXIT_PROBLEM)
        rank = runs_table.badness((path, answer))[:2]
        summaries[path] = json.dumps({"row": asdict(row), "rank": rank, "code": code})
    index.note(verdicts, judge, summaries, findings)


def _judge_id(root: Path) -> str:
    """Identify the judging code and settings: others may give other verdicts."""
    from rlvitals.server import judging_code

    states = [file.path.stat() for file in toml_files.find(root, os.environ)]
    return judging_code.version() + "".join(
        f" {state.st_size} {state.st_mtime_ns}" for state in states
    )


def _native_run(folder: Path) -> "Run | None":
    """Return the run of a folder, the native one if several formats are present."""
    from rlvitals.diagnosis import load

    try:
        runs = load.runs(folder)
    except UnreadableLog:
        return None
    native = (run for run in runs if any(reader.name == "rlvitals" for _, reader in run.files))
    return next(native, runs[0])


def _index_findings(diagnosis: "Diagnosis") -> "list[IndexedFinding]":
    from rlvitals.storage.run_query import IndexedFinding

    return [
        IndexedFinding(
            rule.name,
            finding.severity.name.lower(),
            finding.metric,
            finding.began,
            finding.ended,
            float(finding.observed) if math.isfinite(finding.observed) else None,
            finding.summary,
        )
        for rule, finding in diagnosis.findings
    ]
