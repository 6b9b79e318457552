"""Encode events other than scalars: the file's head, histograms, texts, tables, settings.

Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`; TensorBoard
`plugins/hparams/plugin_data.proto`, `api.proto`; `google.protobuf.Value`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rlvitals.tracking.sinks.event_files.messages import (
    SUMMARY_VALUE_FIELD,
    EventField,
    ValueField,
    double,
    integer,
    length_delimited,
    record,
    varint,
)
from rlvitals.types import Histogram, Table, Text


class MetadataField(IntEnum):
    """Field numbers of SummaryMetadata."""

    PLUGIN_DATA = 1
    DATA_CLASS = 4


class PluginField(IntEnum):
    """Field numbers of SummaryMetadata.PluginData."""

    NAME = 1
    CONTENT = 2


class TensorField(IntEnum):
    """Field numbers of TensorProto."""

    DTYPE = 1
    SHAPE = 2
    STRINGS = 8


class ShapeField(IntEnum):
    """Field numbers of TensorShapeProto."""

    SIZE = 1
    DIM = 2


class HParamsField(IntEnum):
    """Field numbers of HParamsPluginData."""

    START_INFO = 3
    END_INFO = 4


MAX_SHOWN_ROWS, MAX_SHOWN_LETTERS = 50, 500  # of a table that is shown as a text


def head(time: float) -> bytes:
    """Return the event that every event file starts with."""
    return record(
        double(EventField.WALL_TIME, time)
        + length_delimited(EventField.FILE_VERSION, "brain.Event:2")
    )


def restart(time: float, step: int) -> bytes:
    """Return the event of a resume: TensorBoard hides what older files hold from `step` on."""
    log = length_delimited(EventField.SESSION_LOG, integer(1, 1))  # SessionLog.status: START
    return record(double(EventField.WALL_TIME, time) + _step(step) + log)


def histogram(key: str, histogram: Histogram) -> bytes:
    """Return a histogram's event.

    The format has upper limits only: an empty first bucket marks where the second begins. An
    outer bucket without a limit is shown as wide as its neighbour: TensorBoard computes with the
    limits. The moments are those of the buckets' middles, as the values themselves are not known.
    """
    edges, counts = _finite_edges(histogram.edges), histogram.counts
    middles = (edges[:-1] + edges[1:]) / 2
    moments = (edges[0], edges[-1], counts.sum(), counts @ middles, counts @ middles**2)
    body = b"".join(double(field, float(number)) for field, number in enumerate(moments, 1))
    body += length_delimited(6, edges.astype("<f8").tobytes())
    body += length_delimited(7, np.concatenate(([0.0], counts)).astype("<f8").tobytes())
    return _event(histogram.time, histogram.step, key, length_delimited(ValueField.HISTOGRAM, body))


def _finite_edges(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges whose outermost are finite."""
    finite = edges.copy()
    inner = edges[np.isfinite(edges)]
    if len(inner) == 0:
        return np.arange(len(edges), dtype=np.float64)
    widths = np.diff(inner) if len(inner) > 1 else np.ones(1)
    if finite[0] == -np.inf:
        finite[0] = inner[0] - widths[0]
    if finite[-1] == np.inf:
        finite[-1] = inner[-1] + widths[-1]
    return finite


def text(key: str, text: Text) -> bytes:
    """Return a text's event: TensorBoard shows it as Markdown."""
    shape = length_delimited(
        TensorField.SHAPE, length_delimited(ShapeField.DIM, integer(ShapeField.SIZE, 1))
    )
    tensor = length_delimited(  # 7: DT_STRING
        ValueField.TENSOR,
        integer(TensorField.DTYPE, 7) + shape + length_delimited(TensorField.STRINGS, text.text),
    )
    kind = _plugin("text") + integer(MetadataField.DATA_CLASS, 2)  # DATA_CLASS_TENSOR
    return _event(text.time, text.step, key, tensor + length_delimited(ValueField.METADATA, kind))


def table(key: str, table: Table, time: float) -> bytes:
    """Return the first rows of a table as a text."""
    names = list(table.columns)
    lines = [_line(_table_cells(["step", *names])), _line(["---"] * (len(names) + 1))]
    cells = (table.steps.tolist(), *table.columns.values())
    lines += map(
        _line, zip(*(_table_cells(column[:MAX_SHOWN_ROWS]) for column in cells), strict=True)
    )
    if len(table) > MAX_SHOWN_ROWS:
        lines.append(f"\n{MAX_SHOWN_ROWS} of {len(table):,} rows")
    step = int(table.steps[-1]) if len(table) else 0
    return text(key, Text(step, time, "\n".join(lines)))


def settings(settings: Mapping[str, object], name: str, time: float) -> bytes:
    """Return the settings of a run as its session's start in the hparams plugin."""
    entries = b"".join(
        length_delimited(1, length_delimited(1, key) + length_delimited(2, _value(value)))
        for key, value in settings.items()
    )
    info = length_delimited(
        HParamsField.START_INFO, entries + length_delimited(4, name) + double(5, time)
    )
    return _session("_hparams_/session_start_info", info, time)


def end(status: str, time: float) -> bytes:
    """Return how a session ended, for the hparams plugin."""
    code = 1 if status == "finished" else 2  # api.Status: success, failure
    return _session(
        "_hparams_/session_end_info",
        length_delimited(HParamsField.END_INFO, integer(1, code) + double(2, time)),
        time,
    )


def _session(tag: str, info: bytes, time: float) -> bytes:
    return _event(time, 0, tag, length_delimited(ValueField.METADATA, _plugin("hparams", info)))


def _plugin(name: str, content: bytes = b"") -> bytes:
    return length_delimited(
        MetadataField.PLUGIN_DATA,
        length_delimited(PluginField.NAME, name) + length_delimited(PluginField.CONTENT, content),
    )


def _value(value: object) -> bytes:
    """Return a setting as a google.protobuf.Value; numbers that JSON cannot hold as texts."""
    if isinstance(value, bool):
        return varint(4 << 3) + varint(int(value))
    if isinstance(value, int | float) and abs(value) < math.inf:
        return double(2, float(value))
    return length_delimited(3, "" if value is None else str(value))


def _step(step: int) -> bytes:
    return integer(EventField.STEP, step) if step else b""


def _event(time: float, step: int, tag: str, body: bytes) -> bytes:
    summary = length_delimited(
        EventField.SUMMARY,
        length_delimited(SUMMARY_VALUE_FIELD, length_delimited(ValueField.TAG, tag) + body),
    )
    return record(double(EventField.WALL_TIME, time) + _step(step) + summary)


def _table_cells(cells: Sequence[object]) -> list[str]:
    """Return cells as lines of a Markdown table can hold them."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    if len(max(texts, key=len, default="")) <= MAX_SHOWN_LETTERS and not re.search(
        r"[|\s]",
        "".join(texts),  # may end a cell, or its line
    ):
        return texts  # as numbers do
    return [" ".join(text.split())[:MAX_SHOWN_LETTERS].replace("|", "&#124;") for text in texts]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
