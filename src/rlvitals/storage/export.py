"""Write the series of a run as CSV, JSON lines, Parquet or a spreadsheet.

One rectangular table: a column for each metric, a row for each step at which something was
logged. What was not logged is empty; NaN and infinities are values. The file is whole or is not
there.
"""

import csv
import json
from collections.abc import Callable, Mapping
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import IO

import numpy as np

from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.row_table import Grid, grid
from rlvitals.storage.safe_files import atomic_write
from rlvitals.types import Series

EXPORT_CHUNK_ROWS = 4096  # that are turned into text together


def export(series: Mapping[str, Series], path: Path) -> int:
    """Write series to a file; its suffix selects the format. Return the number of rows.

    Raises UsageError for an ending that is none of `WRITERS` and for a table that a spreadsheet
    cannot hold, VitalsError without the format's package, OSError.
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        hint = f"a name that ends with {', '.join(WRITERS)}"
        raise UsageError(f"cannot tell a table's format by {path.name!r}", hint=hint)
    rows = grid(series)
    with atomic_write(path) as file:
        write(rows, file)
    return len(rows)


def _column_names(rows: Grid) -> list[str]:
    """Return the column names; a metric named like the step column gets a mark."""
    return ["step", "time", *(f"{key}_" if key in {"step", "time"} else key for key in rows.keys)]


def _csv(rows: Grid, file: IO[bytes]) -> None:
    header = StringIO()
    csv.writer(header).writerow(_column_names(rows))
    file.write(header.getvalue().encode(errors="replace"))
    for begin in range(0, len(rows), EXPORT_CHUNK_ROWS):
        chunk = slice(begin, begin + EXPORT_CHUNK_ROWS)
        columns = [
            rows.steps[chunk].tolist(),
            ["" if np.isnan(t) else repr(t) for t in rows.times[chunk].tolist()],
        ]
        for values, logged in zip(rows.values[:, chunk], rows.logged[:, chunk], strict=True):
            texts = [repr(value) for value in values.tolist()]
            columns.append(
                [t if is_logged else "" for t, is_logged in zip(texts, logged, strict=True)]
            )
        file.write(
            b"".join(
                f"{','.join(map(str, row))}\r\n".encode() for row in zip(*columns, strict=True)
            )
        )


def _jsonl(rows: Grid, file: IO[bytes]) -> None:
    for index in range(len(rows)):
        row: dict[str, float | int] = {"step": int(rows.steps[index])}
        if not np.isnan(rows.times[index]):
            row["time"] = float(rows.times[index])
        heads = _column_names(rows)[2:]
        columns = np.flatnonzero(rows.logged[:, index])
        row |= {heads[i]: float(rows.values[i, index]) for i in columns.tolist()}
        file.write(json.dumps(row).encode() + b"\n")


def _parquet(rows: Grid, file: IO[bytes]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        hint = 'pip install "rlvitals[parquet]"'
        raise VitalsError("Parquet needs pyarrow", hint=hint) from None
    columns = [pa.array(rows.steps), pa.array(rows.times, mask=np.isnan(rows.times))]
    columns += [
        pa.array(values, mask=~logged)
        for values, logged in zip(rows.values, rows.logged, strict=True)
    ]
    parquet.write_table(pa.Table.from_arrays(columns, names=_column_names(rows)), file)


def _xlsx(rows: Grid, file: IO[bytes]) -> None:
    """Write a spreadsheet; NaN and infinities, for which it has no number, are texts."""
    try:
        import xlsxwriter  # noqa: PLC0415 - optional
    except ImportError:
        hint = 'pip install "rlvitals[xlsx]", or a name that ends with .csv'
        raise VitalsError("a spreadsheet needs xlsxwriter", hint=hint) from None
    # The limits of the file format.
    if len(rows) >= 2**20 or len(rows.keys) + 2 > 2**14:
        raise UsageError(
            f"{len(rows):,} rows of {len(rows.keys):,} keys are too many for a spreadsheet",
            hint="a name that ends with .parquet or .csv, or --keys",
        )
    with xlsxwriter.Workbook(file, {"constant_memory": True, "strings_to_formulas": False}) as book:
        sheet = book.add_worksheet("metrics")
        sheet.freeze_panes(1, 2)
        for column, name in enumerate(_column_names(rows)):
            sheet.write_string(0, column, name)
        for index in range(len(rows)):
            sheet.write_number(index + 1, 0, int(rows.steps[index]))
            if not np.isnan(rows.times[index]):
                sheet.write_number(index + 1, 1, float(rows.times[index]))
            for column in np.flatnonzero(rows.logged[:, index]).tolist():
                value = float(rows.values[column, index])
                write = sheet.write_number if isfinite(value) else sheet.write_string
                write(index + 1, column + 2, value if isfinite(value) else str(value))


WRITERS: Mapping[str, Callable[[Grid, IO[bytes]], None]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".xlsx": _xlsx,
}
