"""The screen of `rlvitals watch`: frames of a size, and the program that shows them."""

import asyncio
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals import cli
from rlvitals.cli.watch import read_console
from rlvitals.types import Series
from rlvitals.views import braille
from rlvitals.views.console import plain
from rlvitals.views.watch_frame import WatchedRun, frame

HERE = Path(__file__).parent
RUNS = HERE.parent / "runs"
HEAD = "rlvitals watch  12:00:00  3 runs: 1 growing, 2 over"


@cache
def watched():
    console = ("update 59: loss 0.1", "update 60: loss \x1b[31mnan")
    return (
        WatchedRun("broken", "growing", diagnose("ppo-cartpole-lr-x300"), console),
        WatchedRun("healthy", "over", diagnose("ppo-cartpole-healthy")),
        WatchedRun("new", "growing"),
    )


def diagnose(name):
    return rlvitals.diagnose(RUNS / name / "run.csv")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (140, 40), (140, 24)])
@pytest.mark.parametrize("selected", [0, 2])
def test_frames(columns, rows, selected, golden):
    screen = plain(frame(watched(), selected, columns, rows, HEAD), width=columns)
    lines = screen.split("\n")
    assert len(lines) == rows
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in screen
    golden(HERE / "golden" / f"watch-{columns}x{rows}-{selected}.txt", screen)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (1, 1), (300, 100)])
def test_no_run_and_many_runs(columns, rows):
    frame((), 0, columns, rows, "waiting")
    many = [WatchedRun(f"run_{number}", "over") for number in range(200)]
    screen = plain(frame(many, 150, columns, rows, HEAD), width=max(columns, 60))
    assert "run_150" in screen


def test_a_run_that_cannot_be_read_is_not_said_to_be_pending(tmp_path, capsys):
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "run.json").write_text('{"written_by": "rlvitals", "format": 99}')
    (tmp_path / "whole").mkdir()
    shutil.copy(RUNS / "ppo-cartpole-healthy" / "run.csv", tmp_path / "whole")
    assert cli.main(["watch", str(tmp_path), "--once"]) == 0
    lines = capsys.readouterr().out.split("\n")
    (line,) = [line for line in lines if line.startswith(" unreadable newer")]
    assert "a run folder of format 99" in line
    assert not any("not judged yet" in line for line in lines[1:])


@pytest.mark.parametrize(
    ("selected", "texts"),
    [(0, ["9 more below"]), (6, ["4 more above", "5 more below"]), (12, ["9 more above"])],
)
def test_the_runs_that_have_no_room_are_counted(selected, texts):
    many = [WatchedRun(f"run_{number:02}", "over") for number in range(13)]
    lines = plain(frame(many, selected, 80, 24, HEAD), width=80).split("\n")
    assert sum("run_" in line for line in lines[1:5]) == 4
    assert lines[5] == f"── {', '.join(texts)} ".ljust(80, "─")
    few = plain(frame(many[:4], 0, 80, 24, HEAD), width=80).split("\n")
    assert few[5] == "─" * 80


def test_names_that_differ_at_their_ends_stay_apart():
    names = [f"CartPole-v1__ppo__{seed}__1795432785" for seed in (1, 2)]
    screen = plain(frame([WatchedRun(name, "over") for name in names], 0, 80, 24, HEAD), width=80)
    assert "1__1795432785" in screen
    assert "2__1795432785" in screen


@pytest.mark.parametrize("count", [1, 100, 100_000])
def test_a_single_spike_is_drawn(count):
    values = np.zeros(count)
    values[count // 3] = 1.0
    series = Series(np.arange(count) * 10, np.zeros(count), values)
    lines = braille.draw(series, 30, 5)
    assert [len(line) for line in lines] == [30] * 5
    if count > 1:
        assert any(ord(letter) > 0x2800 for letter in lines[0])


def test_curves_of_odd_numbers():
    steps = np.arange(6)
    for values in ([np.nan] * 6, [np.inf, 1, 2, -np.inf, 3, 4], [1e308, -1e308] * 3, [5.0] * 6):
        series = Series(steps, np.zeros(6), np.array(values, dtype=float))
        assert len(braille.draw(series, 10, 3)) == 3


def test_the_console_is_the_newest_file_s_end(tmp_path):
    assert read_console(tmp_path / "nowhere") == ()
    (tmp_path / "old.log").write_text("old\n")
    os.utime(tmp_path / "old.log", (1, 1))
    (tmp_path / "train.out").write_bytes(b"x" * 9000 + b"\none\n\ntwo\nthree\r 10%\r 20%\n\xff\n")
    assert read_console(tmp_path)[-3:] == ("two", " 20%", "\ufffd")


@pytest.mark.soak
def test_once_prints_a_frame_without_a_terminal(tmp_path):
    target = RUNS / "ppo-cartpole-healthy"
    command = [sys.executable, "-m", "rlvitals", "watch", str(target), "--once"]
    environ = {**os.environ, "COLUMNS": "80", "LINES": "24", "PYTHONWARNINGS": ""}
    out = subprocess.run(command, capture_output=True, text=True, env=environ, check=True).stdout
    lines = out.removesuffix("\n").split("\n")
    assert len(lines) == 24
    assert "learning" in lines[1]
    assert "ppo-cartpole-healthy" in lines[1]
    command[4] = str(tmp_path / "nothing")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 3


def test_keys_select_a_run_that_stays_selected():
    """The real program, driven without a terminal: keys, a new order, the end."""
    pytest.importorskip("textual")
    from rlvitals.views.watch_app import WatchApp

    runs = list(watched())
    app = WatchApp(lambda: (tuple(runs), HEAD, 0.1))

    async def use():
        async with app.run_test(size=(80, 24)) as pilot:
            while not app._runs:
                await pilot.pause(0.01)
            assert shown(app) == plain(frame(watched(), 0, 80, 24, HEAD), width=80)
            await pilot.press("down")
            assert shown(app) == plain(frame(watched(), 1, 80, 24, HEAD), width=80)
            runs.reverse()
            for _ in range(1000):
                await pilot.pause(0.01)
                if app._runs[0].name == "new":
                    break
            app._draw()
            assert shown(app) == plain(frame(watched()[::-1], 1, 80, 24, HEAD), width=80)
            await pilot.press("up", "up", "up")
            assert app._selected == "new"
            await pilot.press("q")
        assert app.return_code == 0

    asyncio.run(use())


def shown(app):
    return plain(app.query_one("#frame").content, width=80)
