"""Compute the checksum contribution of the varying bytes of an event."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.crc32c import pair_term, term

WORD_BYTES = 8
FLOAT_FORMATS = {4: "<f4", 8: "<f8"}  # by their bytes


def steps_of(raw: NDArray[np.uint64], width: int) -> NDArray[np.int64]:
    """Return the steps [n] that varints of up to eight bytes encode, seven bits a byte."""
    steps = raw & np.uint64(127)
    for byte in range(1, width):
        steps |= (raw >> np.uint64(byte)) & np.uint64(127 << 7 * byte)
    return steps.view(np.int64)


def checksum_of_counts(
    numbers: NDArray[np.uint64], width: int, behind: tuple[int, ...]
) -> NDArray[np.uint32]:
    """Return what the first `width` bytes of numbers [m, n] add to checksums [m, n].

    `behind` says for each row how many bytes stand behind them; their other bytes are 0. For
    times and steps: their high bytes hardly vary.
    """
    columns = numbers.view(np.uint8).reshape(*numbers.shape, WORD_BYTES)
    low, high = int(np.minimum.reduce(numbers, None)), int(np.maximum.reduce(numbers, None))
    differing = ((low ^ high).bit_length() + 7) // 8
    constant = np.zeros((len(behind), 1), np.uint32)
    for byte in range(differing, width):
        tables = _terms(behind, width - 1 - byte)
        constant[:, 0] ^= tables[(low >> 8 * byte & 255) :: 256]
    added = np.empty(numbers.shape, np.uint32)
    added[:] = constant
    rows = 256 * np.arange(len(behind))[:, None]
    for byte in range(min(differing, width)):
        tables, column = _terms(behind, width - 1 - byte), columns[:, :, byte]
        added ^= tables.take(column + rows if len(behind) > 1 else column, mode="wrap")
    return added


@lru_cache(maxsize=256)
def _terms(behind: tuple[int, ...], further: int) -> NDArray[np.uint32]:
    """Return the terms of a byte for each row, one after the other: uint32 [256 m]."""
    return np.concatenate([term(distance + further) for distance in behind])


def checksum_of_values(values: NDArray[np.floating], behind: int) -> NDArray[np.uint32]:
    """Return what numbers [...] add to checksums [...], with `behind` bytes behind them."""
    size = values.itemsize
    pairs = values.view(np.uint16).reshape(*values.shape, size // 2)
    added = np.zeros(values.shape, np.uint32)
    for index in range(size // 2):
        added ^= pair_term(behind + size - 2 - 2 * index).take(pairs[..., index], mode="wrap")
    return added
