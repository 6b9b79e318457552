"""Decimal text to float64: never another number than float() reads."""

import json
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlvitals.readers.formats import digits

NUMBERS = st.one_of(st.floats().map(repr), st.integers().map(str), st.text("-+.0123e "))


def parse(texts):
    """Parse texts that stand one after another, with other digits between them."""
    data, at = b"7" * digits.MIN_LEADING_BYTES, []
    for text in texts:
        at.append(len(data))
        data += text.encode() + b"9."
    data += b"8" * digits.MIN_LEADING_BYTES
    words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))
    return digits.parse(words, np.array(at), np.array([len(t.encode()) for t in texts]))


def check(texts):
    """Return the share that could be read; what was must be what JSON says, bit by bit."""
    values, good = parse(texts)
    for text, value in zip(np.array(texts)[good], values[good], strict=True):
        expected = float(json.loads(str(text)))
        assert value.hex() == expected.hex(), text
    return good.mean()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats().map(repr), st.integers().map(str), st.text("-+.0123e ")), min_size=1
    )
)
@example(["", "-", ".", "1.", ".5", "01", "-00", "1.2.3", "--1", "1-", "0x1", "1:", "/1", "5/"])
@example(["-0", "-0.0", "0", "0.0", "9999999999999999999", "18446744073709551616"])
def test_what_is_read_is_what_float_reads(texts):
    check(texts)


@pytest.mark.parametrize(
    ("make", "share"),
    [
        (lambda c: repr(c.gauss(0, 1)), 0.99),
        (lambda c: repr(c.random() * 10 ** c.randint(-3, 12)), 0.9),
        (lambda c: str(c.randint(-(10**18), 10**18)), 0.95),
        (lambda c: f"{c.gauss(0, 100):.{c.randint(0, 15)}f}", 0.99),
        (lambda c: repr(float(np.float32(c.gauss(0, 1)))), 0.9),
    ],
)
def test_what_loggers_write_is_read(make, share):
    chance = random.Random(0)
    assert check([make(chance) for _ in range(20_000)]) > share


def test_middles_between_two_numbers():
    chance = random.Random(1)
    texts = []
    for _ in range(3000):
        value = chance.randint(2**53, 2**62) // 2 * 2 + 1
        scale = chance.randint(0, 17)
        whole = str(value).rjust(scale + 1, "0")
        texts.append(f"{whole[:-scale]}.{whole[-scale:]}" if scale else whole)
    near = [2**n + k for n in range(50, 63) for k in range(-9, 9)]
    half = [f"{2**53 - k}.5" for k in range(1, 9)] + [f"{2**52 + k}.25" for k in range(1, 9)]
    assert check([*texts, *map(str, near), *half]) > 0.8


def test_nothing_is_nothing():
    values, good = digits.parse(
        np.zeros(99, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    )
    assert len(values) == len(good) == 0
