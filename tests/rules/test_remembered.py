"""What is kept with a trace is asked once, and gone with it."""

import gc
import weakref

import numpy as np
import pytest

from rlvitals.rules.remembered import cache_by_trace
from rlvitals.types import Cut, Series, Trace


def _series(count: int, *, every: int = 1) -> Series:
    steps = every * np.arange(1, count + 1, dtype=np.int64)
    return Series(steps, steps + 0.5, np.sqrt(steps))


def _trace() -> Trace:
    return Trace({"a": _series(50), "b": _series(10, every=7), "empty": _series(0)}, {})


def test_a_question_is_asked_once_for_each_of_its_arguments() -> None:
    """One trace is not another, nor one argument another."""
    asked: list[int] = []

    @cache_by_trace
    def length(trace: Trace, until: int) -> int:
        asked.append(until)
        return len(trace["a"].until(until))

    one, other = _trace(), Trace({"a": _series(5)}, {})
    answers = (length(one, 10), length(one, 10), length(one, 20), length(other, 10))
    assert answers == (10, 10, 20, 5)
    assert asked == [10, 20, 10]


def test_an_error_is_not_remembered_as_an_answer() -> None:
    """The next call asks again."""
    calls: list[None] = []

    @cache_by_trace
    def fails(trace: Trace) -> int:
        calls.append(None)
        return len(trace["missing"])

    trace = _trace()
    for _ in range(2):
        with pytest.raises(KeyError):
            fails(trace)
    assert len(calls) == 2


def test_answers_do_not_keep_a_trace_alive() -> None:
    """A prefix shares its series, and so must not hold the trace it was cut from."""

    @cache_by_trace
    def prefix(trace: Trace, step: int) -> Trace:
        return trace.until(step)

    trace = _trace()
    assert len(prefix(trace, 20)["a"]) == 20
    gone = weakref.ref(trace)
    del trace
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("step", [0, 1, 13, 14, 50, 70, 1000])
def test_a_part_of_a_run_holds_what_was_logged_then(step: int) -> None:
    """Cut when asked for, it equals what cutting everything at once gives."""
    whole = _trace()
    for part, mask in (
        (whole.until(step), lambda s: s.steps <= step),
        (whole.since(step), lambda s: s.steps >= step),
    ):
        assert list(part.series) == list(whole.series)
        assert len(part.series) == 3
        for name, series in whole.series.items():
            kept = mask(series)
            assert part[name].steps.tolist() == series.steps[kept].tolist()
            assert part[name].times.tolist() == series.times[kept].tolist()
            assert part[name].values.tolist() == series.values[kept].tolist()
        logged = [s.steps[mask(s)] for s in whole.series.values()]
        ends = [int(steps[-1]) for steps in logged if steps.size]
        assert part.last_step == max(ends, default=0)


def test_a_series_is_cut_when_it_is_asked_for_and_only_once() -> None:
    """Names alone cut nothing."""
    cut: list[int] = []

    def half(series: Series) -> Series:
        cut.append(len(series))
        return series.tail(len(series) // 2)

    part = Cut(_trace().series, half)
    assert "a" in part
    assert "missing" not in part
    assert part.get("missing") is None
    assert cut == []
    assert part["a"] is part["a"]
    assert cut == [50]
