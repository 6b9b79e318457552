"""What the benchmark does: show, watch, write the committed table, check against it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.faults import folder, healthy, online_eval, table
from rlvitals.faults.ground_truth import Label, levels
from rlvitals.faults.page import Scores, page
from rlvitals.faults.run_diagnosis import judge
from rlvitals.faults.score import Score, Scored, score, scored

Say = Callable[[str], None]
# What may not get worse, and which way is worse.
HELD = (
    ("recall_1", -1), ("recall_3", -1), ("any_alarm", -1), ("verdicts", -1),
    ("errors", 1), ("warnings", 1),
)  # fmt: skip
DIGITS = 4
EVERY = 4  # of a split, one run in so many is judged as it grew (twenty diagnoses), or in a sample
PAGE = Path("docs/how-good-is-it.md")
RATES = Path("src/rlvitals/rules/rates.py")


def as_json(root: Path, jobs: int, split: str) -> str:
    """Score a split, every number of it."""
    return json.dumps(asdict(score(judged(root, jobs, split))), indent=1)


def show(root: Path, jobs: int, split: str, by: Sequence[str], said: Say) -> None:
    """Score a split and print it."""
    found = score(judged(root, jobs, split))
    said(f"{split} split: {table.counts(found)}\n")
    said(table.plain(table.summary(found)))
    tables = {
        "fault": lambda: table.rows(found.by_fault.items(), "fault"),
        "task": lambda: table.rows(found.by_task.items(), "task"),
        "rule": lambda: table.rings(found),
    }
    for name in by:
        said("\n" + table.plain(tables[name]()))


def watch(root: Path, jobs: int, split: str, every: int, said: Say) -> None:
    """Judge every so-manieth run of a split as it grew, and print it."""
    found = watched(root, jobs, split, every)
    said(f"{split} split: {table.watched_counts(found)}\n")
    said(table.plain(table.watched(found)))
    said("\n" + table.plain(table.bells(found)))


def watched(root: Path, jobs: int, split: str, every: int) -> online_eval.Live:
    """Judge every so-manieth run of a split as it grew. Raises UsageError where there is none."""
    runs = _recorded(root)
    return online_eval.live(
        online_eval.watch(root, _of_split(runs, split)[::every], jobs), levels(runs)
    )


def judged(
    root: Path, jobs: int, split: str = "all", *, outcome: bool = True, told: bool = True
) -> list[Scored]:
    """Diagnose and label every run of a split. Raises UsageError where there is none."""
    runs = _recorded(root)
    return scored(
        judge(root, _of_split(runs, split), jobs, outcome=outcome, told=told), levels(runs)
    )


def _of_split(runs: Sequence[folder.Recorded], split: str) -> list[folder.Recorded]:
    return [run for run in runs if split in {"all", run.split}]


def _recorded(root: Path) -> tuple[folder.Recorded, ...]:
    runs = folder.read(root)
    if not runs:
        hint = "rlvitals faults run, or --folder"
        raise rlvitals.UsageError("no traces are here", where=str(root), hint=hint)
    return runs


def of_split(runs: Sequence[Scored], split: str) -> list[Scored]:
    """Keep the runs of a split: `tuning`, `seen`, `test`, or `all`."""
    return [one for one in runs if split in {"all", one.judged.run.split}]


def write(root: Path, jobs: int, where: Path, said: Say) -> None:
    """Count each rule's rates, then score the test split by them, and write both and the page.

    A rule that was measured on too few healthy runs is held at a note: so rates come first, and
    are counted of what rules say before they are held.
    """
    runs = judged(root, jobs)
    counted = rlvitals.rates_module(rlvitals.tally(_counts(root, runs)))
    if counted != RATES.read_text():
        RATES.write_text(counted)
        said(f"{RATES} has changed: once more, so that the score rests on it")
        return
    found = score(of_split(runs, "test"))
    sample = score(of_split(runs, "test")[::EVERY])
    where.write_text(json.dumps({"whole": _held(found), "sample": _held(sample)}, indent=1) + "\n")
    held_out = [one for one in runs if one.judged.run.split != "tuning"]
    scores = Scores(
        test=found,
        seen=score(of_split(runs, "seen")),
        held_out=score(held_out),
        blind=score(judged(root, jobs, "test", outcome=False)),
        untold=score(judged(root, jobs, "test", told=False)),
        everything=score(runs),
        live=watched(root, jobs, "seen", EVERY),
        runs=len(runs),
    )
    PAGE.write_text(page(scores))
    said(f"{where}, {PAGE}: {table.counts(found)}")


def _counts(root: Path, runs: Sequence[Scored]) -> Iterator[rlvitals.Judged]:
    """Yield what every healthy and every broken run counts for the rates."""
    for one in runs:
        counts = one.judged.counts
        if one.label is Label.HEALTHY:
            yield counts
        elif one.label is Label.BROKEN:
            yield replace(counts, expects=counts.expects if one.visible else ())
    yield from healthy.judged(root.parent / "healthy")


def check(root: Path, jobs: int, where: Path, said: Say, *, sample: bool = False) -> int:
    """Compare the test split with the committed table; 1 where something got worse.

    `sample`: compare one run in `EVERY` of it, with what the table says of these.
    """
    before = json.loads(where.read_text())["sample" if sample else "whole"]
    runs = _recorded(root)
    chosen = _of_split(runs, "test")[:: EVERY if sample else 1]
    now = _held(score(scored(judge(root, chosen, jobs), levels(runs))))
    worse = [key for key, way in HELD if way * (now[key] - before[key]) > 0]
    for key, _ in HELD:
        mark = "worse" if key in worse else ""
        said(f"{key:10} {before[key]:.4f} -> {now[key]:.4f} {mark}".rstrip())
    return 1 if worse else 0


def _held(found: Score) -> dict[str, Any]:
    values = {key: round(getattr(found, key).value, DIGITS) for key, _ in HELD}
    counted = ("healthy", "broken", "visible", "benign", "own_failures")
    return {**values, **{key: getattr(found, key) for key in counted}}
