"""Write the page of the trainers' results from the lines of finished runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from rlvitals.comparison.statistics import CONFIDENCE_LEVEL, Interval, welch

SEEDS = (1, 2, 3, 4, 5)
MODES = ("grpo", "psr", "nsr", "w-reinforce")


@dataclass(frozen=True)
class Row:
    """A trainer with its default settings on one task."""

    name: str
    trainer: str
    options: tuple[str, ...]  # of `rlvitals train`
    task: str
    digits: int = 3  # of the outcome
    falls: bool = False  # a lower outcome is better


@dataclass(frozen=True)
class Line:
    """One finished run."""

    row: str
    seed: int
    command: str
    before: float  # outcome on unseen data: share answered right, or seconds of latency
    after: float
    baseline: dict[str, list[float]] | None  # difference from LOR by metric and stream, as a share
    cpu_seconds: float  # of the training
    wall_seconds: float
    verdict: str
    exit_code: int  # of `rlvitals diagnose`
    warnings: list[str]  # rules
    machine: str
    versions: dict[str, str]


# Quick ones first: the page fills up early.
ROWS = (
    *(
        Row(f"{mode}-tiny-lm", mode, (mode, "--vlm-name", "tiny-lm"), "sums, `tiny-lm`")
        for mode in MODES
    ),
    Row("rlhf", "rlhf", ("rlhf",), "sums, `tiny-lm`"),
    *(Row(f"{mode}-tiny-vlm", mode, (mode,), "charts, `tiny-vlm`") for mode in MODES),
    Row("ppo", "ppo", ("ppo",), "scheduler: mean latency, s", 2, falls=True),
)

HEAD = """# What every trainer comes to

<!-- Written by benchmarks/results.py from results.jsonl: make results. -->

Each row is a shipped trainer with its default settings: `rlvitals train X --seed N` and no other
flag but the model's name. The outcome is measured on data that no training sees, before the
training with rewards and after it:

- Language models: share of 1,024 held-out questions whose likeliest answer is right
  (`rlvitals evaluate RUN --base --samples 0`). Before is the model after its warm start, which
  teaches it some wrong answers.
- Scheduler: mean latency of requests in seconds, on the same unseen arrivals at the first and the
  last step; lower is better. Before is the policy after its warm start, which imitates a scheduler.

± is half of the 95 % interval of Student's t over the seeds. *Change* is paired by seed; a rise is
shown where its whole interval lies on the better side of zero. CPU time is user and system of the
training command, its start and warm start included; wall time depends on what else the machine
does. *Diagnosis* is the verdict of `rlvitals diagnose RUN`, its exit code, and its warnings.
"""


def page(lines: Sequence[Line]) -> str:
    """Return the page in Markdown."""
    rows = [row for row in ROWS if _runs(row, lines)]
    sections = [HEAD, conclusion(lines), "", *_table(rows, lines)]
    sections += [
        "",
        *_scheduler_comparison(lines),
        *_method(lines),
        "## Each run",
        "",
        *_run_table(lines),
    ]
    return "\n".join(sections) + "\n"


def conclusion(lines: Sequence[Line]) -> str:
    """Say whether every row shows a rise, and what was not run."""
    flat, missing = without_rise(lines), missing_runs(lines)
    judged = [row for row in ROWS if len(_runs(row, lines)) > 1]
    single = [row.name for row in ROWS if len(_runs(row, lines)) == 1]
    count = len(judged) - len(flat)
    text = f"**{count} of {len(judged)} rows of two seeds and more show a rise.**"
    if flat:
        text += f" No rise is shown of {', '.join(row.name for row in flat)}."
    if single:
        text += f" One seed, which has no interval: {', '.join(single)}."
    return f"{text} Not run: {'; '.join(missing)}." if missing else text


def without_rise(lines: Sequence[Line]) -> list[Row]:
    """Return the rows of two seeds and more whose interval shows no rise."""
    return [row for row in ROWS if len(runs := _runs(row, lines)) > 1 and not rises(row, runs)]


def missing_runs(lines: Sequence[Line]) -> list[str]:
    """Return the rows and seeds that have no line."""
    missing = []
    for row in ROWS:
        finished = {line.seed for line in _runs(row, lines)}
        seeds = [str(seed) for seed in SEEDS if seed not in finished]
        if len(seeds) == len(SEEDS):
            missing.append(f"{row.name}, any seed")
        elif seeds:
            missing.append(f"{row.name} seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}")
    return missing


def change(lines: Sequence[Line]) -> Interval:
    """Return the mean change of the outcome with its interval, paired by seed."""
    return _interval([line.after - line.before for line in lines])


def rises(row: Row, lines: Sequence[Line]) -> bool:
    """Say whether the interval of the change lies on the better side of zero; not of one seed."""
    interval = change(lines)
    return interval.high < 0 if row.falls else interval.low > 0


def _interval(values: Sequence[float]) -> Interval:
    return welch([np.array(values)], None, CONFIDENCE_LEVEL)


def _runs(row: Row, lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.row == row.name]


def _cell(values: Sequence[float], digits: int, sign: str = "") -> str:
    interval = _interval(values)
    half = interval.high - interval.value
    spread = f" ± {half:.{digits}f}" if isfinite(half) else ""
    return f"{interval.value:{sign}.{digits}f}{spread}"


def _table(rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[str]:
    heads = ("trainer", "task", "seeds", "before", "after", "change", "rise shown", "CPU s",
             "wall s", "diagnosis")  # fmt: skip
    yield from _header(heads)
    for row in rows:
        runs = _runs(row, lines)
        before, after = [line.before for line in runs], [line.after for line in runs]
        gains = [line.after - line.before for line in runs]
        cells = (
            f"`{row.trainer}`", row.task, str(len(runs)), _cell(before, row.digits),
            _cell(after, row.digits), _cell(gains, row.digits, "+"),
            "yes" if rises(row, runs) else "**no**" if len(runs) > 1 else "one seed: no interval",
            f"{np.mean([line.cpu_seconds for line in runs]):.0f}",
            f"{np.mean([line.wall_seconds for line in runs]):.0f}", _diagnosis(runs),
        )  # fmt: skip
        yield _line(cells)


def _diagnosis(lines: Sequence[Line]) -> str:
    verdicts = _tally([line.verdict for line in lines])
    codes = _tally([f"exit {line.exit_code}" for line in lines])
    names = [name for line in lines for name in line.warnings]
    warnings = f"{len(names)} warnings: {_tally(names)}" if names else "no warning"
    return f"{verdicts}; {codes}; {warnings}"


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdict} ({count})" for verdict, count in sorted(Counter(verdicts).items()))


def _scheduler_comparison(lines: Sequence[Line]) -> Iterator[str]:
    """Compare the scheduler with the one that sends a request where the fewest are."""
    runs = [line for line in lines if line.baseline]
    if not runs:
        return
    means = {
        key: [100 * float(np.mean(line.baseline[key])) for line in runs if line.baseline]
        for key in ("mean", "p95")
    }
    yield "The scheduler beside `lor`, which learns nothing and sends each request where the fewest"
    yield f"are (`rlvitals evaluate RUN --baselines`, other unseen arrivals, {len(runs)} seeds):"
    yield f"mean latency {_cell(means['mean'], 1, '+')} %, p95 {_cell(means['p95'], 1, '+')} %."
    yield ""


def _method(lines: Sequence[Line]) -> Iterator[str]:
    machines = sorted({line.machine for line in lines})
    versions = sorted({f"{k} {v}" for line in lines for k, v in line.versions.items()})
    yield "## How it was made"
    yield ""
    yield "`make results` runs what has no line in [results.jsonl](results.jsonl) yet, and writes"
    yield "this page; `python benchmarks/results.py --only psr,rlhf --seeds 1 2` runs a part of it."
    yield f"One thread each, on a shared machine without a GPU ({'; '.join(machines)});"
    yield f"{', '.join(versions)}."
    yield "Not measured here: models of real size, GPUs, and settings other than the defaults."
    yield ""


def _run_table(lines: Sequence[Line]) -> Iterator[str]:
    heads = ("command", "before", "after", "CPU s", "wall s", "verdict", "exit code", "warnings")
    yield from _header(heads)
    for row in ROWS:
        for line in sorted(_runs(row, lines), key=lambda line: line.seed):
            yield _line(
                (
                    f"`{line.command}`", f"{line.before:.{row.digits}f}",
                    f"{line.after:.{row.digits}f}", f"{line.cpu_seconds:.0f}",
                    f"{line.wall_seconds:.0f}", line.verdict, str(line.exit_code),
                    ", ".join(line.warnings) or "none",
                )
            )  # fmt: skip


def _header(heads: Sequence[str]) -> Iterator[str]:
    yield _line(heads)
    yield "| --- " * len(heads) + "|"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
