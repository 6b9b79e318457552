"""Write JSON lines to `<run>/metrics/log.jsonl`: all logged data, one object per line.

A row is `{"step": 10, "time": 1.7e9, "train/loss": 0.5}`. What is no row names itself first:
`{"text": "sample", "step": 10, ...}`, and so histograms, tables, settings and events. JSON has no
NaN and no infinities: they are the texts "NaN", "Infinity" and "-Infinity", as protobuf's JSON
mapping has it. Every other number reads back to the same float64.
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from rlvitals.tracking.sinks import file_layout
from rlvitals.tracking.sinks.append_file import AppendFile
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text


class Lines:
    """The file of an attempt: the run's, or a separate one where another process writes that."""

    def __init__(self, folder: Path) -> None:
        """Go on with the run's file, or begin one."""
        self._file = _file(folder)
        self._waiting: list[str] = []

    def scalars(self, rows: Rows) -> None:
        """Take rows."""
        head = [f'"{file_layout.STEP_COLUMN}":%d,"{file_layout.TIME_COLUMN}":%s']
        names = file_layout.columns(rows.keys)[2:]
        form = (
            "{" + ",".join(head + [json.dumps(n).replace("%", "%%") + ":%s" for n in names]) + "}"
        )
        cells = zip(rows.steps.tolist(), rows.times.tolist(), rows.values.tolist(), strict=True)
        self._waiting += [
            form % (step, _number(time), *map(_number, row)) for step, time, row in cells
        ]

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Take a histogram: counts [n] between edges [n + 1]."""
        edges, counts = histogram.edges.tolist(), histogram.counts.tolist()
        content = {"step": histogram.step, "time": histogram.time, "edges": edges, "counts": counts}
        self._add({"histogram": key, **content})

    def text(self, key: str, text: Text) -> None:
        """Take a text."""
        self._add({"text": key, "step": text.step, "time": text.time, "content": text.text})

    def table(self, key: str, table: Table) -> None:
        """Take a table: an object for each of its rows."""
        rows = zip(table.steps.tolist(), *table.columns.values(), strict=True)
        for step, *cells in rows:
            row = dict(zip(table.columns, cells, strict=True))
            self._add({"table": key, "step": step, "row": row})

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Take settings that changed."""
        self._add({"settings": "changed", "step": step, "changed": changed})

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Take an event."""
        self._add({"event": kind, "step": step, "facts": facts})

    def flush(self) -> None:
        """Write all lines that wait."""
        if not self._waiting:
            return
        data = "\n".join([*self._waiting, ""]).encode()
        try:
            self._file.write(data)
        except OSError:
            if len(data) >= file_layout.MAX_WAITING_LETTERS:  # else tried again with the next ones
                self._waiting = []
            raise
        self._waiting = []

    def close(self, status: str) -> None:
        """Write what is left and close."""
        del status
        try:
            self.flush()
        finally:
            self._file.close()

    def _add(self, content: Mapping[str, object]) -> None:
        self._waiting.append(json.dumps(_plain(content), ensure_ascii=False, allow_nan=False))


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{_name(value)}"'


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: object) -> object:
    """Return what JSON can hold: other things as texts."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _name(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(item) for item in value]
    return str(value)


def _file(folder: Path) -> AppendFile:
    main_path = folder / "log.jsonl"
    for path in chain([main_path], file_layout.free(folder, "log", ".jsonl")):
        try:
            return AppendFile.new(path)
        except FileExistsError:
            if path == main_path and (file := AppendFile.lines(path)):
                return file
    raise AssertionError  # there is always a next number


def _open_sink(opening: Opening) -> Lines:
    return Lines(file_layout.rank_folder(opening.folder, opening.rank))


SINK = Sink("jsonl", "JSON lines at metrics/log.jsonl", "", open_lazily(_open_sink))
