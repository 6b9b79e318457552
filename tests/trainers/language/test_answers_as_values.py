"""Two answers that mean the same: numbers in all their spellings, and words."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.trainers.language.rewards.values import is_same, number, plain

READING = Fraction(1, 20)
CLASSES = [  # within a class all mean the same; no two of different classes do
    ["-3", "−3", "-3.0", "- 3", "-3.", "–3", " -3 \n", "-3 kg"],
    ["3", "3.0", "+3", "3.", "03", "3 kg", "3 KG", "'3'", "3e0", "30e-1"],
    ["0", "0.0", "-0", "+0", "0 kg"],
    ["12", "12.00", "12 %", "12%", "12 percent", "12 per cent", "12 pct", "１２％"],
    ["1,250,000", "1250000", "1 250 000", "1.25 million", "1.25M", "1250 thousand", "$1,250,000"],
    ["-$4.50", "$-4.5", "-4.5", "-4.50 dollars", "−4.5 USD", "-4.5."],
    ["yes", "Yes", "YES.", " yes\n", '"Yes"', "**yes**"],
    ["New York", "new  york", "New York."],
    ["12,34", "12,34."],
    ["1/2"],
    ["5 or 6"],
    ["2015-2020"],
]


@pytest.mark.parametrize("members", CLASSES, ids=lambda one: one[0])
def test_spellings_of_one_answer_are_the_same(members):
    for a in members:
        for b in members:
            assert is_same(a, b), (a, b)


def test_answers_that_differ_are_not_the_same():
    for one, other in combinations(CLASSES, 2):
        for a in one:
            for b in other:
                assert not is_same(a, b), (a, b)
                assert not is_same(b, a), (b, a)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("0.12", "12%"), ("12%", "0.12"), ("12 million", "12"), ("12", "12K"), ("12 kg", "12")],
)
def test_a_scale_or_a_unit_may_be_left_out(answer, reference):
    assert is_same(answer, reference)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("5 kg", "5 g"), ("$5", "€5"), ("0.12%", "12%"), ("5 million", "5 thousand"), ("5 m", "5 km")],
)
def test_another_scale_or_unit_is_wrong(answer, reference):
    assert not is_same(answer, reference)
    assert not is_same(answer, reference, READING)


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [
        ("-10.5", "-10", True),
        ("-9.5", "-10", True),
        ("-10.51", "-10", False),
        ("500", "-10", False),
        ("10", "-10", False),
        ("10.5", "10", True),
        ("10.51", "10", False),
        ("0.001", "0", False),
        ("0", "0%", True),
        ("0", "0.001", False),
        ("42%", "40%", True),
        ("43%", "40%", False),
        ("1,290", "1,250", True),
    ],
)
def test_a_value_read_off_a_chart_may_be_five_percent_off(answer, reference, right):
    assert is_same(answer, reference, READING) is right


NO_NUMBERS = ["nan", "inf", "-", ".", "", "%", "--5", "+-5", "5 5", "1.2.3", "1,23", "٣", "1e9999"]
NO_NUMBERS += ["9" * 301, "(5)", "5 is", "a 5"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number(text):
    assert number(text) is None


@settings(deadline=None)
@given(st.integers())
def test_large_whole_numbers_are_told_apart(value):
    assert is_same(f"{value:,}", str(value))
    assert not is_same(str(value + 1), str(value))


@settings(deadline=None)
@given(st.integers(), st.integers())
def test_a_sign_is_never_lost(a, b):
    assert is_same(str(a), str(b), READING) == (abs(a - b) * 20 <= abs(b))


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_text_may_be_asked(a, b):
    assert is_same(a, b) == is_same(b, a)
    assert is_same(a, a) == bool(plain(a))
