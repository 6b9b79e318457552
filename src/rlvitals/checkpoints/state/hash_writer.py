"""Write a safetensors file and hash it in one pass, each chunk while it is in the cache.

The format: the length of the header in eight bytes, the header as JSON, then the data without
gaps (https://huggingface.co/docs/safetensors, "Format").
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from rlvitals.checkpoints.manifest import File
from rlvitals.startup.fast_dataclass import dataclass

# Bytes that are hashed and then written: few enough to be in the cache still, and enough that the
# system keeps the file in large pages, of which it is verified twice as fast.
WRITE_CHUNK_BYTES = 4 << 20

# What numpy and torch call a kind of number, and what the format calls it.
SAFETENSORS_TYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16",
    "uint32": "U32", "int32": "I32", "uint64": "U64", "int64": "I64",
    "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawArray:
    """One array of a file."""

    kind: str  # one of KINDS
    shape: tuple[int, ...]
    data: NDArray[np.uint8]  # [bytes], in C order, little-endian


def write_arrays(path: Path, arrays: Mapping[str, RawArray]) -> File:
    """Write a file of named arrays; return its size and hash. Raises OSError."""
    hasher, size = xxhash.xxh3_128(), 0
    with path.open("wb", buffering=0) as file:
        for chunk in _iter_chunks(arrays):
            hasher.update(chunk)
            size += len(chunk)
            while chunk:  # a raw write may take a part of it only
                chunk = chunk[file.write(chunk) or 0 :]  # noqa: PLW2901 - what is left of it
    return File(size, str(hasher.hexdigest()))


def _iter_chunks(arrays: Mapping[str, RawArray]) -> Iterator[memoryview]:
    # Wide kinds first: then every array begins at a multiple of its own width.
    ordered = sorted(arrays, key=lambda name: (-_item_bytes(arrays[name]), name))
    yield memoryview(_make_header({name: arrays[name] for name in ordered}))
    for name in ordered:
        view = arrays[name].data.data
        for start in range(0, len(view), WRITE_CHUNK_BYTES):
            yield view[start : start + WRITE_CHUNK_BYTES]


def _make_header(arrays: Mapping[str, RawArray]) -> bytes:
    fields: dict[str, Any] = {}
    start = 0
    for name, array in arrays.items():
        end = start + array.data.size
        fields[name] = {
            "dtype": SAFETENSORS_TYPES[array.kind],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text


def _item_bytes(array: RawArray) -> int:
    digits = "".join(letter for letter in array.kind.split("_")[0] if letter.isdigit())
    return int(digits or 8) // 8
