"""Run the benchmark: print scores, replay runs, write the committed table and check against it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.faults import folder, healthy, online_eval, table, world_page, world_score
from rlvitals.faults.ground_truth import Label, levels
from rlvitals.faults.page import Scores, page
from rlvitals.faults.run_diagnosis import diagnose_runs
from rlvitals.faults.score import Score, Scored, label_runs, score

Say = Callable[[str], None]
# The scores that must not get worse, and the direction that is worse.
SCORE_DIRECTIONS = (
    ("recall_1", -1), ("recall_3", -1), ("any_alarm", -1), ("verdicts", -1),
    ("errors", 1), ("warnings", 1),
)  # fmt: skip
SAMPLE_INTERVAL = 8  # one run in so many is in the sample that `make test` checks
SCORE_PAGE = Path("docs/how-good-is-it.md")
RATES_MODULE = Path("src/rlvitals/rules/rates.py")


def as_json(root: Path, jobs: int | str, split: str) -> str:
    """Return all scores of a split as JSON."""
    return json.dumps(asdict(score(diagnose_split(root, jobs, split))), indent=1)


def show(root: Path, jobs: int | str, split: str, by: Sequence[str], report: Say) -> None:
    """Score a split and report the tables named in `by`."""
    split_score = score(diagnose_split(root, jobs, split))
    report(f"{split} split: {table.format_counts(split_score)}\n")
    report(table.format_plain(table.summary(split_score)))
    tables = {
        "fault": lambda: table.rows(split_score.by_fault.items(), "fault"),
        "task": lambda: table.rows(split_score.by_task.items(), "task"),
        "rule": lambda: table.rule_rows(split_score),
    }
    for name in by:
        report("\n" + table.format_plain(tables[name]()))


def watch(root: Path, jobs: int | str, split: str, period: int, report: Say) -> None:
    """Diagnose the growing prefixes of every `period`-th run of a split, and report the scores."""
    live = replay_split(root, jobs, split, period)
    report(f"{split} split: {table.format_live_counts(live)}\n")
    report(table.format_plain(table.live_summary(live)))
    report("\n" + table.format_plain(table.live_rule_rows(live)))


def replay_split(root: Path, jobs: int | str, split: str, period: int) -> online_eval.Live:
    """Diagnose the prefixes of every `period`-th run. Raises UsageError for an empty folder."""
    runs = _read_runs(root)
    return online_eval.summarise(
        online_eval.watch(root, _filter_split(runs, split)[::period], jobs), levels(runs)
    )


def diagnose_split(
    root: Path,
    jobs: int | str,
    split: str = "all",
    *,
    with_outcome: bool = True,
    with_settings: bool = True,
) -> list[Scored]:
    """Diagnose and label every run of a split. Raises UsageError for an empty folder."""
    runs = _read_runs(root)
    return label_runs(
        diagnose_runs(
            root,
            _filter_split(runs, split),
            jobs,
            with_outcome=with_outcome,
            with_settings=with_settings,
        ),
        levels(runs),
    )


def _filter_split(runs: Sequence[folder.Recorded], split: str) -> list[folder.Recorded]:
    return [run for run in runs if split in {"all", run.split}]


def _read_runs(root: Path) -> tuple[folder.Recorded, ...]:
    runs = folder.read(root)
    if not runs:
        hint = "rlvitals faults run, or --folder"
        raise rlvitals.UsageError("no traces are here", where=str(root), hint=hint)
    return runs


def filter_split(runs: Sequence[Scored], split: str) -> list[Scored]:
    """Return the runs of a split: `tuning`, `seen`, `test`, or `all`."""
    return [run for run in runs if split in {"all", run.judged.run.split}]


def write(root: Path, jobs: int | str, path: Path, report: Say) -> int:
    """Write the rates of the rules; if unchanged, also the scores and the page. Return 1 if not.

    A rule that was measured on too few healthy runs is capped at a note. So the rates are written
    first, and are counted from findings before the cap.
    """
    runs = diagnose_split(root, jobs)
    rates_text = rlvitals.lab.rates_module(rlvitals.lab.tally(_collect_counts(root, runs)))
    if rates_text != RATES_MODULE.read_text():
        RATES_MODULE.write_text(rates_text)
        report(f"{RATES_MODULE} has changed: once more, so that the score rests on it")
        return 1
    test_score = score(filter_split(runs, "test"))
    sample_score = score(filter_split(runs, "test")[::SAMPLE_INTERVAL])
    path.write_text(
        json.dumps({"whole": _summarise(test_score), "sample": _summarise(sample_score)}, indent=1)
        + "\n"
    )
    held_out = [run for run in runs if run.judged.run.split != "tuning"]
    scores = Scores(
        test=test_score,
        seen=score(filter_split(runs, "seen")),
        held_out=score(held_out),
        blind=score(diagnose_split(root, jobs, "test", with_outcome=False)),
        untold=score(diagnose_split(root, jobs, "test", with_settings=False)),
        everything=score(runs),
        live=replay_split(root, jobs, "seen", 4),  # a replay takes twenty diagnoses
        runs=len(runs),
    )
    SCORE_PAGE.write_text(add_sections(page(scores), root.parent))
    report(f"{path}, {SCORE_PAGE}: {table.format_counts(test_score)}")
    return 0


def add_sections(text: str, faults: Path) -> str:
    """Return the page with the sections of the other runs in `faults` before the injected faults.

    The weighed causes are its end.
    """
    weighing = faults / "weighing.md"  # by hand, from `benchmarks/weighing.py`
    ending = weighing.read_text() if weighing.exists() else ""
    if ending:
        text, _, _ = text.partition(ending.partition("\n")[0] + "\n")
    for name in ("real", "tier-2", "language"):
        section = world_page.read_section(faults / name)
        text = world_page.replace_section(text, section, "## Injected faults")
    return f"{text.rstrip()}\n\n{ending}" if ending else f"{text.rstrip()}\n"


def _collect_counts(root: Path, runs: Sequence[Scored]) -> Iterator[rlvitals.lab.Judged]:
    """Yield the counts of every healthy and every broken run for the rates."""
    for run in runs:
        counts = run.judged.counts
        if run.label is Label.HEALTHY:
            yield counts
        elif run.label is Label.BROKEN:
            yield replace(counts, expects=counts.expects if run.visible else ())
    yield from healthy.diagnose_healthy(root.parent / "healthy")
    yield from world_score.diagnose_healthy(root.parent / "tier-2")


def check(root: Path, jobs: int | str, path: Path, report: Say, *, sample: bool = False) -> int:
    """Compare the test split with the committed table; return 1 if a score got worse.

    `sample`: compare one run in `SAMPLE_INTERVAL`, with their committed scores.
    """
    committed = json.loads(path.read_text())["sample" if sample else "whole"]
    runs = _read_runs(root)
    split_runs = _filter_split(runs, "test")[:: SAMPLE_INTERVAL if sample else 1]
    current = _summarise(score(label_runs(diagnose_runs(root, split_runs, jobs), levels(runs))))
    worse = [
        key
        for key, direction in SCORE_DIRECTIONS
        if direction * (current[key] - committed[key]) > 0
    ]
    for key, _ in SCORE_DIRECTIONS:
        mark = "worse" if key in worse else ""
        report(f"{key:10} {committed[key]:.4f} -> {current[key]:.4f} {mark}".rstrip())
    return 1 if worse else 0


def _summarise(score: Score) -> dict[str, Any]:
    values = {key: round(getattr(score, key).value, 4) for key, _ in SCORE_DIRECTIONS}
    counts = ("healthy", "broken", "visible", "benign", "own_failures")
    return {**values, **{key: getattr(score, key) for key in counts}}
