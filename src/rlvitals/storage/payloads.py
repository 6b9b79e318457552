"""Encode and decode the payloads of frames."""

import json
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.storage.frames import Kind, pad
from rlvitals.storage.typed import Fields, WrongTypeError
from rlvitals.types import Histogram, Table, Text

HISTOGRAM_HEADER = Struct(
    "<qdII"
)  # step, seconds since the epoch, bytes of the key, bytes of padding after it


@dataclass(frozen=True, slots=True)
class Changed:
    """Settings that changed at a step."""

    step: int
    time: float  # seconds since the epoch
    settings: Mapping[str, object]
    wrong: tuple[str, ...] = ()  # fields that were dropped, in words


def decode_json(payload: memoryview) -> object:
    """Read a payload of JSON. Raises ValueError."""
    return typed.load(payload)


def encode_json(value: object) -> bytes:
    """Write JSON, NaN and infinities as Python names them; what JSON has no word for, as text."""
    return pad(json.dumps(value, separators=(",", ":"), default=plain).encode())


def plain(value: object) -> object:
    """Convert a NumPy scalar or array to Python's types; any other value to its text."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)


def encode_histogram(key: str, histogram: Histogram) -> bytes:
    """Lay out a histogram: step, time, key, edges [n + 1], counts [n]. Raises ValueError."""
    if len(histogram.edges) != len(histogram.counts) + 1:
        raise ValueError(
            f"{key}: {len(histogram.counts)} counts need one edge more, not {len(histogram.edges)}"
        )
    name = key.encode(errors="surrogatepass")
    fill = -len(name) % 8
    head = (
        HISTOGRAM_HEADER.pack(histogram.step, histogram.time, len(name), fill) + name + bytes(fill)
    )
    edges = np.ascontiguousarray(histogram.edges, "<f8").tobytes()
    return head + edges + np.ascontiguousarray(histogram.counts, "<f8").tobytes()


def decode_histogram(payload: memoryview) -> tuple[str, Histogram]:
    """Read a histogram. Raises ValueError where the lengths do not fit."""
    if len(payload) < HISTOGRAM_HEADER.size:
        raise ValueError("a histogram without step, time and key")
    step, time, length, fill = HISTOGRAM_HEADER.unpack_from(payload)
    key = bytes(payload[HISTOGRAM_HEADER.size : HISTOGRAM_HEADER.size + length]).decode(
        errors="surrogatepass"
    )
    numbers = np.frombuffer(payload[HISTOGRAM_HEADER.size + length + fill :], "<f8")
    if len(numbers) % 2 == 0:
        raise ValueError("a histogram must have n counts and n + 1 edges")
    bins = len(numbers) // 2
    return typed.text(key), Histogram(step, time, numbers[: bins + 1], numbers[bins + 1 :])


def encode_text(key: str, text: Text) -> bytes:
    """Lay out a text."""
    return encode_json({"key": key, "step": text.step, "time": text.time, "text": text.text})


def decode_text(payload: memoryview) -> tuple[str, Text]:
    """Read a text. Raises ValueError."""
    content = _fields(payload, "key", "step", "time", "text")
    step, time = typed.integer(content["step"]), typed.real(content["time"])
    return typed.text(content["key"]), Text(step, time, typed.text(content["text"]))


def encode_table(key: str, table: Table) -> bytes:
    """Lay out a table's rows."""
    columns = {name: list(cells) for name, cells in table.columns.items()}
    return encode_json({"key": key, "steps": table.steps.tolist(), "columns": columns})


def decode_table(payload: memoryview) -> tuple[str, Table]:
    """Read a table's rows. Raises ValueError."""
    content = _fields(payload, "key", "steps", "columns")
    steps, columns = content["steps"], content["columns"]
    if not isinstance(steps, list) or not isinstance(columns, dict):
        raise WrongTypeError("a table must have a list of steps and an object of columns")
    for name, cells in columns.items():
        if not isinstance(cells, list) or len(cells) != len(steps):
            raise WrongTypeError(f"the column {name} must have {len(steps)} cells")
    cells_by_name = {
        typed.text(name): list(map(typed.cell, cells)) for name, cells in columns.items()
    }
    return typed.text(content["key"]), Table(
        np.array(list(map(typed.integer, steps)), np.int64), cells_by_name
    )


def decode_settings(payload: memoryview) -> Changed:
    """Read settings that hold from a step on. Raises ValueError."""
    content = Fields(_fields(payload, "step", "time", "settings"), "settings")
    step, time = typed.integer(content.values["step"]), typed.real(content.values["time"])
    return Changed(step, time, content.mapping("settings"), tuple(content.wrong))


def decode_keys(payload: memoryview) -> tuple[str, ...]:
    """Read the names of a key table's columns. Raises ValueError."""
    return typed.texts(decode_json(payload))


PARSERS: Mapping[int, Callable[[memoryview], object]] = MappingProxyType({
    Kind.HISTOGRAM: decode_histogram,
    Kind.TEXT: decode_text,
    Kind.TABLE: decode_table,
    Kind.SETTINGS: decode_settings,
    Kind.KEYS: decode_keys,
    Kind.START: decode_json,
    Kind.ORIGIN: decode_json,
})  # fmt: skip


def _fields(payload: memoryview, *names: str) -> Mapping[str, object]:
    content = decode_json(payload)
    if not isinstance(content, dict) or not content.keys() >= set(names):
        raise WrongTypeError(f"it must have {', '.join(names)}")
    return content


def encode_columns(
    steps: NDArray[np.int64],
    times: NDArray[np.float64],
    values: Sequence[NDArray[np.float64]] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Lay columns [n] one after another: an array [2 + k, n] of eight-byte words."""
    array = np.empty((len(values) + 2, len(steps)), "<f8")
    array[0].view("<i8")[:] = steps
    array[1] = times
    if len(values):
        array[2:] = values
    return array
