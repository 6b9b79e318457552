"""Events that are no plain scalars: the file's head, histograms, texts, tables, settings.

Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`; TensorBoard
`plugins/hparams/plugin_data.proto`, `api.proto`; `google.protobuf.Value`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.tracking.sinks.event_files.messages import (
    double,
    integer,
    length_delimited,
    record,
    varint,
)
from rlvitals.types import Histogram, Table, Text

WALL_TIME, STEP, FILE_VERSION, SUMMARY, SESSION_LOG = 1, 2, 3, 5, 7  # Event
VALUE, TAG, HISTOGRAM, TENSOR, METADATA = 1, 1, 5, 8, 9  # Summary, Summary.Value
SESSION_STATUS, SESSION_START = 1, 1  # SessionLog
PLUGIN_DATA, PLUGIN_NAME, PLUGIN_CONTENT, DATA_CLASS = 1, 1, 2, 4  # SummaryMetadata
TENSOR_CLASS = 2  # of DataClass: the tag holds tensors
DTYPE, SHAPE, STRINGS, STRING = 1, 2, 8, 7  # TensorProto; the DataType of texts
DIM, SIZE = 2, 1  # TensorShapeProto
START_INFO, END_INFO = 3, 4  # HParamsPluginData
START_TAG, END_TAG = "_hparams_/session_start_info", "_hparams_/session_end_info"
SUCCESS, FAILURE = 1, 2  # api.Status
MAX_SHOWN_ROWS, MAX_SHOWN_LETTERS = 50, 500  # of a table that is shown as a text
BREAKING = re.compile(r"[|\s]")  # may end a cell, or its line


def head(time: float) -> bytes:
    """Return the event that every event file starts with."""
    return record(double(WALL_TIME, time) + length_delimited(FILE_VERSION, "brain.Event:2"))


def restart(time: float, step: int) -> bytes:
    """Return the event of a resume: TensorBoard hides what older files hold from `step` on."""
    log = length_delimited(SESSION_LOG, integer(SESSION_STATUS, SESSION_START))
    return record(double(WALL_TIME, time) + _step(step) + log)


def histogram(key: str, histogram: Histogram) -> bytes:
    """Return a histogram's event.

    The format has upper limits only: an empty first bucket says where the second begins. An
    outer bucket without a limit is shown as wide as its neighbour: TensorBoard computes with the
    limits. The moments are those of the buckets' middles, as the values themselves are not known.
    """
    edges, counts = _finite_edges(histogram.edges), histogram.counts
    middles = (edges[:-1] + edges[1:]) / 2
    moments = (edges[0], edges[-1], counts.sum(), counts @ middles, counts @ middles**2)
    body = b"".join(double(field, float(number)) for field, number in enumerate(moments, 1))
    body += length_delimited(6, edges.astype("<f8").tobytes())
    body += length_delimited(7, np.concatenate(([0.0], counts)).astype("<f8").tobytes())
    return _event(histogram.time, histogram.step, key, length_delimited(HISTOGRAM, body))


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
    shape = length_delimited(SHAPE, length_delimited(DIM, integer(SIZE, 1)))
    tensor = length_delimited(
        TENSOR, integer(DTYPE, STRING) + shape + length_delimited(STRINGS, text.text)
    )
    kind = _plugin("text") + integer(DATA_CLASS, TENSOR_CLASS)
    return _event(text.time, text.step, key, tensor + length_delimited(METADATA, kind))


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
    info = length_delimited(START_INFO, entries + length_delimited(4, name) + double(5, time))
    return _session(START_TAG, info, time)


def end(status: str, time: float) -> bytes:
    """Return how a session ended, for the hparams plugin."""
    code = SUCCESS if status == "finished" else FAILURE
    return _session(END_TAG, length_delimited(END_INFO, integer(1, code) + double(2, time)), time)


def _session(tag: str, info: bytes, time: float) -> bytes:
    return _event(time, 0, tag, length_delimited(METADATA, _plugin("hparams", info)))


def _plugin(name: str, content: bytes = b"") -> bytes:
    return length_delimited(
        PLUGIN_DATA, length_delimited(PLUGIN_NAME, name) + length_delimited(PLUGIN_CONTENT, content)
    )


def _value(value: object) -> bytes:
    """Return a setting as a google.protobuf.Value; numbers that JSON cannot hold as texts."""
    if isinstance(value, bool):
        return varint(4 << 3) + varint(int(value))
    if isinstance(value, int | float) and abs(value) < math.inf:
        return double(2, float(value))
    return length_delimited(3, "" if value is None else str(value))


def _step(step: int) -> bytes:
    return integer(STEP, step) if step else b""


def _event(time: float, step: int, tag: str, body: bytes) -> bytes:
    summary = length_delimited(SUMMARY, length_delimited(VALUE, length_delimited(TAG, tag) + body))
    return record(double(WALL_TIME, time) + _step(step) + summary)


def _table_cells(cells: Sequence[object]) -> list[str]:
    """Return cells as lines of a Markdown table can hold them."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    if len(max(texts, key=len, default="")) <= MAX_SHOWN_LETTERS and not BREAKING.search(
        "".join(texts)
    ):
        return texts  # as numbers do
    return [" ".join(text.split())[:MAX_SHOWN_LETTERS].replace("|", "&#124;") for text in texts]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
