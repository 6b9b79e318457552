"""Compare the latency of a trained `rlvitals train ppo` policy with that of schedulers.

Each training is the whole program with its default settings, on one thread, with a seed of its own.
Its policy then schedules for clusters of other sizes and loads, without being trained again, and
every scheduler meets the same arrivals. The interval is Student's t over the trainings: it contains
the luck of training and of arrivals. What is done is kept in a folder and not done again.

    python benchmarks/scheduling.py                        the whole table; 4 + 25 minutes of CPU
    python benchmarks/scheduling.py --replicas 8 --loads 0.9    one cell of it
    python benchmarks/scheduling.py --seeds 1 --set cluster.arrivals=gamma --folder /tmp/gamma
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from math import isnan
from pathlib import Path

import rlvitals
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, evaluate
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.program import Training

REPLICAS, LOADS = (4, 8, 16), (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SEEDS = 1, 2, 3, 4, 5
ENVS = 32  # clusters of an evaluation
STEPS = 300  # decisions for each replica of a cluster: the same time at every size
ROWS = Path("evaluations.jsonl")
COMPARED = "mean against the best", "p95 against the best", "p95 against lor/speed"
SMALLEST_SHARE = 0.0005  # of refused requests that is shown


def train(folder: Path, settings: dict[str, object]) -> None:
    """Train, or finish a training, and print what it took and what its diagnosis says."""
    config = schema.load(Config, None, settings | {"training.output_dir": str(folder)})
    result_file = folder / "trained.json"
    if result_file.exists():
        return
    start_time = time.process_time()
    with redirect_stdout(StringIO()):
        Training(config).run()
    spent = time.process_time() - start_time
    diagnosis = rlvitals.diagnose(folder)
    alarms = [
        rule.name
        for rule, finding in diagnosis.findings
        if finding.severity > rlvitals.Severity.NOTE
    ]
    verdict = " ".join([diagnosis.verdict.word.value, *alarms])
    print(f"{folder.name}: {spent:.0f} CPU s, {verdict}", flush=True)
    result_file.write_text(json.dumps({"cpu_seconds": spent, "verdict": verdict}))


def evaluate_cell(trained: evaluate.Trained, replicas: int, load: float, seed: int) -> dict:
    """Let the policy and every scheduler meet the arrivals of one cell of the table."""
    moved = evaluate.on_other_cluster(trained, {"replicas": replicas, "load": load})
    start_time = time.process_time()
    result = evaluate.on_cluster(
        moved, seeds=[seed], envs=ENVS, steps=STEPS * replicas, baselines=True
    )
    return {
        "replicas": replicas, "load": load, "seed": seed, "step": trained.step,
        "cpu_seconds": round(time.process_time() - start_time, 1),
        "schedulers": {name: asdict(each[0]) for name, each in result.items()},
    }  # fmt: skip


def read(folder: Path) -> dict[tuple[int, float, int], dict[str, cluster.Evaluation]]:
    """Return the evaluations that are there, by replicas, load and seed."""
    file = folder / ROWS
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {
        (row["replicas"], row["load"], row["seed"]): {
            name: cluster.Evaluation(**each) for name, each in row["schedulers"].items()
        }
        for row in rows
    }


def table(folder: Path) -> str:
    """Return the evaluations that are there as a table in Markdown."""
    rows_by_name = read(folder)
    names = list(next(iter(rows_by_name.values())))
    lines = [
        f"| {' | '.join(['replicas', 'load', 'trainings', *names, *COMPARED])} |",
        f"| --- | --- | --- |{' --- |' * (len(names) + len(COMPARED))}",
    ]
    for replicas, load in sorted({key[:2] for key in rows_by_name}):
        cells = [each for key, each in sorted(rows_by_name.items()) if key[:2] == (replicas, load)]
        rows = {name: [each[name] for each in cells] for name in names}
        number_rows = [numbers(rows[name]) for name in names]
        for metric in ("mean", "p95"):
            best = min((n for n in names if n != "ppo"), key=lambda n: average(rows[n], metric))
            number_rows.append(f"{interval(cluster.lead(rows['ppo'], rows[best], metric))} {best}")
        number_rows.append(interval(cluster.lead(rows["ppo"], rows["lor/speed"], "p95")))
        lines.append(f"| {replicas} | {load:g} | {len(cells)} | {' | '.join(number_rows)} |")
    return "\n".join(lines)


def numbers(each: list[cluster.Evaluation]) -> str:
    """Return mean and p95, and the share of requests that were refused where there are any."""
    refused, finished = average(each, "rejected"), average(each, "finished")
    share = refused / (refused + finished)
    text = f"{average(each, 'mean'):.2f}, {average(each, 'p95'):.2f}"
    return f"{text} ({share:.1%})" if share >= SMALLEST_SHARE else text


def average(each: list[cluster.Evaluation], field: str) -> float:
    return sum(getattr(item, field) for item in each) / len(each)


def interval(lead: cluster.Lead) -> str:
    bounds = "" if isnan(lead.low) else f" ({lead.low:+.1%} to {lead.high:+.1%})"
    return f"{lead.mean:+.1%}{bounds}"


def setting(text: str) -> tuple[str, object]:
    """Return name and value of `NAME=VALUE`; a value that is no JSON is a text."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("outputs/scheduling"))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--replicas", type=int, nargs="+", default=REPLICAS)
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS)
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings to train with"
    )
    args = parser.parse_args()
    settings = dict(setting(text) for text in args.set)
    for seed in args.seeds:
        run = args.folder / f"seed-{seed}"
        train(run, settings | {"training.seed": seed})
        trained = evaluate.load(run)
        for replicas in args.replicas:
            for load in args.loads:
                if (replicas, load, seed) in read(args.folder):
                    continue
                row = evaluate_cell(trained, replicas, load, seed)
                with (args.folder / ROWS).open("a") as file:
                    file.write(f"{json.dumps(row)}\n")
    print(table(args.folder))


if __name__ == "__main__":
    main()
