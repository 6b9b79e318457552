"""What varies in the events of one layout, and what it adds to their checksums."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.crc32c import pair_term, term

WORD_BYTES = 8
FLAG = 0x80  # a varint's bytes but the last have it
NUMBERS = {4: "<f4", 8: "<f8"}  # by their bytes


def steps_of(raw: NDArray[np.uint64], width: int) -> NDArray[np.int64]:
    """Return the steps [n] that varints of up to eight bytes encode, seven bits a byte."""
    steps = raw & np.uint64(127)
    for byte in range(1, width):
        steps |= (raw >> np.uint64(byte)) & np.uint64(127 << 7 * byte)
    return steps.view(np.int64)


def added_by_counts(numbers: NDArray[np.uint64], width: int, behind: int) -> NDArray[np.uint32]:
    """Return what the first `width` bytes of numbers [n] add to checksums; the others are 0.

    `behind` bytes stand behind them. For times and steps: their high bytes hardly vary.
    """
    columns = numbers.view(np.uint8).reshape(-1, WORD_BYTES)
    low, high = int(np.minimum.reduce(numbers)), int(np.maximum.reduce(numbers))
    differing = ((low ^ high).bit_length() + 7) // 8
    constant = 0
    for byte in range(differing, width):
        constant ^= int(term(behind + width - 1 - byte)[low >> 8 * byte & 255])
    added = np.full(len(numbers), constant, np.uint32)
    for byte in range(min(differing, width)):
        added ^= term(behind + width - 1 - byte).take(columns[:, byte], mode="wrap")
    return added


def added_by_values(values: NDArray[np.floating], behind: int) -> NDArray[np.uint32]:
    """Return what numbers [n] add to checksums, with `behind` bytes behind them."""
    size = values.itemsize
    pairs = values.view(np.uint16).reshape(-1, size // 2)
    added = np.zeros(len(values), np.uint32)
    for index in range(size // 2):
        added ^= pair_term(behind + size - 2 - 2 * index).take(pairs[:, index], mode="wrap")
    return added
