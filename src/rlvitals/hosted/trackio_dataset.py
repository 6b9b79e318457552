"""Turn the Parquet files of a Trackio data set into the database that Trackio keeps at home.

Trackio backs up `PROJECT.db` on the hub as `PROJECT.parquet`, a column for each metric, and
`PROJECT_configs.parquet`, one for each setting. Source: `trackio/sqlite_storage.py`
(`export_to_parquet`), as of 0.43.
"""

import json
import math
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from rlvitals.errors import VitalsError


def is_part(name: str, names: Collection[str]) -> bool:
    """Return whether a file of a repository is one of the two tables of a project."""
    project = name.removesuffix(".parquet").removesuffix("_configs")
    pair = {f"{project}.parquet", f"{project}_configs.parquet"}
    return "/" not in name and name in pair and pair <= set(names)


def write_databases(folder: Path) -> None:
    """Write the database of each project whose tables are newer. Raises VitalsError, OSError."""
    for configs in folder.glob("*_configs.parquet"):
        metrics = configs.with_name(f"{configs.name.removesuffix('_configs.parquet')}.parquet")
        database = metrics.with_suffix(".db")
        if not metrics.is_file():
            continue
        newest_s = max(metrics.stat().st_mtime, configs.stat().st_mtime)
        if database.exists() and database.stat().st_mtime >= newest_s:
            continue
        temporary = database.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        # The columns of each table; all further ones are members of its JSON column.
        tables = (
            ("metrics", "metrics", metrics, ("id", "run_id", "timestamp", "run_name", "step")),
            ("configs", "config", configs, ("id", "run_id", "run_name", "created_at")),
        )
        with closing(sqlite3.connect(temporary)) as connection, connection:
            for table, json_column, file, columns in tables:
                names = (*columns, json_column)
                connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
                marks = ", ".join("?" * len(names))
                connection.executemany(
                    f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - names of ours
                    _rows(file, columns),
                )
        temporary.replace(database)


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Yield of each row the columns that are named, and the others as JSON."""
    try:
        from pyarrow import parquet  # noqa: PLC0415 - optional
    except ImportError:
        hint = 'pip install "rlvitals[parquet]"'
        raise VitalsError("Trackio's data set needs pyarrow", where=file.name, hint=hint) from None
    not_logged = {*columns, "log_id", "space_id"}
    with parquet.ParquetFile(file) as table:
        for batch in table.iter_batches():
            for row in batch.to_pylist():
                packed = {
                    name: _plain(cell)
                    for name, cell in row.items()
                    if cell is not None and name not in not_logged
                }
                yield (*map(row.get, columns), json.dumps(packed, default=str))


def _plain(cell: object) -> object:
    """Return a cell as Trackio writes it: numbers that JSON lacks as texts."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
    return cell
