"""Measure reading a `.wandb` file, compared with W&B's protobuf.

Both read the same file of 100,000 numbers (20 keys x 5,000 rows) that W&B itself wrote offline:
each row brings two summary records with it. W&B has no reader of its own in Python any more; the
peer takes records from SwanLab's importer of such files, parses them with W&B's protobuf classes
(C underneath) and each item of a history row with `json`. What both read is compared first.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from swanlab.converter.wb.wbdatastore import WBDataStoreReader
from wandb.proto.wandb_internal_pb2 import Record

from rlvitals.readers import wandb_offline

KEYS, ROWS, ROUNDS = 20, 5_000, 7
INTERNAL = ("_step", "_timestamp")
Columns = dict[str, np.ndarray]


def main() -> list[str]:
    """Time both and return the table's rows."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, folder]
        environ = {**os.environ, "HOME": folder, "WANDB_SILENT": "true"}
        subprocess.run(command, env=environ, check=True)
        path = next(Path(folder).glob("wandb/offline-run-*/*.wandb"))
        expected, our_rows = read_peer(path), read_ours(path)
        for key, values in expected.items():
            if key not in INTERNAL:
                np.testing.assert_array_equal(our_rows[key], values)
        numbers = sum(len(values) for values in expected.values())
        ours, peer = best(read_ours, path), best(read_peer, path)
        size = path.stat().st_size
    print(f"{numbers:,} numbers, {size / 1e6:.1f} MB, best of {ROUNDS}")
    rows = [
        f"| rlvitals | {ours / numbers * 1e9:,.0f} | 1 |",
        f"| W&B's protobuf and json | {peer / numbers * 1e9:,.0f} | {peer / ours:.1f} |",
    ]
    print("| reader | ns a number | times ours |", "| --- | --- | --- |", *rows, sep="\n")
    return rows


def write(folder: str) -> None:
    import wandb

    settings = wandb.Settings(x_disable_stats=True, console="off")
    run = wandb.init(project="benchmark", mode="offline", dir=folder, settings=settings)
    generator = np.random.default_rng(0)
    for _ in range(ROWS):
        run.log({f"train/metric_{key}": generator.normal() for key in range(KEYS)})
    run.finish()


def read_ours(path: Path) -> Columns:
    log, _ = wandb_offline.READER.read(path, None)
    return {key: series.values for key, series in log.series.items()}


def read_peer(path: Path) -> Columns:
    columns: dict[str, list[float]] = defaultdict(list)
    with WBDataStoreReader() as reader:
        reader.open(path)
        while (data := reader.scan()) is not None:
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                for item in record.history.item:
                    key = item.key or ".".join(item.nested_key)
                    columns[key].append(json.loads(item.value_json))
    return {key: np.array(values) for key, values in columns.items()}


def best(read: Callable[[Path], Columns], path: Path) -> float:
    """Return the least CPU seconds of ROUNDS readings."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        read(path)
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    write(sys.argv[1]) if len(sys.argv) > 1 else main()
