"""Convert decimal numbers in text to float64, vectorised and correctly rounded.

Plain notation of up to 19 digits, as loggers write most values: `-0.6924420595169067`. Whatever
else stands there is left to `float()`.

The digits of a number become one integer m < 10^19, eight at a time (Lemire, "Quickly parsing
eight digits", 2018); m and its power of ten p are exact. Where m < 2^53, m / p is one rounding.
Else the quotient's remainder is computed exactly (Dekker 1971) and added, and the result taken
only where the sum lies clearly to one side of the middle between two float64.
"""

import numpy as np
from numpy.typing import NDArray

DIGITS_PER_WORD = 8  # bytes
MAX_NUMBER_DIGITS = 19  # 10^19 < 2^64
MIN_LEADING_BYTES = 32  # bytes that must stand in the text before the first number
NUMBERS_PER_BLOCK = 2**14  # numbers at a time: what stays in the cache

Words = NDArray[np.uint64]
Index = NDArray[np.int64]


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


ZEROS, DOTS, HIGH_BITS = (_word(bytes([c]) * DIGITS_PER_WORD) for c in (0x30, 0x2E, 0x80))
NIBBLES, SIXES = _word(b"\xf0" * DIGITS_PER_WORD), _word(b"\x06" * DIGITS_PER_WORD)
PAIR_MASK = _word(b"\xff\0\0\0" * 2)
# The last n bytes of a word.
LAST_BYTES = np.array(
    [(2**64 - 1) ^ ((1 << 8 * (DIGITS_PER_WORD - n)) - 1) for n in range(DIGITS_PER_WORD + 1)],
    np.uint64,
)
POWERS: NDArray[np.float64] = np.array([10.0**n for n in range(MAX_NUMBER_DIGITS + 1)])


def parse(
    words: Words, starts: Index, size: Index
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers at some places, and which of them could be read: float64, bool [n].

    `words` [bytes] holds the eight bytes from each place of the text on, `at` and `size` [n] are
    where each number begins, at least BEFORE bytes into the text, and its bytes.
    """
    values, good = np.zeros(len(starts)), np.zeros(len(starts), bool)
    for first in range(0, len(starts), NUMBERS_PER_BLOCK):
        block = slice(first, first + NUMBERS_PER_BLOCK)
        values[block], good[block] = _parse(words, starts[block], size[block])
    return values, good


def _parse(
    words: Words, starts: Index, size: Index
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    head = words[starts] & np.uint64(0xFF)
    negative = head == ord("-")
    end = starts + size
    count = size - negative  # bytes of digits and the dot
    fraction = _fraction(words, end, count)
    dotted = fraction >= 0
    digits = count - dotted
    good = (digits > np.maximum(fraction, 0)) & (digits <= MAX_NUMBER_DIGITS) & (fraction != 0)
    lead = words[starts + negative]
    padded = ((lead & np.uint64(0xFF)) == ord("0")) & (
        digits - np.maximum(fraction, 0) > 1
    )  # 01 is no JSON
    good &= ~padded
    number = np.zeros(len(starts), np.uint64)
    for index, scale in ((2, np.uint64(10**16)), (1, np.uint64(10**8)), (0, None)):
        eight, fits = _eight(
            words, end - DIGITS_PER_WORD * (index + 1), digits, fraction, DIGITS_PER_WORD * index
        )
        good &= fits
        number += eight if scale is None else eight * scale
    power = POWERS[np.where(good & dotted, fraction, 0)]
    values = number.astype(np.float64) / power
    # float64 holds every integer below.
    large = np.flatnonzero((number >= 2**53) & good)
    values[large], sure = _quotients(number[large], power[large])
    good[large] = sure
    return np.where(negative & (dotted | (number > 0)), -values, values), good


def _fraction(words: Words, end: Index, count: Index) -> Index:
    """Return how many bytes stand after the last dot; -1 where there is none."""
    fraction = np.full(len(end), -1)
    for index in (2, 1, 0):
        mask = LAST_BYTES[np.clip(count - DIGITS_PER_WORD * index, 0, DIGITS_PER_WORD)]
        difference = words[end - DIGITS_PER_WORD * (index + 1)] ^ DOTS
        # The highest bit of each byte that is zero in `other`, one byte after the other.
        zero = ~(((difference & ~HIGH_BITS) + ~HIGH_BITS) | difference | ~HIGH_BITS) & mask
        rows = np.flatnonzero(zero)
        top = (zero[rows] >> np.uint64(7)).astype(np.float64).view(np.int64) >> 52
        fraction[rows] = (
            DIGITS_PER_WORD * index + DIGITS_PER_WORD - 1 - (top - 1023 + 1) // DIGITS_PER_WORD
        )
    return fraction


def _eight(
    words: Words, starts: Index, digits: Index, fraction: Index, passed: int
) -> tuple[Words, NDArray[np.bool_]]:
    """Read eight digits, those before the `passed` last ones; the dot between them is skipped."""
    behind = LAST_BYTES[np.clip(fraction - passed, 0, DIGITS_PER_WORD)]
    mask = LAST_BYTES[np.clip(digits - passed, 0, DIGITS_PER_WORD)]
    text = (words[starts] & behind) | (words[starts - (fraction >= 0)] & ~behind)
    text = (text & mask) | (ZEROS & ~mask)
    fits = ((text & NIBBLES) | (((text + SIXES) & NIBBLES) >> np.uint64(4))) == _word(
        b"3" * DIGITS_PER_WORD
    )
    pairs = text - ZEROS
    pairs = pairs * np.uint64(10) + (pairs >> np.uint64(8))
    value = (pairs & PAIR_MASK) * np.uint64(100 + (1000000 << 32)) + (
        (pairs >> np.uint64(16)) & PAIR_MASK
    ) * np.uint64(1 + (10000 << 32))
    return value >> np.uint64(32), fits


def _quotients(
    number: Words, power: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Divide integers over 2^53 by exact powers of ten; which of them are surely rounded."""
    high = number.astype(np.float64)
    low = (number - high.astype(np.uint64)).view(np.int64).astype(np.float64)
    first = high / power
    product = first * power
    a, b = _halves(first), _halves(power)
    error = ((a[0] * b[0] - product) + a[0] * b[1] + a[1] * b[0]) + a[1] * b[1]
    second = ((high - product) - error + low) / power
    total = first + second
    error_left = np.abs(second - (total - first))  # what the sum leaves out, exactly
    spacing = np.spacing(total)
    # Far over the error of the sum, far under chance.
    middle = np.abs(error_left - 0.5 * spacing) < 2.0**-30 * spacing
    return total, ~middle & (np.frexp(total)[0] != 0.5)  # below 2^n places halve


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split into two of 26 bits each, whose products are exact."""
    scaled = (2.0**27 + 1) * values  # Veltkamp's splitter, for 53 bits
    high = scaled - (scaled - values)
    return high, values - high
