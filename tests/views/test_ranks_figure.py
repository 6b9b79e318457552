"""Ranks as bands: the quantiles are those of the ranks, and the right ranks are named."""

from dataclasses import replace

import numpy as np
import pytest
from drawn import subject
from reported import Elements, judged, pages, written

from rlvitals.diagnosis.engine import diagnose
from rlvitals.types import Measured, RankValues, Series, Trace
from rlvitals.views.drawing import files
from rlvitals.views.figures import choose
from rlvitals.views.figures.figure import Kind, Subject
from rlvitals.views.figures.panels import picture

LOSS, GRADIENT, SECONDS = "optimiser/loss", "optimiser/grad_norm", "throughput/step_time"


def ranks(count, steps=160, *, slow=(), different=(), seed=0):
    """Return a trace of ranks with losses of their own, one shared gradient norm, and step times.

    `slow` ranks take 1.6 x the time from step 60 on; `different` ones have 1.03 x the gradient
    norm from step 100 on.
    """
    rng = np.random.default_rng(seed)
    loss = 3 + rng.normal(0, 0.4, (count, steps))
    gradient = np.abs(2 + rng.normal(0, 0.3, steps)) * np.ones((count, 1))
    seconds = 0.3 + 0.02 * rng.gamma(3.0, 1.0, (count, steps))
    for rank in slow:
        seconds[rank, 60:] *= 1.6
    for rank in different:
        gradient[rank, 100:] *= 1.03
    at = np.arange(1, steps + 1)
    times = 1.7e9 + at * np.ones((count, 1))
    whole = np.ones((count, steps), bool)
    tables = {LOSS: loss, GRADIENT: gradient, SECONDS: seconds}
    values = {
        name: RankValues(np.arange(count), at, times, each, whole) for name, each in tables.items()
    }
    series = {name: Series(at, times[0], each[0]) for name, each in tables.items()}
    measured = {name: Measured(name, "made", "made") for name in tables}
    return Trace(series, measured, ranks=values)


def drawn(*traces):
    subjects = [Subject(f"run {n}", diagnose(trace)) for n, trace in enumerate(traces)]
    return picture(choose(["ranks"], "test")[0], subjects)


def named(panel):
    return [line.label for line in panel.lines if not line.quantile]


def test_a_thousand_ranks_are_bands_with_the_straggler_and_the_different_one_named():
    trace = ranks(1024, slow=[417], different=[33])
    loss, gradient, seconds = drawn(trace).panels
    assert [panel.title for panel in (loss, gradient, seconds)] == [
        "Training loss on 1,024 ranks", "Gradient norm on 1,024 ranks",
        "Seconds per step on 1,024 ranks",
    ]  # fmt: skip
    assert {panel.kind for panel in (loss, gradient, seconds)} == {Kind.BANDS}
    assert (named(loss), named(gradient), named(seconds)) == ([], ["rank 33"], ["rank 417"])
    bands = np.array([line.series.values for line in loss.lines])
    values = trace.ranks[LOSS].values
    assert bands == pytest.approx(np.quantile(values, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1), axis=0))
    assert seconds.lines[-1].series.values == pytest.approx(trace.ranks[SECONDS].values[417])
    assert [mark.label for mark in seconds.marks] == ["rank-slow"]


@pytest.mark.parametrize("count", [8, 64, pytest.param(1024, marks=pytest.mark.soak)])
def test_no_healthy_rank_is_named(count):
    for seed in range(5):
        for panel in drawn(ranks(count, seed=seed)).panels:
            assert not named(panel), seed


def test_more_outliers_than_a_legend_holds_are_counted():
    seconds = drawn(ranks(64, slow=range(10, 17))).panels[2]
    labels = named(seconds)
    assert len(labels) == 3
    assert labels[-1].endswith(" and 4 more")
    assert {int(label.split()[1]) for label in labels} <= set(range(10, 17))


def test_a_rank_that_stopped_is_named_and_missing_numbers_do_not_spoil_the_bands():
    trace = ranks(16)
    values = trace.ranks[LOSS]
    values.values[5, 90:], values.logged[5, 90:] = np.nan, False
    values.values[3, 10] = np.inf
    loss = drawn(trace).panels[0]
    assert named(loss) == ["rank 5"]
    assert len(loss.lines[-1].series) == 90
    assert all(np.isfinite(line.series.values).all() for line in loss.lines)


def test_few_ranks_have_a_curve_each_and_several_runs_three_quantiles():
    loss, *_ = drawn(ranks(4)).panels
    assert named(loss) == [f"rank {rank}" for rank in range(4)]
    loss, *_ = drawn(ranks(64), ranks(64, seed=1)).panels
    assert [(line.run, line.label) for line in loss.lines] == [
        (run, label) for run in (0, 1) for label in ("median", "5 %, 95 %", "5 %, 95 %")
    ]


def test_the_time_between_rows_stands_for_a_step_time_that_is_not_logged():
    trace = ranks(8)
    rows = trace.ranks[LOSS]
    seconds = np.cumsum(trace.ranks[SECONDS].values, axis=1)
    seconds[2] *= 1.5
    trace = replace(trace, ranks={LOSS: replace(rows, times=1.7e9 + seconds)})
    loss, times = drawn(trace).panels
    assert (named(loss), named(times)) == ([], ["rank 2"])
    assert times.title == "Seconds per step on 8 ranks"


def test_a_run_of_one_rank_has_no_such_picture():
    found = subject("cluster")
    assert picture(choose(["ranks"], "test")[0], [found]) is None
    assert not pages(judged(found.label, found.found))[0].ranks


def test_a_report_has_the_bands_and_the_files_their_numbers(tmp_path):
    trace = ranks(64, slow=[7])
    page = Elements(written(judged("made", diagnose(trace))))
    assert "Ranks" in page.text
    *_, times = [
        chart for chart in page.data["runs"][0]["charts"] if chart["title"].endswith("ranks")
    ]
    assert [curve["quantile"] for curve in times["curves"]] == [True] * 7 + [False]
    assert times["curves"][-1]["label"] == "rank 7"
    files.write(drawn(trace), tmp_path / "ranks.png", "dark", 60)
    assert (tmp_path / "ranks.png").stat().st_size > 10_000
