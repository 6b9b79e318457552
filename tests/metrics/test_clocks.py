"""Logs of one run that count different steps: what is translated, and what is left alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rlvitals.metrics.canonicalize import trace
from rlvitals.metrics.steps.align import SAME_CLOCK, Clock, Source, align, pair_by_values
from rlvitals.types import Histogram, Log, Series, Table, Text

START = 1.7e9  # seconds since the epoch
ROWS = 50
STEPS = np.arange(1, ROWS + 1) * 2048  # environment steps of each row
CURVE = np.cumsum(np.random.default_rng(0).normal(1, 0.2, ROWS))


def series(steps, values=None, times=None):
    steps = np.asarray(steps, dtype=np.int64)
    values = np.ones(len(steps)) if values is None else np.asarray(values, dtype=np.float64)
    times = np.full(len(steps), np.nan) if times is None else np.asarray(times, dtype=np.float64)
    return Series(steps, times, values)


def clock_of(poor, rich, unit="environment steps"):
    """The poorer log's clock; the other says its unit, so that it sets the count."""
    first, second = align([Source(unit, rich), Source("steps", poor)])
    assert first is SAME_CLOCK
    return second


def test_a_table_of_rows_is_translated_by_the_values_it_shares():
    rich = {"loss": series(STEPS, CURVE)}
    poor = {"loss": series(range(ROWS), CURVE), "own": series(range(ROWS))}
    found = clock_of(poor, rich)
    assert (found.how, found.to) == ("values", 0)
    assert found.translate(poor["own"].steps).tolist() == STEPS.tolist()
    assert found.translate(np.array([-1, ROWS])).tolist() == [0, STEPS[-1] + 2048]


@pytest.mark.parametrize("kept", [np.float32, lambda x: np.round(x, 5)])
def test_what_a_format_cuts_off_a_value_is_no_difference(kept):
    found = clock_of({"loss": series(range(ROWS), kept(CURVE))}, {"loss": series(STEPS, CURVE)})
    assert found.translate(np.arange(ROWS)).tolist() == STEPS.tolist()


def test_a_log_that_kept_every_fifth_row_is_translated_between_them():
    rich = {"loss": series(STEPS[::5], CURVE[::5])}
    poor = {"loss": series(range(5, 55, 5), CURVE[::5]), "own": series(range(ROWS))}
    assert clock_of(poor, rich).translate(np.array([5, 6, 7])).tolist() == [2048, 4096, 6144]


def test_equal_steps_are_the_same_clock():
    rich, poor = {"loss": series(STEPS, CURVE)}, {"loss": series(STEPS[:20], CURVE[:20])}
    assert clock_of(poor, rich) is SAME_CLOCK  # it ended early, and is believed


def test_a_row_more_or_less_is_the_same_clock():
    """One logs a row under the step it began with, the other under the step it ended with."""
    rich, poor = {"loss": series(STEPS, CURVE)}, {"loss": series(STEPS - 2048, CURVE)}
    assert clock_of(poor, rich) is SAME_CLOCK


def test_logs_that_say_the_same_unit_are_left_alone():
    rich = Source("environment steps", {"loss": series(STEPS, CURVE)})
    poor = Source("environment steps", {"loss": series(range(ROWS), CURVE)})
    assert align([poor, rich]) == [SAME_CLOCK, SAME_CLOCK]


def test_a_tracker_s_rows_are_translated_by_wall_time():
    """It logs each second, the trainer every two; they share no value."""
    rich = {"loss": series(STEPS, CURVE, START + 2.0 * np.arange(ROWS))}
    ticks = np.arange(2 * ROWS - 1)
    poor = {"own": series(ticks, None, START + ticks)}
    found = clock_of(poor, rich)
    assert found.how == "times"
    assert found.translate(ticks[::2]).tolist() == STEPS.tolist()
    assert found.translate(ticks[1:2]).tolist() == [3072]


def test_a_log_of_the_same_steps_at_other_moments_is_left_alone():
    rich = {"loss": series(STEPS, CURVE, START + np.arange(ROWS))}
    poor = {"own": series(STEPS[::7] - 100, None, START + np.arange(ROWS)[::7] + 0.3)}
    assert clock_of(poor, rich) is SAME_CLOCK


def test_times_of_another_day_tell_nothing():
    rich = {"loss": series(STEPS, CURVE, START + np.arange(ROWS))}
    poor = {"own": series(range(ROWS), None, np.arange(ROWS))}  # seconds since the start
    assert clock_of(poor, rich).how == "unknown"


def test_a_stretch_run_again_counts_by_its_later_time():
    again = np.r_[0:30, 20:50]
    rich = {"loss": series(2048 * again, None, START + np.arange(60))}
    poor = {"own": series(again, None, START + np.arange(60))}
    assert clock_of(poor, rich).translate(np.array([10, 40])).tolist() == [20480, 81920]


def test_values_that_meet_by_chance_tell_nothing():
    shuffled = np.random.default_rng(1).permutation(CURVE)
    rich, poor = {"loss": series(STEPS, CURVE)}, {"loss": series(range(ROWS), shuffled)}
    assert pair_by_values(Source("steps", poor), Source("steps", rich)) is None
    assert clock_of(poor, rich).how == "unknown"


def test_a_constant_tells_nothing():
    assert clock_of({"lr": series(range(ROWS))}, {"lr": series(STEPS)}).how == "unknown"


def test_a_log_that_nothing_tells_about_is_the_same_if_it_ends_near():
    rich = {"loss": series(STEPS, CURVE)}
    assert clock_of({"own": series([1000, 90_000])}, rich) is SAME_CLOCK
    assert clock_of({"own": series([10, 900])}, rich).how == "unknown"


def test_who_says_what_it_counts_sets_the_count_then_the_fuller():
    small, large = {"loss": series(STEPS, CURVE)}, {"loss": series(range(ROWS), CURVE)}
    large["own"] = series(range(ROWS))
    first, second = align([Source("steps", large), Source("environment steps", small)])
    assert (first.how, second) == ("values", SAME_CLOCK)
    first, second = align([Source("steps", large), Source("steps", small)])
    assert (first, second.how) == (SAME_CLOCK, "values")
    first, second = align([Source("rows", large), Source("steps", small)])
    assert (first.how, second) == ("values", SAME_CLOCK)


def test_a_log_is_told_by_one_that_was_told_itself():
    trainer = Source("environment steps", {"loss": series(STEPS, CURVE)})
    tracker = {"loss": series(range(ROWS), CURVE, START + np.arange(ROWS)), "a": series([1])}
    console = {"own": series(range(1000, 1000 + 2 * ROWS), None, START + np.arange(2 * ROWS) / 2)}
    found = align([trainer, Source("steps", tracker), Source("rows", console)])
    assert [(clock.how, clock.to) for clock in found] == [("same", 0), ("values", 0), ("times", 1)]
    assert found[2].translate(np.array([1000, 1010])).tolist() == [2048, 6 * 2048]


def test_a_run_without_numbers_has_no_clock_to_set():
    assert align([Source("steps", {}), Source("steps", {"a": series([])})]) == [
        SAME_CLOCK,
        SAME_CLOCK,
    ]
    assert align([]) == []


def test_everything_a_log_holds_goes_along():
    at = series(range(ROWS), CURVE)
    tracker = Log(
        "wandb",
        {"loss": at, "approx_kl": at, "my/own": at},
        where="run.wandb",
        histograms={"weights": [Histogram(3, START, np.array([0.0, 1.0]), np.array([2.0]))]},
        texts={"sample": [Text(4, START, "so it goes")]},
        tables={"completions": Table(np.array([5, 6]), {"text": ["a", "b"]})},
    )
    trainer = Log(
        "csv", {"loss": series(STEPS, CURVE)}, where="a.csv", step_unit="environment steps"
    )
    run = trace([tracker, trainer])
    assert run["policy/approx_kl"].steps.tolist() == STEPS.tolist()
    assert run.step_unit == "environment steps"
    assert run.histograms["weights"][0].step == STEPS[3]
    assert run.texts["sample"][0].step == STEPS[4]
    assert run.tables["completions"].steps.tolist() == STEPS[5:7].tolist()
    assert run.notes == (
        "run.wandb counts other steps than a.csv: translated by the values they share",
        "a.csv: 1 of its 1 metrics is read from run.wandb",
    )


rising = arrays.arrays(np.int64, st.integers(2, 60), elements=st.integers(1, 10**6)).map(np.cumsum)


@given(
    mine=rising,
    theirs=rising,
    asked=arrays.arrays(np.int64, 40, elements=st.integers(-(10**9), 10**9)),
)
def test_translation_keeps_the_order(mine, theirs, asked):
    n = min(len(mine), len(theirs))
    clock = Clock("values", 0, mine[:n], theirs[:n])
    found = clock.translate(np.sort(asked))
    assert (np.diff(found) >= 0).all()
    assert clock.translate(mine[:n]).tolist() == theirs[:n].tolist()


@given(steps=rising, seed=st.integers(0, 2**32 - 1), keep=st.floats(0.1, 1.0), timed=st.booleans())
def test_equal_steps_are_untouched(steps, seed, keep, timed):
    """Whatever of a run another log holds: its values, its times, or neither."""
    draw = np.random.default_rng(seed)
    times = START + np.cumsum(draw.exponential(1.0, len(steps))) if timed else None
    rich = series(steps, draw.normal(size=len(steps)), times)
    part = rich.where(draw.random(len(steps)) < keep)
    found = clock_of({"loss": part}, {"loss": rich})
    assert found.translate(part.steps) is part.steps


@given(
    theirs=rising.filter(lambda a: len(a) >= 12),
    seed=st.integers(0, 2**32 - 1),
    by=st.sampled_from(["values", "times"]),
)
def test_another_count_is_found_whatever_its_pace(theirs, seed, by):
    draw = np.random.default_rng(seed)
    n = len(theirs)
    times = START + np.cumsum(draw.exponential(1.0, n) + 0.01)
    mine = np.arange(n)
    values = draw.permutation(n).astype(float)  # no two alike
    rich = series(theirs + theirs[-1] + n, values, times if by == "times" else None)
    poor = series(mine, rich.values, times if by == "times" else None)
    name = "loss" if by == "values" else "own"
    found = clock_of({name: poor}, {"loss": rich})
    assert found.how == by
    np.testing.assert_allclose(found.translate(mine), rich.steps, atol=1 if by == "times" else 0)
