"""One calm line an update."""

import io
import sys

import numpy as np
import pytest
from openings import opening, rows

from rlvitals.tracking.sinks import console
from rlvitals.tracking.sinks.sink import Rows


def row(step, **metrics):
    values = np.array([list(metrics.values())], float)
    return Rows(tuple(metrics), np.array([step]), np.array([1.7e9]), values)


def lines(capsys, *batches, **options):
    writing = console.SINK.open(opening("", options=options))
    for batch in batches:
        writing.scalars(batch)
    writing.close("finished")
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_nothing_where_nobody_looks(capsys):
    assert lines(capsys, row(1, loss=0.5)) == []


def test_what_matters_most_comes_first(capsys):
    metrics = {"train/lr": 3e-4, "other": 2.0, "train/loss": 0.123456, "rollout/ep_rew_mean": 21.0}
    metrics |= {"axis/episode": 7.0, "kl": np.nan}
    assert lines(capsys, row(2048, **metrics), always=True) == [
        "step 2,048  ep_rew_mean 21  kl NaN  loss 0.1235  lr 3.00e-04  other 2",
        "finished at step 2,048",
    ]


def test_chosen_names(capsys):
    found = lines(capsys, row(5, a=1.0, b=2.0), always=True, keys=["b", "c"])
    assert found[0] == "step 5  b 2"


def test_at_most_one_line_a_second_and_the_last_row_is_told(capsys):
    batches = [row(step, loss=step) for step in range(1000)]
    found = lines(capsys, *batches, always=True, every=1000)
    assert len(found) == 3
    assert found[0] == "step 0  loss 0"
    assert found[1].startswith("step 999  ")
    assert found[1].endswith("/s  loss 999")


@pytest.mark.parametrize("width", [10, 40, 79, 200])
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    keys = tuple(f"train/metric_{i}" for i in range(30))
    found = lines(capsys, rows(keys, 3), always=True)
    assert len(found[0]) < width
    assert width < 79 or len(found[0]) > width - 30


def test_a_terminal_is_enough(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    writing = console.SINK.open(opening(""))
    writing.scalars(row(1, loss=0.5))
    assert screen.getvalue() == "step 1  loss 0.5\n"


def test_a_progress_bar_of_rich_stays_whole(monkeypatch):
    from rich import get_console
    from rich.progress import Progress

    screen = io.StringIO()
    shared = get_console()
    monkeypatch.setattr(shared, "file", screen)
    writing = console.SINK.open(opening("", options={"always": True}))
    with Progress(console=shared, auto_refresh=False) as progress:
        progress.add_task("train", total=10)
        writing.scalars(row(1, loss=0.5))
    assert "step 1  loss 0.5\n" in screen.getvalue()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (1.0, "1"), (0.12345678, "0.1235"), (12345.678, "12,346"), (1e-9, "1.00e-09"),
        (-2.5e7, "-2.50e+07"), (np.inf, "inf"), (-np.inf, "-inf"), (np.nan, "NaN"),
        (999.96, "1000"),
    ],
)  # fmt: skip
def test_numbers_at_a_glance(value, shown):
    assert console.number(value) == shown


def test_no_rows_and_other_calls_say_nothing(capsys):
    assert lines(capsys, rows(count=0), always=True) == []
