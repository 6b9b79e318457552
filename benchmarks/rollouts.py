"""Measure how long 100,000 saved rollouts take to index, and how much memory.

    python benchmarks/rollouts.py [--samples 100000] [--characters 1500]

The files are verl's: one for each of 100 steps, 8 rollouts a prompt. CPU seconds are user and
system time of the process; memory is the highest that the process held, beyond what it had before.
Opening one sample and sorting one step are measured on the stored index.
"""

import argparse
import json
import os
import random
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from rlvitals.rollouts import rollout_index

STEPS, GROUP = 100, 8
WORDS = 5000  # different ones


def write(folder: Path, samples: int, characters: int) -> int:
    """Write verl's files; return their bytes."""
    rng = random.Random(0)  # noqa: S311 - no secret
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))
        for _ in range(WORDS)
    ]
    size = 0
    for step in range(STEPS):
        lines = []
        for number in range(samples // STEPS):
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
        size = write(folder, arguments.samples, arguments.characters)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        rollouts = rollout_index.read(folder)
        built = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        start = time.process_time()
        rollouts = rollout_index.read(folder)
        loaded = time.process_time() - start
        start = time.process_time()
        chosen = np.flatnonzero(rollouts.rows["step"] == STEPS // 2)
        chosen = chosen[np.argsort(rollouts.rows["reward"][chosen], kind="stable")]
        samples = [rollouts.read_sample(int(n)) for n in chosen[:20]]
        opened = time.process_time() - start
        print(f"{len(rollouts):,} rollouts, {size / 2**20:.0f} MiB in {STEPS} files")
        print(f"indexed in {built:.2f} CPU s, {peak / 1024:.0f} MiB more memory")
        print(f"index loaded in {loaded:.3f} CPU s")
        print(f"a step sorted and {len(samples)} samples opened in {1000 * opened:.1f} CPU ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--characters", type=int, default=1500)
    measure(parser.parse_args())
