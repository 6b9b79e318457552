"""What each mode teaches a tiny model, beside what the paper found of large ones.

Each training is the whole program with no flag but its model, steps, seed and folder; then
`rlvitals evaluate` asks it 1,024 held-out questions, and the model that it began with the same.
What is there already is not trained again: a folder can be filled in parts.

    python benchmarks/modes.py                                five seeds of every mode
    python benchmarks/modes.py --folder modes --seeds 1 2 --modes nsr --jobs 2
    python benchmarks/modes.py --model tiny-vlm               the model that reads charts
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rlvitals
from rlvitals.comparison.samples import CONFIDENCE, Interval, welch
from rlvitals.trainers.language import presets

# Greedy accuracy that a mode must come to from about 0.34.
WANTED = {"grpo": 0.70, "psr": 0.70, "nsr": 0.60, "w-reinforce": 0.60}
SEEDS, MODELS = (1, 2, 3, 4, 5), ("tiny-lm", "tiny-vlm")
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

    def seen(self, apart: Sequence[Interval]) -> str:
        """Say whether intervals of the difference from each other one bear it out."""
        ends = [sorted((self.sign * one.low, self.sign * one.high)) for one in apart]
        if all(low > -self.margin for low, _ in ends):
            return "seen"
        if any(high < -self.margin for _, high in ends):
            return "the other way round"
        return "not reproduced at this scale"


def main() -> None:
    """Train what is not there, and print the tables."""
    args = _arguments()
    steps = args.steps or presets.preset(args.model)["training.max_steps"]
    with tempfile.TemporaryDirectory() as place:
        folder = args.folder or Path(place)
        wanted = [(mode, seed) for seed in args.seeds for mode in args.modes]
        with ThreadPoolExecutor(args.jobs) as pool:
            done = list(pool.map(lambda one: evaluated(folder, args.model, *one, steps), wanted))
            first = [_run(folder, args.modes[0], seed, steps) for seed in args.seeds]
            kept = [folder / f"{BASE}-{seed}.json" for seed in args.seeds]
            began = list(pool.map(lambda *one: asked(*one, "--checkpoint", "0"), first, kept))
    found: dict[str, list[Told]] = {}
    words: dict[str, list[str]] = {}
    for (mode, _), one in zip(wanted, done, strict=True):
        found.setdefault(mode, []).append(one["policies"][0])
        words.setdefault(mode, []).append(one["diagnosis"])
    found[BASE] = [one["policies"][0] for one in began]
    count = f"{len(args.seeds)} seeds, {steps} steps, {done[0]['questions']:,} questions"
    print(f"{count}; means over the seeds with {CONFIDENCE:.0%} t intervals, approximate\n")
    print("\n".join([*learnt(found, words), "", *passed(found), "", *paper(found)]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="of the runs (one that is thrown away)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--modes", nargs="+", default=tuple(WANTED), choices=tuple(WANTED))
    parser.add_argument("--model", default=MODELS[0], choices=MODELS)
    parser.add_argument("--steps", type=int, default=0, help="of a training (0: the preset's)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once (1)")
    return parser.parse_args()


def evaluated(folder: Path, model: str, mode: str, seed: int, steps: int) -> dict[str, Any]:
    """Train and evaluate, unless that is done; returns what was said, with the diagnosis."""
    run = _run(folder, mode, seed, steps)
    kept = folder / f"{run.name}.json"
    if not kept.is_file():
        task = ("--vlm-name", model, "--max-steps", str(steps))
        rlvitals_("train", mode, *task, "--seed", str(seed), "--output-dir", str(run))
    said = asked(run, kept)
    print(f"{run.name}: {said['policies'][0]['right']['value']:.3f}", file=sys.stderr, flush=True)
    return said


def _run(folder: Path, mode: str, seed: int, steps: int) -> Path:
    return folder / f"{mode}-{seed}-{steps}"


def asked(run: Path, kept: Path, *options: str) -> dict[str, Any]:
    """Return what an evaluation says, and the diagnosis; it is kept in a file."""
    if kept.is_file():
        return json.loads(kept.read_text())
    said = json.loads(rlvitals_("evaluate", str(run), "--json", *options))
    judged = rlvitals.diagnose(run)
    alarms = [rule.name for rule, one in judged.findings if one.severity > rlvitals.Severity.NOTE]
    said["diagnosis"] = " ".join([judged.verdict.word.value, *alarms])
    kept.write_text(json.dumps(said))
    return said


def rlvitals_(*options: str) -> str:
    """Run the program as a person would, by one thread; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "rlvitals", *options], check=False, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"rlvitals {' '.join(options)}: {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def column(each: Sequence[Told], k: int = 0) -> np.ndarray:
    """Return the greedy accuracy of each seed, or its pass@k."""
    if not k:
        return np.array([one["right"]["value"] for one in each])
    return np.array([next(p["value"] for p in one["pass_at_k"] if p["k"] == k) for one in each])


def ks(found: Table) -> list[int]:
    """Return the k of pass@k."""
    return [one["k"] for one in found[BASE][0]["pass_at_k"]]


def shown(values: np.ndarray, digits: int = 3) -> str:
    """Show a mean over seeds, with its interval."""
    one = welch([values], None, CONFIDENCE)
    known = math.isfinite(one.high)  # not of one seed
    return f"{one.value:.{digits}f}" + (f" ± {one.high - one.value:.{digits}f}" if known else "")


def learnt(found: Table, words: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the table of what is right, and how it is spread."""
    lines = ["| mode | greedy, start | greedy, end | wanted | of each seed | entropy | diagnosis |"]
    lines += ["| --- " * 7 + "|"]
    start = shown(column(found[BASE]))
    for mode in (mode for mode in found if mode != BASE):
        end, nats = column(found[mode]), np.array([one["entropy"] for one in found[mode]])
        each = ", ".join(f"{one:.2f}" for one in end)
        said = "; ".join(f"{word} {words[mode].count(word)}" for word in sorted({*words[mode]}))
        lines.append(
            f"| {mode} | {start} | {shown(end)} | {WANTED[mode]:.2f} | {each} | {shown(nats, 2)} "
            f"| {said} |"
        )
    began = np.array([one["entropy"] for one in found[BASE]])
    return [*lines, f"| {BASE} | {start} | | | | {shown(began, 2)} | |"]


def passed(found: Table) -> list[str]:
    """Return the table of pass@k."""
    lines = ["| " + " | ".join(["pass@k", *map(str, ks(found))]) + " |"]
    lines += ["| --- " * (len(ks(found)) + 1) + "|"]
    for mode, each in found.items():
        cells = [shown(column(each, k)) for k in ks(found)]
        lines.append("| " + " | ".join([mode, *cells]) + " |")
    return lines


def paper(found: Table) -> list[str]:
    """Say of each finding of the paper whether it is seen here.

    Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    arXiv 2506.01347.
    """
    few, most = ks(found)[0], ks(found)[-1]
    first = {mode: column(each, few) for mode, each in found.items()}
    last = {mode: column(each, most) for mode, each in found.items()}
    every = {m: np.mean([column(each, k) for k in ks(found)], axis=0) for m, each in found.items()}
    claims = (
        Claim(f"PSR is best at pass@{few}", "psr", first, ("grpo", "nsr", "w-reinforce")),
        Claim(f"PSR is worst at pass@{most}", "psr", last, ("grpo", "nsr", "w-reinforce"), sign=-1),
        Claim(f"NSR keeps the base's pass@{most}", "nsr", last, (BASE,), margin=MARGIN),
        Claim("W-REINFORCE is best over all k", "w-reinforce", every, ("grpo", "psr", "nsr")),
    )
    lines = ["| of large models | here | less the other, paired by seed |", "| --- " * 3 + "|"]
    for one in claims:
        if {one.mode, *one.others} <= {*found}:
            apart = {o: welch([one.by[one.mode] - one.by[o]], None, CONFIDENCE) for o in one.others}
            cells = [
                f"{o} {d.value:+.3f} ({d.low:+.3f} to {d.high:+.3f})" for o, d in apart.items()
            ]
            lines.append(f"| {one.said} | {one.seen([*apart.values()])} | {'; '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
