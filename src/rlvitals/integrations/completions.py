"""What a TRL trainer's policy wrote, as the columns of a table."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

NAME = "completions"
STEP = "step"
INDEX = "__index_level_"  # pandas' own columns
PLAIN = frozenset((str, float, int, bool, type(None)))  # what a cell may be


def from_file(output: Path, step: int) -> tuple[dict[str, list[object]], str]:
    """Return the columns that TRL wrote at `step`, and what is wrong where there are none.

    Written by `log_completions=True`; trl v1.16: trl/trainer/grpo_trainer.py, log.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - TRL brings it
        from pyarrow import parquet  # noqa: PLC0415 - the same
    except ImportError:
        return {}, "completions were not recorded: pip install pyarrow"
    path = output / NAME / f"{NAME}_{step:05d}.parquet"
    try:
        found = parquet.read_table(path, use_threads=False).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:
        return {}, f"completions of step {step} were not recorded: {error}"
    return _cells(found), ""


def from_memory(logs: Mapping[str, Any]) -> dict[str, list[object]]:
    """Return the columns of a trainer's last generation batch, from its `_logs`; may be empty."""
    columns: dict[str, Iterable[object]] = {
        "prompt": logs["prompt"],
        "completion": logs["completion"],
        **logs["rewards"],
        **logs.get("extra", {}),
        "advantage": logs["advantages"],
    }
    return _cells({key: list(column) for key, column in columns.items()})


def _cells(found: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """Leave out the step, which the table has itself; a conversation is kept as JSON."""
    return {
        key: column if PLAIN.issuperset(map(type, column)) else [_cell(cell) for cell in column]
        for key, column in found.items()
        if key != STEP and not key.startswith(INDEX)
    }


def _cell(cell: object) -> object:
    if cell is None or isinstance(cell, bool | int | float | str):
        return cell
    return json.dumps(cell, ensure_ascii=False, default=str)
