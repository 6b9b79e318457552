"""CRC-32C (Castagnoli), as TensorBoard's record files check themselves with it.

Polynomial and test vectors: RFC 3720, appendix B.4; the mask: TensorFlow `core/lib/hash/crc32c.h`.
"""

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78  # reflected
ALL_ONES = 0xFFFFFFFF
MASK_DELTA = 0xA282EAD8
LANE_BYTES = 256
FEW_BYTES = 2048  # below it, a loop over bytes is faster than setting up the lanes


def _byte_table() -> NDArray[np.uint32]:
    """Return the effect of one byte on a zero register: uint32 [256]."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


TABLE = _byte_table()
_BYTES: list[int] = TABLE.tolist()


def mask(crc: int) -> int:
    """Return a checksum as it is stored: rotated and shifted, so that it may itself be checked."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & ALL_ONES


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    lanes = len(data) // LANE_BYTES if len(data) >= FEW_BYTES else 0
    register = _lanes(data[: lanes * LANE_BYTES]) if lanes else ALL_ONES
    table = _BYTES
    for byte in data[lanes * LANE_BYTES :]:
        register = table[(register ^ byte) & 255] ^ (register >> 8)
    return register ^ ALL_ONES


def _lanes(data: bytes) -> int:
    """Return the register after whole lanes: all lanes at once, then joined two by two."""
    matrix = np.frombuffer(data, np.uint8).reshape(-1, LANE_BYTES)
    registers = np.zeros(len(matrix), np.uint32)
    registers[0] = ALL_ONES
    for column in matrix.T:
        registers = TABLE[(registers ^ column) & 255] ^ (registers >> 8)
    # A register moves over n zero bytes by a linear map: its images of the 32 bits say it all.
    move = _over_zeros(np.uint32(1) << np.arange(32, dtype=np.uint32), LANE_BYTES)
    while len(registers) > 1:
        if len(registers) % 2:  # an empty lane in front changes nothing
            registers = np.concatenate((np.zeros(1, np.uint32), registers))
        registers = _apply(move, registers[::2]) ^ registers[1::2]
        move = _apply(move, move)
    return int(registers[0])


def _over_zeros(registers: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
    for _ in range(count):
        registers = TABLE[registers & 255] ^ (registers >> 8)
    return registers


def _apply(move: NDArray[np.uint32], registers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    bits = (registers[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    moved: NDArray[np.uint32] = np.bitwise_xor.reduce(np.where(bits == 1, move, 0), axis=1)
    return moved.astype(np.uint32)
