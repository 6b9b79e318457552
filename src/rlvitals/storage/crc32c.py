"""CRC-32C (Castagnoli), as TensorBoard's record files check themselves with it.

Polynomial and test vectors: RFC 3720, appendix B.4; the mask: TensorFlow `core/lib/hash/crc32c.h`.

The checksum is affine over GF(2): it is that of zeros, XOR one term for each byte, which the
byte and its distance to the end alone decide. So many checksums are taken at once, a column of
bytes after the other (`checksums`); and where all but a few bytes of many records are known,
only those few cost anything (`term`).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

ALL_ONES = 0xFFFFFFFF
MASK_DELTA = 0xA282EAD8
LANE_BYTES = 64


def _byte_table() -> NDArray[np.uint32]:
    """Return the effect of one byte on a zero register: uint32 [256]."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        # The polynomial of CRC-32C, reflected.
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table


CRC_TABLE = _byte_table()
_CRC_LIST: list[int] = CRC_TABLE.tolist()
_TERMS = [CRC_TABLE]


def mask(crc: int) -> int:
    """Return a checksum as it is stored: rotated and shifted, so that it may itself be checked."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & ALL_ONES


def unmask(stored: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the checksums [n] that stand behind stored ones [n]."""
    rotated = stored - np.uint32(MASK_DELTA)
    return (rotated << np.uint32(15)) | (rotated >> np.uint32(17))


def term(distance: int) -> NDArray[np.uint32]:
    """Return what a byte adds (by XOR) to a checksum: uint32 [256], by the byte's value.

    `distance` is the number of bytes that follow it.
    """
    while len(_TERMS) <= distance:
        last = _TERMS[-1]
        _TERMS.append(CRC_TABLE[last & 255] ^ (last >> 8))
    return _TERMS[distance]


@lru_cache(maxsize=32)
def pair_term(distance: int) -> NDArray[np.uint32]:
    """Return what two bytes add to a checksum: uint32 [65536], by their little-endian number.

    `distance` is the number of bytes that follow both.
    """
    return (term(distance)[:, None] ^ term(distance + 1)).ravel()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    if len(data) >= 2048:  # for fewer bytes a loop is faster than setting up the lanes
        return int(
            checksums(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]))[0]
        )
    register, table = ALL_ONES, _CRC_LIST
    for byte in data:
        register = table[(register ^ byte) & 255] ^ (register >> 8)
    return register ^ ALL_ONES


def checksums(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the CRC-32C of many pieces [n] of some bytes: those of like length together."""
    crcs = np.empty(len(starts), np.uint32)
    lanes = np.maximum(-(-lengths // LANE_BYTES), 1)
    # The exponent of a power of two that is not below: exact, as lanes are far below 2**52.
    levels = np.frexp(lanes - 0.5)[1]
    for level in sorted(set(levels.tolist())):
        indices = np.flatnonzero(levels == level)
        width = LANE_BYTES << max(level, 0)
        batch_size = max(2**19 // width, 1)  # together they fit the cache
        for first in range(0, len(indices), batch_size):
            batch = indices[first : first + batch_size]
            pieces = zip(starts[batch].tolist(), lengths[batch].tolist(), strict=True)
            crcs[batch] = _crc_rows([data[start : start + n] for start, n in pieces], width)
    return crcs


def _crc_rows(pieces: list[NDArray[np.uint8]], width: int) -> NDArray[np.uint32]:
    """Return the checksums of pieces no longer than `width`, a power of two of lanes."""
    # Zeros in front change nothing, and starting from all ones inverts the first four bytes.
    rows = np.zeros((len(pieces), width), np.uint8)
    for row, piece in zip(rows, pieces, strict=True):
        start = width - len(piece)
        row[start:] = piece
        row[start : start + 4] ^= 255
    columns = np.ascontiguousarray(rows.reshape(-1, LANE_BYTES).T)
    registers = np.zeros(len(pieces) * width // LANE_BYTES, np.uint32)
    for position, column in enumerate(columns):
        registers ^= term(LANE_BYTES - 1 - position).take(column, mode="wrap")
    lanes = registers.reshape(len(pieces), -1)
    distance = LANE_BYTES
    while lanes.shape[1] > 1:
        lanes = _append_zeros(lanes[:, ::2], distance) ^ lanes[:, 1::2]
        distance *= 2
    crcs: NDArray[np.uint32] = lanes[:, 0] ^ np.uint32(ALL_ONES)
    for index, piece in enumerate(pieces):
        if len(piece) < 4:  # fewer than there are to invert
            crcs[index] = crc32c(piece.tobytes())
    return crcs


def _append_zeros(registers: NDArray[np.uint32], distance: int) -> NDArray[np.uint32]:
    """Return registers as they are after `distance` zero bytes, a power of two of them."""
    shifted = np.zeros_like(registers)
    for byte, table in enumerate(_zeros_effect(distance)):
        shifted ^= table[(registers >> np.uint32(8 * byte)) & 255]
    return shifted


@lru_cache(maxsize=32)
def _zeros_effect(distance: int) -> NDArray[np.uint32]:
    """Return the effect of each of a register's bytes after zero bytes: uint32 [4, 256]."""
    registers = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    if distance > LANE_BYTES:
        half = distance // 2
        return _append_zeros(_append_zeros(registers, half), half)
    for _ in range(distance):
        registers = CRC_TABLE[registers & 255] ^ (registers >> 8)
    return registers
