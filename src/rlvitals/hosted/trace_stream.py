"""Send a trace over HTTP and read it back: a line of JSON, then its columns, bit for bit.

The columns follow the line in the order of its `columns`: little-endian numbers of 8 bytes. Metrics
that share their steps share a column.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import (
    Budget,
    Histogram,
    Lifecycle,
    Measured,
    Profile,
    Series,
    Table,
    Text,
    Trace,
)

TRACE_FORMAT = "rlvitals trace 1"
TRACE_CHUNK_BYTES = 1 << 20

Column = NDArray[np.int64] | NDArray[np.float64]


def encode(trace: Trace) -> Iterator[bytes]:
    """Yield a trace in chunks of at most TRACE_CHUNK_BYTES after its first line."""
    columns: list[Column] = []
    places: dict[int, int] = {}

    def add(column: Column) -> int:
        """Return the number of a column, which is sent once."""
        if id(column) not in places:
            places[id(column)] = len(columns)
            columns.append(column)
        return places[id(column)]

    header = _header(trace, add)
    header["columns"] = [[_type_name(column), len(column)] for column in columns]
    yield json.dumps(header, default=str).encode() + b"\n"
    for column in columns:
        data = np.ascontiguousarray(column, _type_name(column)).view(np.uint8)
        for start in range(0, len(data), TRACE_CHUNK_BYTES):
            yield data[start : start + TRACE_CHUNK_BYTES].tobytes()


def _header(trace: Trace, add: Callable[[Column], int]) -> dict[str, object]:
    """Return the first line of a trace, with the numbers of its columns."""
    return {
        "format": TRACE_FORMAT,
        **{name: getattr(trace, name) for name in ("name", "step_unit", "notes", "unmapped")},
        "profile": trace.profile.value,
        "settings": dict(trace.settings),
        "thresholds": dict(trace.thresholds),
        "budget": asdict(trace.budget) if trace.budget else None,
        "lifecycle": asdict(trace.lifecycle),
        "measured": {name: asdict(item) for name, item in trace.measured.items()},
        "series": {
            name: [add(series.steps), add(series.times), add(series.values)]
            for name, series in trace.series.items()
        },
        "histograms": {
            name: [[item.step, item.time, add(item.edges), add(item.counts)] for item in items]
            for name, items in trace.histograms.items()
        },
        "texts": {
            name: [[item.step, item.time, item.text] for item in items]
            for name, items in trace.texts.items()
        },
        "tables": {
            name: [add(table.steps), {key: list(cells) for key, cells in table.columns.items()}]
            for name, table in trace.tables.items()
        },
    }


def _type_name(column: Column) -> str:
    return "<i8" if column.dtype.kind == "i" else "<f8"


def decode(file: IO[bytes]) -> Trace:
    """Read a trace that `encode` wrote. Raises ValueError for other data, OSError."""
    header = json.loads(file.readline(256 << 20))
    if not isinstance(header, dict) or header.get("format") != TRACE_FORMAT:
        raise ValueError("it has another format")
    try:
        columns = [_read_column(file, name, count) for name, count in header["columns"]]
        return _build(header, columns)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"its first line makes no sense: {error}") from error


def _read_column(file: IO[bytes], name: str, count: int) -> Column:
    if name not in {"<i8", "<f8"} or not 0 <= 8 * count <= 8 << 30:
        raise ValueError("a column is of another type or too long")
    data = bytearray(8 * count)
    view = memoryview(data)
    size = 0
    while size < len(view):
        chunk = file.read(min(TRACE_CHUNK_BYTES, len(view) - size))
        if not chunk:
            raise ValueError("its end is missing")
        view[size : size + len(chunk)] = chunk
        size += len(chunk)
    column: Column = np.frombuffer(data, name)
    return column


def _build(header: Mapping[str, Any], columns: Sequence[Any]) -> Trace:
    cycle = dict(header["lifecycle"])
    for name in ("checkpoints", "seams"):
        cycle[name] = tuple(cycle[name])
    budget = header["budget"]
    return Trace(
        series={
            name: Series(*(columns[number] for number in places))
            for name, places in header["series"].items()
        },
        measured={name: Measured(**item) for name, item in header["measured"].items()},
        settings=header["settings"],
        profile=Profile(header["profile"]),
        budget=Budget(**budget) if budget else None,
        lifecycle=Lifecycle(**cycle),
        notes=tuple(header["notes"]),
        unmapped=tuple(header["unmapped"]),
        step_unit=header["step_unit"],
        name=header["name"],
        histograms={
            name: tuple(Histogram(step, time, columns[edges], columns[counts])
                        for step, time, edges, counts in items)
            for name, items in header["histograms"].items()
        },
        texts={
            name: tuple(Text(*item) for item in items) for name, items in header["texts"].items()
        },
        tables={
            name: Table(columns[steps], cells) for name, (steps, cells) in header["tables"].items()
        },
        thresholds=header["thresholds"],
    )  # fmt: skip
