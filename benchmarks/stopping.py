"""Replay recorded runs under the stop rule: compute saved, and runs that it should have left alone.

Each run of the fault benchmark, each healthy run of a language model and each run of the worlds
benchmark is judged at every twentieth of it, with unknown budget and end, as `rlvitals follow`
judges a growing run. Counted are healthy runs that are asked to stop (none may be), broken runs
that are, the share of all broken runs' steps that this saves, and runs of which an alert is sent
under the condition `error`. Runs that were asked to stop and ended well are counted apart: benign
mutations, and broken runs that had learned their task in the end. The split `lives` has further
seeds of the healthy worlds; seeds of one world are alike, so the worlds are counted beside the
runs.

`--every N` replays each N-th run. The thresholds of the rules were chosen on the split `tuning`;
`seen` has been looked at since, `test` has not.
"""

import argparse
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import rlvitals
from rlvitals.alerts.conditions import find_alarms, parse
from rlvitals.alerts.tracker import Tracker
from rlvitals.diagnosis import engine
from rlvitals.diagnosis.replay import prefixes
from rlvitals.faults import folder, healthy, world_runs
from rlvitals.faults.ground_truth import Course, Label, course, label, levels
from rlvitals.faults.run_diagnosis import load, map_parallel, tracked_settings
from rlvitals.intervene.stop_rule import StopRule
from rlvitals.types import Trace

FAULTS = Path("faults/tier-1")
LANGUAGE = Path("faults/healthy")
WORLDS = Path("faults/tier-2")
LIVES = Path("faults/lives")
ERRORS = (parse("error"),)
SPLITS = ("tuning", "seen", "test", "language", "worlds", "lives")
TITLES = (
    "| split | healthy | worlds | alert | stop | broken | alert | stop | saved | well, stop |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    "| wanted | | | < 0.2 % | < 0.1 % | | | | | few |",
)

Recorded = folder.Recorded | healthy.HealthyRun | world_runs.WorldRun
Task = tuple[Recorded, str, str, str]  # a run, its split, label and course


@dataclass(frozen=True, slots=True)
class Replayed:
    """One run and where it was asked to stop."""

    name: str
    world: str  # what it shares with runs that differ from it in the seed, or little more
    split: str
    label: str
    course: str
    alert: float | None  # share of the run at which an error was sent as an alert; None: never
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
        fields = ("name", "world", "split", "label", "course", "alert", "stop", "reason")
        rows = [{name: getattr(run, name) for name in fields} for run in runs]
        args.json.write_text("\n".join(map(json.dumps, rows)) + "\n")
    lines = [_row(split, [run for run in runs if run.split == split]) for split in SPLITS]
    lines.append(_row("all", list(runs)))
    print(*TITLES, *lines, sep="\n")
    for run in runs:
        if run.alert is not None and run.label == Label.HEALTHY:
            print(f"healthy, alerted: {run.name} at {run.alert:.0%}")
        if run.stop is not None and (run.label == Label.HEALTHY or _ended_well(run)):
            print(f"{run.label}: {run.name} at {run.stop:.0%}: {run.reason}")
    counts = Counter(run.reason.partition(":")[0] for run in runs if run.stop is not None)
    print("stopped by:", ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    return lines


def _list_tasks() -> Iterator[Task]:
    """Yield each run with its split, label and course."""
    runs = folder.read(FAULTS)
    task_levels = levels(runs)
    for run in runs:
        if run.task in task_levels:
            level = task_levels[run.task]
            yield run, run.split, label(run, level).value, course(run, level).value
    for run in healthy.read(LANGUAGE):
        yield run, "language", Label.HEALTHY.value, Course.LEARNED.value
    lives = world_runs.read(LIVES, WORLDS)
    life_names = {run.name for run in lives}
    # A life is labelled by the healthy runs of its world, which are in the other folder.
    for labelled in world_runs.label_runs([*world_runs.read(WORLDS), *lives]):
        run = labelled.run
        end = Course.NOT_LEARNED if labelled.outcome.is_bad else Course.LEARNED
        split = "lives" if run.name in life_names else "worlds"
        yield run, split, labelled.label.value, end.value


def _replay(task: Task) -> Replayed:
    run, split, label_text, course_text = task
    name, world, trace = _open(run, split)
    rule, tracker, alert = StopRule(), Tracker(0.0), None
    length = max(trace.last_step - trace.first_step, 1)
    for number, prefix in enumerate(prefixes(trace)[:-1]):
        diagnosis = engine.diagnose(prefix)
        share = (prefix.last_step - trace.first_step) / length
        time = 3600.0 * number  # every diagnosis outlasts the waiting time
        tracker.update(name, find_alarms(diagnosis, ERRORS), time, math.inf)
        if alert is None and any(tracker.collect(time)):
            alert = share
        if reason := rule.update(diagnosis):
            return Replayed(name, world, split, label_text, course_text, alert, share, reason)
    return Replayed(name, world, split, label_text, course_text, alert, None)


def _open(run: Recorded, split: str) -> tuple[str, str, Trace]:
    """Return a run's name, its world, and its log."""
    if isinstance(run, healthy.HealthyRun):
        return run.file, run.task, rlvitals.trace(LANGUAGE / run.file, settings=run.settings)
    if isinstance(run, folder.Recorded):
        return f"{run.task}/{run.name}", run.task, load(FAULTS, run)
    with tempfile.TemporaryDirectory() as scratch:
        world_runs.unpack(LIVES if split == "lives" else WORLDS, run, Path(scratch))
        trace = rlvitals.trace(Path(scratch), settings=tracked_settings(run.settings))
    return run.name, run.world, trace


def _ended_well(run: Replayed) -> bool:
    return run.label == Label.BENIGN or (run.label == Label.BROKEN and run.course == Course.LEARNED)


def _row(title: str, runs: list[Replayed]) -> str:
    healthy_runs = [run for run in runs if run.label == Label.HEALTHY]
    stopped_healthy = sum(run.stop is not None for run in healthy_runs)
    worlds = len({run.world for run in healthy_runs})
    failures = [run for run in runs if run.label in {Label.BROKEN, Label.OWN_FAILURE}]
    broken = [run for run in failures if not _ended_well(run)]
    stops = [run.stop for run in broken if run.stop is not None]
    saved = sum(1 - stop for stop in stops) / max(len(broken), 1)
    apart = sum(run.stop is not None and _ended_well(run) for run in runs)
    alerts = [sum(run.alert is not None for run in group) for group in (healthy_runs, broken)]
    return (
        f"| {title} | {len(healthy_runs)} | {worlds} | {alerts[0]} | {stopped_healthy} "
        f"| {len(broken)} | {alerts[1]} | {len(stops)} | {saved:.1%} | {apart} |"
    )


if __name__ == "__main__":
    main()
