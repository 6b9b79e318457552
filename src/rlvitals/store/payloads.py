"""What the payloads of frames hold, to bytes and back."""

import json
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.records import Histogram, Table, Text
from rlvitals.store.frames import padded

AT = Struct("<qdII")  # step, seconds since the epoch, bytes of the key, bytes of padding after it


def from_json(payload: memoryview) -> Any:  # noqa: ANN401 - whatever was stored
    """Read a payload of JSON. Raises ValueError."""
    return json.loads(bytes(payload))


def to_json(value: object) -> bytes:
    """Write JSON, NaN and infinities as Python names them; what JSON has no word for, as text."""
    return padded(json.dumps(value, separators=(",", ":"), default=plain).encode())


def plain(value: object) -> object:
    """Turn a numpy scalar or array into Python's own; anything else into its text."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)


def histogram(key: str, one: Histogram) -> bytes:
    """Lay out a histogram: step, time, key, edges [n + 1], counts [n]."""
    name = key.encode(errors="surrogatepass")
    fill = -len(name) % 8
    head = AT.pack(one.step, one.time, len(name), fill) + name + bytes(fill)
    edges = np.ascontiguousarray(one.edges, "<f8").tobytes()
    return head + edges + np.ascontiguousarray(one.counts, "<f8").tobytes()


def to_histogram(payload: memoryview) -> tuple[str, Histogram]:
    """Read a histogram. Raises ValueError where the lengths do not fit."""
    step, time, length, fill = AT.unpack_from(payload)
    key = bytes(payload[AT.size : AT.size + length]).decode(errors="surrogatepass")
    numbers = np.frombuffer(payload[AT.size + length + fill :], "<f8")
    if len(numbers) % 2 == 0:
        raise ValueError("a histogram without its last edge")
    bins = len(numbers) // 2
    return key, Histogram(step, time, numbers[: bins + 1], numbers[bins + 1 :])


def text(key: str, one: Text) -> bytes:
    """Lay out a text."""
    return to_json({"key": key, "step": one.step, "time": one.time, "text": one.text})


def to_text(payload: memoryview) -> tuple[str, Text]:
    """Read a text. Raises ValueError, KeyError."""
    found = from_json(payload)
    return found["key"], Text(found["step"], found["time"], found["text"])


def table(key: str, one: Table) -> bytes:
    """Lay out a table's rows."""
    columns = {name: list(cells) for name, cells in one.columns.items()}
    return to_json({"key": key, "steps": one.steps.tolist(), "columns": columns})


def to_table(payload: memoryview) -> tuple[str, Table]:
    """Read a table's rows. Raises ValueError, KeyError."""
    found = from_json(payload)
    return found["key"], Table(np.array(found["steps"], np.int64), found["columns"])


def columns(
    steps: NDArray[np.int64],
    times: NDArray[np.float64],
    values: Sequence[NDArray[np.float64]] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Lay columns [n] one after another: an array [2 + k, n] of eight-byte words."""
    laid = np.empty((len(values) + 2, len(steps)), "<f8")
    laid[0].view("<i8")[:] = steps
    laid[1] = times
    if len(values):
        laid[2:] = values
    return laid
