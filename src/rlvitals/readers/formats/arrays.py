"""Read numpy's `.npy` and `.npz` files; of objects in a `.npy` what is plain.

The size that a header claims is checked against the bytes that are there before any memory is
taken.
"""

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rlvitals.readers.formats import plain_pickle

NPY_MAGIC = b"\x93NUMPY"
NPZ_MAGIC = b"PK\x03\x04"
MAX_ARRAY_BYTES = 2**28  # of one array, unpacked
# What a damaged file raises in zipfile, zlib and numpy.
ARRAY_ERRORS = (
    *(ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, SyntaxError),
    *(RuntimeError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error),
    tokenize.TokenError,  # numpy reads a header as Python's words
)


def load(data: bytes) -> NDArray[np.float64]:
    """Return the numbers of an `.npy`, in its shape. Raises ValueError for anything else."""
    problem = "not a whole array of numbers"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a header of Python 2
            numbers = _numbers(io.BytesIO(data), len(data))
    except ARRAY_ERRORS as error:
        raise ValueError(problem) from error
    if numbers is None:
        raise ValueError(problem)
    return numbers


def plain_objects(data: bytes) -> object:
    """Return the plain content of an `.npy` of Python objects, which is a pickle; None for others.

    A single object, as of `np.save(file, history)` with a dict, stands alone.
    """
    if b"'descr': '|O'" not in data[:128]:  # the header names the type of the elements
        return None
    file = io.BytesIO(data)
    with suppress(*ARRAY_ERRORS):
        _header(file)
        content = plain_pickle.read_plain(file.read())
        return content[0] if isinstance(content, list) and len(content) == 1 else content
    return None


def _numbers(file: io.BytesIO, size: int) -> NDArray[np.float64] | None:
    shape, kind = _header(file)
    if kind.hasobject or kind.kind not in "biuf" or math.prod(shape) * kind.itemsize > size:
        return None
    file.seek(0)
    return np.asarray(npy.read_array(file, allow_pickle=False), dtype=np.float64)


def _header(file: io.BytesIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, kind = header(file)
    return shape, kind


def members(data: bytes) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the arrays of numbers in a `.npz` by name; others are passed over.

    Raises ValueError for a file that is no whole archive.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[:1000]:
                if info.filename.endswith(".npy") and info.file_size <= MAX_ARRAY_BYTES:
                    with archive.open(info) as file:
                        content = file.read(MAX_ARRAY_BYTES)
                    try:
                        numbers = load(content)
                    except ValueError:
                        continue
                    yield info.filename.removesuffix(".npy"), numbers
    except ARRAY_ERRORS as error:
        problem = "the archive is damaged or not whole"
        raise ValueError(problem) from error
