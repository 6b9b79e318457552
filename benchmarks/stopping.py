"""Replay recorded runs under the stop rule: compute saved, and runs that it should have left alone.

Each run of the fault benchmark and each healthy run of a language model is judged at every
twentieth of it, with unknown budget and end, as `rlvitals follow` judges a growing run. Counted are
healthy runs that are asked to stop (none may be), broken runs that are, and the share of all
broken runs' steps that this saves. Runs that were asked to stop and ended well are counted apart:
benign mutations, and broken runs that had learned their task in the end.

`--every N` replays each N-th run. The thresholds of the rules were chosen on the split `tuning`;
`seen` has been looked at since, `test` has not.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import rlvitals
from rlvitals.diagnosis import engine
from rlvitals.diagnosis.replay import prefixes
from rlvitals.faults import folder, healthy
from rlvitals.faults.ground_truth import Course, Label, course, label, levels
from rlvitals.faults.run_diagnosis import load, map_parallel
from rlvitals.intervene.stop_rule import StopRule
from rlvitals.rules.rate import wilson

FAULTS = Path("faults/tier-1")
LANGUAGE = Path("faults/healthy")
SPLITS = ("tuning", "seen", "test", "language")
TITLES = (
    "| split | healthy | stopped | 95 % below | broken | stopped | steps saved | ended well |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    "| wanted | | 0 | < 0.1 % | | | | few |",
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One run and where it was asked to stop."""

    name: str
    split: str
    label: str
    course: str
    stop: float | None  # share of the run at which it was asked to stop; None: never
    reason: str = ""


def main() -> list[str]:
    """Replay the runs and return the table's rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="replay each N-th run")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="write each run's result to this file")
    args = parser.parse_args()
    tasks = list(_list_tasks())[:: args.every]
    runs = map_parallel(_replay, tasks, args.jobs, chunk=4)
    if args.json:
        fields = ("name", "split", "label", "course", "stop", "reason")
        rows = [{name: getattr(run, name) for name in fields} for run in runs]
        args.json.write_text("\n".join(map(json.dumps, rows)) + "\n")
    lines = [_row(split, [run for run in runs if run.split == split]) for split in SPLITS]
    lines.append(_row("all", list(runs)))
    print(*TITLES, *lines, sep="\n")
    for run in runs:
        if run.stop is not None and (run.label == Label.HEALTHY or _ended_well(run)):
            print(f"{run.label}: {run.name} at {run.stop:.0%}: {run.reason}")
    counts = Counter(run.reason.partition(":")[0] for run in runs if run.stop is not None)
    print("stopped by:", ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    return lines


def _list_tasks() -> Iterator[tuple[folder.Recorded | healthy.HealthyRun, str, str, str]]:
    """Yield each run with its split, label and course."""
    runs = folder.read(FAULTS)
    task_levels = levels(runs)
    for run in runs:
        if run.task in task_levels:
            level = task_levels[run.task]
            yield run, run.split, label(run, level).value, course(run, level).value
    for run in healthy.read(LANGUAGE):
        yield run, "language", Label.HEALTHY.value, Course.LEARNED.value


def _replay(task: tuple[folder.Recorded | healthy.HealthyRun, str, str, str]) -> Replayed:
    run, split, label_text, course_text = task
    if isinstance(run, healthy.HealthyRun):
        name = run.file
        trace = rlvitals.trace(LANGUAGE / run.file, settings=run.settings)
    else:
        name = f"{run.task}/{run.name}"
        trace = load(FAULTS, run)
    rule = StopRule()
    for prefix in prefixes(trace)[:-1]:
        if reason := rule.update(engine.diagnose(prefix)):
            length = max(trace.last_step - trace.first_step, 1)
            stop = (prefix.last_step - trace.first_step) / length
            return Replayed(name, split, label_text, course_text, stop, reason)
    return Replayed(name, split, label_text, course_text, None)


def _ended_well(run: Replayed) -> bool:
    return run.label == Label.BENIGN or (run.label == Label.BROKEN and run.course == Course.LEARNED)


def _row(title: str, runs: list[Replayed]) -> str:
    healthy_runs = [run for run in runs if run.label == Label.HEALTHY]
    stopped_healthy = sum(run.stop is not None for run in healthy_runs)
    bound = wilson(stopped_healthy, len(healthy_runs)).high
    failures = [run for run in runs if run.label in {Label.BROKEN, Label.OWN_FAILURE}]
    broken = [run for run in failures if not _ended_well(run)]
    stops = [run.stop for run in broken if run.stop is not None]
    saved = sum(1 - stop for stop in stops) / max(len(broken), 1)
    apart = sum(run.stop is not None and _ended_well(run) for run in runs)
    return (
        f"| {title} | {len(healthy_runs)} | {stopped_healthy} | {bound:.1%} | {len(broken)} "
        f"| {len(stops)} | {saved:.1%} | {apart} |"
    )


if __name__ == "__main__":
    main()
