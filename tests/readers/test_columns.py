import math

import numpy as np
import pytest

from rlvitals.readers.formats.columns import Columns, json_number, parse_number, to_step

NANS = ["nan", "NaN", "NAN", "-nan", "nan(ind)", "-nan(ind)", "-1.#IND", "1.#QNAN00"]


@pytest.mark.parametrize("text", NANS)
def test_every_spelling_of_nan_is_data(text):
    assert math.isnan(parse_number(text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        (" -2 ", -2.0),
        ("1e308", 1e308),
        ("5e-324", 5e-324),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1.#INF", math.inf),
        ("-1.#INF00", -math.inf),
        ("True", 1.0),
        ("false", 0.0),
    ],
)
def test_numbers(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["", "  ", "None", "null", "NA", "n/a"])
def test_what_was_not_logged_is_no_number(text):
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["tensor(1.)", "[1]", "1_000", "0x1F", "1,5", "1.2.3", "--1", "é"])
def test_text_is_refused(text):
    with pytest.raises(ValueError, match="not a number"):
        parse_number(text)


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3.0), (True, 1.0), ("Infinity", math.inf), (10**400, math.inf), (-(10**400), -math.inf)],
    ids=["int", "bool", "word", "huge", "minus huge"],
)
def test_json_numbers(value, number):
    assert json_number(value) == number


@pytest.mark.parametrize("value", [None, "42", "1e5", "tensor(1.)", [1], {"a": 1}, "x" * 1000])
def test_json_text_is_no_number(value):
    assert json_number(value) is None


def test_steps_are_whole():
    assert [to_step(x) for x in (20480.0, -3, 0)] == [20480, -3, 0]
    absurd = (None, 1.5, math.nan, math.inf, 1e308, 2**63)
    assert [to_step(x) for x in absurd] == [None] * len(absurd)


def test_columns_keep_the_order_of_logging():
    columns = Columns()
    columns.add("a", 5, 1.0, time=10.0)
    columns.add_row(3, [("a", 2.0), ("b", None)])
    columns.extend("a", np.array([7, 7]), np.array([math.nan, math.inf]))
    found = columns.series()
    assert list(found) == ["a"]
    np.testing.assert_array_equal(found["a"].steps, [5, 3, 7, 7])
    np.testing.assert_array_equal(found["a"].times, [10.0, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(found["a"].values, [1.0, 2.0, math.nan, math.inf])
    columns.add("a", 8, 4.0)
    assert len(found["a"]) == 4
    assert len(columns.series()["a"]) == 5
