"""Measure every trainer's results with default settings: docs/trainers/results.md.

Each run is three commands as a person types them: `rlvitals train X --seed N`, `rlvitals evaluate`
and `rlvitals diagnose --json`. A finished run is one line of docs/trainers/results.jsonl and is not
trained again; a training that was cut off starts again, so that its times are whole. The first
seed of every row comes before the second of any.

    make results                                             what has no line yet, then the page
    python benchmarks/results.py --only psr,rlhf --seeds 1 2  by trainer or row
    python benchmarks/results.py --only psr-tiny-lm --again   train again, and replace the line
    python benchmarks/results.py --page                       write the page from the lines alone
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from results_page import ROWS, SEEDS, Line, Row, missing_runs, page, without_rise

ROOT = Path(__file__).resolve().parent.parent
LINES = ROOT / "docs/trainers/results.jsonl"
PAGE = ROOT / "docs/trainers/results.md"
RUNS = ROOT / "build/results"
ALARMS = ("warning", "error")  # severities
EVAL_LATENCY = "eval_latency"  # of the same unseen arrivals at each evaluation, seconds


@dataclass(frozen=True)
class CommandResult:
    """What a command printed and cost."""

    output: str
    exit_code: int
    cpu_seconds: float  # user and system
    wall_seconds: float


def main() -> None:
    """Train what is missing, and write the page."""
    args = _arguments()
    rows = [row for row in ROWS if _matches(row, args.only)]
    if not args.page:
        for row, seed in plan(rows, args.seeds, [] if args.again else read(LINES)):
            print(f"{row.name}, seed {seed} ...", file=sys.stderr, flush=True)
            line = finish(row, seed, args.folder)
            other_lines = [
                line for line in read(LINES) if (line.row, line.seed) != (row.name, seed)
            ]
            write(LINES, [*other_lines, line])
            print(f"  {line.before:.3f} -> {line.after:.3f}, {line.verdict}", file=sys.stderr)
    lines = read(LINES)
    PAGE.write_text(page(lines), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    for name in missing_runs(lines):
        print(f"not run: {name}")
    for row in (flat := without_rise(lines)):
        print(f"no rise: {row.name}")
    sys.exit(1 if flat else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = sorted({row.name for row in ROWS} | {row.trainer for row in ROWS})
    parser.add_argument("--only", default="", help=f"of {', '.join(names)}; commas between (all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--folder", type=Path, default=RUNS, help="of the runs (build/results)")
    parser.add_argument("--again", action="store_true", help="what has a line is trained again too")
    parser.add_argument("--page", action="store_true", help="train nothing: write the page")
    args = parser.parse_args()
    args.only = [name for name in args.only.split(",") if name]
    if unknown := set(args.only) - set(names):
        parser.error(f"no row is called {', '.join(sorted(unknown))}: one of {', '.join(names)}")
    return args


def _matches(row: Row, only: Sequence[str]) -> bool:
    return not only or row.name in only or row.trainer in only


def plan(
    rows: Sequence[Row], seeds: Sequence[int], lines: Sequence[Line]
) -> Iterator[tuple[Row, int]]:
    """Yield the runs that have no line: one seed of every row, then the next seed."""
    finished = {(line.row, line.seed) for line in lines}
    for seed in seeds:
        yield from ((row, seed) for row in rows if (row.name, seed) not in finished)


def read(file: Path) -> list[Line]:
    """Return the lines of finished runs; none where there is no file."""
    if not file.exists():
        return []
    return [Line(**json.loads(text)) for text in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, lines: Sequence[Line]) -> None:
    """Replace the file in one step, so that a process that is killed leaves whole lines."""
    order = [row.name for row in ROWS]
    ranked = sorted(lines, key=lambda line: (order.index(line.row), line.seed))
    partial = file.with_suffix(".part")
    partial.write_text(
        "".join(f"{json.dumps(asdict(line))}\n" for line in ranked), encoding="utf-8"
    )
    partial.replace(file)


def finish(row: Row, seed: int, folder: Path) -> Line:
    """Train, evaluate and diagnose one run; its folder gets its name when all three are done."""
    run = folder / f"{row.name}-{seed}.part"
    shutil.rmtree(run, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    options = (*row.options, "--seed", str(seed))
    training = rlvitals("train", *options, "--output-dir", str(run))
    before, after, baseline = latency(run) if row.trainer == "ppo" else right(run)
    diagnosis = rlvitals("diagnose", str(run), "--json", failing=True)
    document = json.loads(diagnosis.output)
    shutil.rmtree(run.with_suffix(""), ignore_errors=True)
    run.rename(run.with_suffix(""))
    return Line(
        row=row.name, seed=seed, command=" ".join(("rlvitals train", *options)),
        before=before, after=after, baseline=baseline,
        cpu_seconds=round(training.cpu_seconds, 1), wall_seconds=round(training.wall_seconds, 1),
        verdict=document["verdict"]["word"], exit_code=diagnosis.exit_code,
        warnings=alarms(document["findings"]),
        machine=f"{platform.machine()}, {os.cpu_count()} cores",
        versions={name: version(name) for name in ("torch", "transformers", "trl", "numpy")},
    )  # fmt: skip


def right(run: Path) -> tuple[float, float, None]:
    """Return the share of unseen questions answered right before and after; no baseline."""
    evaluation = rlvitals("evaluate", str(run), "--base", "--samples", "0", "--json")
    after, start_share = (
        policy["right"]["value"] for policy in json.loads(evaluation.output)["policies"]
    )
    return start_share, after, None


def latency(run: Path) -> tuple[float, float, dict[str, list[float]]]:
    """Return the mean latency of unseen requests before and after, and beside LOR's.

    Before and after are the run's own evaluations at its first and last step, of the same arrivals;
    before is what the warm start taught. The last are shares by which mean and p95 differ from
    those of `lor`, one for each stream of arrivals.
    """
    table = run.with_suffix(".jsonl")
    rlvitals("export", str(run), str(table), "--keys", EVAL_LATENCY, "--force")
    rows = [json.loads(text) for text in table.read_text(encoding="utf-8").splitlines()]
    latencies = [row[EVAL_LATENCY] for row in rows if row.get(EVAL_LATENCY) is not None]
    evaluation = rlvitals("evaluate", str(run), "--baselines", "--json")
    schedulers = json.loads(evaluation.output)["evaluations"]
    pairs = list(zip(schedulers["ppo"], schedulers["lor"], strict=True))
    differences = {
        key: [ours[key] / lor[key] - 1 for ours, lor in pairs] for key in ("mean", "p95")
    }
    return latencies[0], latencies[-1], differences


def alarms(findings: Sequence[dict[str, Any]]) -> list[str]:
    """Return the rules of a diagnosis that warn, symptoms included."""
    return [finding["rule"] for finding in findings if finding["severity"] in ALARMS]


def rlvitals(*options: str, failing: bool = False) -> CommandResult:
    """Run the program with one thread; a command that fails ends the script unless `failing`."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    start_time = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "rlvitals", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip
    start_cpu = sum(os.times()[2:4])  # user and system seconds of ended children
    output, errors = process.communicate()
    cpu_seconds = sum(os.times()[2:4]) - start_cpu
    if process.returncode and not failing:
        sys.exit(f"rlvitals {' '.join(options)}: {process.returncode}\n{errors[-4000:]}")
    return CommandResult(output, process.returncode, cpu_seconds, time.monotonic() - start_time)


if __name__ == "__main__":
    main()
