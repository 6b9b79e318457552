"""Compare the modes' results on a tiny model with those of the paper on large models.

The runs are those of benchmarks/results.py, and are trained where they are not there; then
`rlvitals evaluate` asks each 1,024 held-out questions 64 times, and the model that it began with
the same. An answer that is there is not asked for again: a folder can be filled in parts.

    python benchmarks/modes.py                                five seeds of every mode
    python benchmarks/modes.py --folder modes --seeds 1 2 --modes nsr
    python benchmarks/modes.py --model tiny-vlm               the model that reads charts
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import results
from results_page import MODES, ROWS, SEEDS, Row

from rlvitals.comparison.statistics import CONFIDENCE_LEVEL, Interval, welch

MODELS = ("tiny-lm", "tiny-vlm")
BASE = "base"
MARGIN = 0.02  # of pass@k, within which it is kept
Told = Mapping[str, Any]  # what `rlvitals evaluate --json` says of one policy
Table = Mapping[str, Sequence[Told]]  # by mode, and of the base: one of each seed


@dataclass(frozen=True)
class Claim:
    """That one mode is ahead of others."""

    said: str
    mode: str
    by: Mapping[str, np.ndarray]  # by mode: a number of each seed
    others: Sequence[str]
    sign: int = 1  # -1: behind them all
    margin: float = 0.0  # by which it may be behind

    def seen(self, intervals: Sequence[Interval]) -> str:
        """Say whether intervals of the difference from each other one bear it out."""
        ends = [
            sorted((self.sign * interval.low, self.sign * interval.high)) for interval in intervals
        ]
        if all(low > -self.margin for low, _ in ends):
            return "seen"
        if any(high < -self.margin for _, high in ends):
            return "the other way round"
        return "not reproduced at this scale"


def main() -> None:
    """Train what is not there, and print the tables."""
    args = _arguments()
    tables: dict[str, list[Told]] = {}
    for seed in args.seeds:
        for mode in args.modes:
            row = next(row for row in ROWS if row.name == f"{mode}-{args.model}")
            tables.setdefault(mode, []).append(asked(row, seed, args.folder))
        first = next(row for row in ROWS if row.name == f"{args.modes[0]}-{args.model}")
        tables.setdefault(BASE, []).append(asked(first, seed, args.folder, "--checkpoint", "0"))
    count = f"{len(args.seeds)} seeds, {tables[BASE][0]['questions']:,} questions"
    print(f"{count}; means over the seeds with {CONFIDENCE_LEVEL:.0%} t intervals, approximate\n")
    print("\n".join([*learnt(tables), "", *passed(tables), "", *paper(tables)]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=results.RUNS, help="of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--model", default=MODELS[0], choices=MODELS)
    return parser.parse_args()


def asked(row: Row, seed: int, folder: Path, *options: str) -> Told:
    """Return what an evaluation says of a run, trained where it is not there; kept in a file."""
    run = folder / f"{row.name}-{seed}"
    cache = folder / f"{run.name}{'-'.join(options)}.json"
    if not cache.is_file():
        if not run.is_dir():
            results.finish(row, seed, folder)
        cache.write_text(results.rlvitals("evaluate", str(run), "--json", *options).output)
    cached = json.loads(cache.read_text())
    policy = cached["policies"][0]
    print(f"{cache.stem}: {policy['right']['value']:.3f}", file=sys.stderr, flush=True)
    return {**policy, "questions": cached["questions"]}


def column(each: Sequence[Told], k: int = 0) -> np.ndarray:
    """Return the greedy accuracy of each seed, or its pass@k."""
    if not k:
        return np.array([answer["right"]["value"] for answer in each])
    return np.array(
        [next(p["value"] for p in answer["pass_at_k"] if p["k"] == k) for answer in each]
    )


def ks(table: Table) -> list[int]:
    """Return the k of pass@k."""
    return [result["k"] for result in table[BASE][0]["pass_at_k"]]


def shown(values: np.ndarray, digits: int = 3) -> str:
    """Show a mean over seeds, with its interval."""
    interval = welch([values], None, CONFIDENCE_LEVEL)
    is_finite = math.isfinite(interval.high)  # not of one seed
    return f"{interval.value:.{digits}f}" + (
        f" ± {interval.high - interval.value:.{digits}f}" if is_finite else ""
    )


def learnt(table: Table) -> list[str]:
    """Return the table of what is right, and how it is spread."""
    lines = ["| mode | greedy | of each seed | entropy |", "| --- " * 4 + "|"]
    for mode, each in table.items():
        nats = np.array([answer["entropy"] for answer in each])
        seeds = ", ".join(f"{answer:.2f}" for answer in column(each))
        lines.append(f"| {mode} | {shown(column(each))} | {seeds} | {shown(nats, 2)} |")
    return lines


def passed(table: Table) -> list[str]:
    """Return the table of pass@k."""
    lines = ["| " + " | ".join(["pass@k", *map(str, ks(table))]) + " |"]
    lines += ["| --- " * (len(ks(table)) + 1) + "|"]
    for mode, each in table.items():
        cells = [shown(column(each, k)) for k in ks(table)]
        lines.append("| " + " | ".join([mode, *cells]) + " |")
    return lines


def paper(table: Table) -> list[str]:
    """Say of each finding of the paper whether it is seen here.

    Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    arXiv 2506.01347.
    """
    smallest_k, largest_k = ks(table)[0], ks(table)[-1]
    first = {mode: column(each, smallest_k) for mode, each in table.items()}
    last = {mode: column(each, largest_k) for mode, each in table.items()}
    every = {m: np.mean([column(each, k) for k in ks(table)], axis=0) for m, each in table.items()}
    claims = (
        Claim(f"PSR is best at pass@{smallest_k}", "psr", first, ("grpo", "nsr", "w-reinforce")),
        Claim(
            f"PSR is worst at pass@{largest_k}",
            "psr",
            last,
            ("grpo", "nsr", "w-reinforce"),
            sign=-1,
        ),
        Claim(f"NSR keeps the base's pass@{largest_k}", "nsr", last, (BASE,), margin=MARGIN),
        Claim("W-REINFORCE is best over all k", "w-reinforce", every, ("grpo", "psr", "nsr")),
    )
    lines = ["| of large models | here | less the other, paired by seed |", "| --- " * 3 + "|"]
    for claim in claims:
        if {claim.mode, *claim.others} <= {*table}:
            intervals = {
                o: welch([claim.by[claim.mode] - claim.by[o]], None, CONFIDENCE_LEVEL)
                for o in claim.others
            }
            cells = [
                f"{o} {d.value:+.3f} ({d.low:+.3f} to {d.high:+.3f})" for o, d in intervals.items()
            ]
            lines.append(
                f"| {claim.said} | {claim.seen([*intervals.values()])} | {'; '.join(cells)} |"
            )
    return lines


if __name__ == "__main__":
    main()
