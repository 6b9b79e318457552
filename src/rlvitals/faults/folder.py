"""Read and write the benchmark's traces: `<task>/<run>.csv.zst`, indexed by `<task>/runs.jsonl`."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

INDEX_NAME = "runs.jsonl"
TUNING_SEEDS = (0, 1)  # seeds of CartPole
FIRST_TEST_SEED = 3  # of faults and variants
FIRST_HEALTHY_TEST_SEED = 20


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of the benchmark: its settings, its fault and its true returns."""

    name: str
    task: str  # <algorithm>-<environment>
    algorithm: str
    env_id: str
    fault: str  # empty: healthy
    about: str
    variant: str  # of a healthy run: other settings that work
    onset: int | None  # environment steps
    seed: int
    steps: int  # environment steps planned
    settings: dict[str, Any]
    ended: str  # "finished", or the exception's last line
    first: float | None  # mean true return of the first tenth
    best: float | None  # of the best twentieth
    outcome: float | None  # of the last tenth

    @property
    def split(self) -> str:
        """The split of the run: `tuning`, `seen`, or `test`.

        Thresholds are chosen on `tuning`. `seen` was the test split until its errors were analysed;
        `test` was recorded later and was not inspected before the end.
        """
        if self.env_id == "CartPole-v1" and self.seed in TUNING_SEEDS:
            return "tuning"
        first = FIRST_HEALTHY_TEST_SEED if not self.fault and not self.variant else FIRST_TEST_SEED
        return "test" if self.seed >= first else "seen"


def write(root: Path, run: Recorded, text: str) -> None:
    """Add a run: write its trace first, its line in the index last."""
    folder = root / run.task
    folder.mkdir(parents=True, exist_ok=True)
    trace(root, run).write_bytes(compress(text.encode()))
    with (folder / INDEX_NAME).open("a") as index:
        index.write(json.dumps(asdict(run)) + "\n")
        index.flush()
        os.fsync(index.fileno())


def compress(data: bytes) -> bytes:
    """Compress a log: it is written once and read often."""
    return zstd.compress(data, level=19)


def decompress(data: bytes) -> bytes:
    """Decompress a log."""
    return zstd.decompress(data)


def trace(root: Path, run: Recorded) -> Path:
    """Return the path of a run's trace."""
    return root / run.task / f"{run.name}.csv.zst"


def read(root: Path) -> tuple[Recorded, ...]:
    """Return every recorded run, sorted by task and name."""
    runs = {(run.task, run.name): run for run in _read_lines(root)}
    return tuple(runs[key] for key in sorted(runs))


def _read_lines(root: Path) -> Iterator[Recorded]:
    for index in sorted(root.glob(f"*/{INDEX_NAME}")):
        for line in index.read_text().splitlines():
            if line.endswith("}"):  # the last one may have been cut
                yield Recorded(**json.loads(line))
