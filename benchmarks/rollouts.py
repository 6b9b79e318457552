"""Measure how long 100,000 saved rollouts take to index, and how much memory.

    python benchmarks/rollouts.py [--samples 100000] [--characters 1500] [--steps 100]

The files are verl's: one for each step, 8 rollouts a prompt; with `--steps 10` a step has 10,000.
CPU seconds are user and system time of the process; memory is the highest that the process held,
beyond what it had before. Sorting one step and listing its first 20 rollouts are measured on the
stored index, and so are its series.
"""

import argparse
import json
import os
import random
import resource
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console

from rlvitals.rollouts import rollout_index, row_filter, series
from rlvitals.views import rollout_list

GROUP = 8
WORDS = 5000  # different ones


def write(folder: Path, samples: int, characters: int, steps: int) -> int:
    """Write verl's files; return their bytes."""
    rng = random.Random(0)  # noqa: S311 - no secret
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))
        for _ in range(WORDS)
    ]
    size = 0
    for step in range(steps):
        lines = []
        for number in range(samples // steps):
            text = " ".join(rng.choices(words, k=characters // 6))
            score = float(rng.choice((0, 1)))
            row = {
                "input": f"What is {number // GROUP} + {step}? " + " ".join(words[:40]),
                "output": text,
                "gts": str(number // GROUP + step),
                "score": score,
                "step": step,
                "acc": score,
                "format": 1.0,
            }
            lines.append(json.dumps(row))
        data = "\n".join(lines) + "\n"
        (folder / f"{step}.jsonl").write_text(data)
        size += len(data)
    return size


def measure(arguments: argparse.Namespace) -> None:
    """Write, index, load and open."""
    with tempfile.TemporaryDirectory() as location:
        os.environ["XDG_CACHE_HOME"] = str(Path(location, "cache"))
        folder = Path(location, "rollouts")
        folder.mkdir()
        size = write(folder, arguments.samples, arguments.characters, arguments.steps)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        rollouts = rollout_index.read(folder)
        built = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        start = time.process_time()
        rollouts = rollout_index.read(folder)
        loaded = time.process_time() - start
        start = time.process_time()
        chosen = row_filter.select(rollouts, row_filter.Filter(step=arguments.steps // 2))
        chosen = row_filter.sort(rollouts, chosen, "reward", descending=True)
        Console(file=StringIO(), width=120).print(rollout_list.listing(rollouts, chosen[:20]))
        listed = time.process_time() - start
        start = time.process_time()
        log = series.to_log(rollouts)
        summed = time.process_time() - start
        print(f"{len(rollouts):,} rollouts, {size / 2**20:.0f} MiB in {arguments.steps} files")
        print(f"indexed in {built:.2f} CPU s, {peak / 1024:.0f} MiB more memory")
        print(f"index loaded in {loaded:.3f} CPU s")
        print(f"a step of {len(chosen):,} sorted and listed in {1000 * listed:.1f} CPU ms")
        print(f"{len(log.series)} series in {1000 * summed:.0f} CPU ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--characters", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=100)
    measure(parser.parse_args())
