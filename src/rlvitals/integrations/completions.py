"""Read the completions of a TRL trainer's policy as the columns of a table."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlvitals.tracking.media import JSON_TYPES

TABLE_NAME = "completions"


def from_file(output: Path, step: int) -> tuple[dict[str, list[object]], str]:
    """Return the columns that TRL wrote at `step`, and the problem if there are none.

    Written by `log_completions=True`; trl v1.16: trl/trainer/grpo_trainer.py, log.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - TRL brings it
        from pyarrow import parquet  # noqa: PLC0415 - the same
    except ImportError:
        return {}, "completions were not recorded: pip install pyarrow"
    path = output / TABLE_NAME / f"{TABLE_NAME}_{step:05d}.parquet"
    try:
        columns = parquet.read_table(path, use_threads=False).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:
        return {}, f"completions of step {step} were not recorded: {error}"
    return _cells(columns), ""


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


def _cells(columns: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """Remove the columns of the step and the index; convert conversations to JSON."""
    return {
        key: column
        if JSON_TYPES.issuperset(map(type, column))
        else [
            (
                cell
                if cell is None or isinstance(cell, bool | int | float | str)
                else json.dumps(cell, ensure_ascii=False, default=str)
            )
            for cell in column
        ]
        for key, column in columns.items()
        # These columns are pandas' own.
        if key != "step" and not key.startswith("__index_level_")
    }
