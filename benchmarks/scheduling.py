"""What `rlvitals train ppo` learns: end-to-end latency on held-out arrivals, beside schedulers.

Each training is the whole program with its default settings, on one thread, with a seed of its
own; each is judged by arrivals that neither it nor another saw, and every scheduler by the same.
The interval is Student's t over the trainings: it holds the luck of training and of arrivals.

    python benchmarks/scheduling.py               five trainings of the default cluster
    python benchmarks/scheduling.py --seeds 1 --others    other loads, sizes and arrivals too
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from math import isnan
from pathlib import Path

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, evaluate
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.program import Training

STREAMS, ENVS, STEPS = 5, 64, 1200  # of held-out arrivals: a training's own are counted as one
SCHEDULERS = ("lor", "lor/speed", "tokens/speed")
OTHERS = {
    "load 0.5": {"cluster.load": 0.5},
    "load 0.9": {"cluster.load": 0.9},
    "8 replicas": {"cluster.replicas": 8},
    "gamma arrivals, cv 2": {"cluster.arrivals": "gamma"},
}


def trained(folder: Path, said: dict) -> tuple[evaluate.Trained, float, str]:
    """Train by settings; returns the policy, CPU seconds and what the diagnosis says."""
    config = schema.load(Config, None, said | {"training.output_dir": str(folder)})
    began = time.process_time()
    with redirect_stdout(StringIO()):
        Training(config).run()
    spent = time.process_time() - began
    found = rlvitals.diagnose(folder)
    alarms = [rule.name for rule, one in found.findings if one.severity > rlvitals.Severity.NOTE]
    return evaluate.load(folder), spent, " ".join([found.verdict.word.value, *alarms])


def judged(made: evaluate.Trained, seed: int) -> dict[str, cluster.Evaluation]:
    """Evaluate a policy and the schedulers by the held-out arrivals of a training's number."""
    policies = {name: one for name, one in cluster.baselines().items() if name in SCHEDULERS}
    policies["ppo"] = made.schedule
    streams = range(seed * STREAMS, (seed + 1) * STREAMS)
    return {
        name: pooled(
            [
                cluster.evaluate(one, made.config.environment, seed=at, envs=ENVS, steps=STEPS)
                for at in streams
            ]
        )
        for name, one in policies.items()
    }


def pooled(each: list[cluster.Evaluation]) -> cluster.Evaluation:
    """The mean over streams of arrivals."""
    fields = cluster.Evaluation.__slots__
    return cluster.Evaluation(*(sum(getattr(one, f) for one in each) / len(each) for f in fields))


def compare(seeds: int, said: dict, folder: Path) -> None:
    rows: dict[str, list[cluster.Evaluation]] = {}
    for seed in range(seeds):
        made, spent, word = trained(folder / str(seed), said | {"training.seed": seed})
        for name, one in judged(made, seed).items():
            rows.setdefault(name, []).append(one)
        own = rows["ppo"][-1]
        print(
            f"  seed {seed}: {made.step:,} steps, {spent:.0f} CPU s, "
            f"mean {own.mean:.2f} s, p95 {own.p95:.2f} s, {word}",
            flush=True,
        )
    print(cluster.table(rows))
    for name in SCHEDULERS:
        leads = (cluster.lead(rows["ppo"], rows[name], metric) for metric in ("mean", "p95"))
        told = (said_of(one) for one in leads)
        print(f"  ppo against {name:13} mean and p95: {', '.join(told)}", flush=True)


def said_of(lead: cluster.Lead) -> str:
    interval = "" if isnan(lead.low) else f" ({lead.low:+.1%} to {lead.high:+.1%})"
    return f"{lead.mean:+.1%}{interval}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each (5)")
    parser.add_argument("--steps", type=int, default=0, help="of each (the default settings')")
    parser.add_argument("--others", action="store_true", help="other clusters and arrivals too")
    args = parser.parse_args()
    said = {"training.total_steps": args.steps} if args.steps else {}
    with tempfile.TemporaryDirectory() as place:
        for name, own in {"the default cluster": {}, **(OTHERS if args.others else {})}.items():
            print(f"\n{name}", flush=True)
            compare(args.seeds, said | own, Path(place) / name.replace(" ", "-"))


if __name__ == "__main__":
    main()
