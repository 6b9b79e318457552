"""A run has one duration, wherever it is printed, and it is that of the run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals.diagnosis.duration import clock, training_time
from rlvitals.metrics.catalogue.throughput import ELAPSED, STEP_TIME
from rlvitals.types import Series, Trace

EXAMPLES = Path(rlvitals.__file__).parents[2] / "examples"
NONE = np.full(5, np.nan)
STEPS = np.arange(100, 600, 100)


def monitor(folder, name, started, *attempts, header=True):
    """Write a Monitor file: each attempt is (seconds after `started`, its episodes' times)."""
    lines = []
    for after, times in attempts:
        if header:
            lines.append(f'#{{"t_start": {started + after}, "env_id": "CartPole-v1"}}')
        lines += ["r,l,t", *(f"10.0,10,{t}" for t in times)]
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.monitor.csv").write_text("\n".join(lines) + "\n")


def loaded(folder):
    return rlvitals.diagnose(folder).trace


def true_span(folder):
    """Return the seconds from the first environment's start to the last episode's end."""
    starts, ends = [], []
    for file in folder.glob("*.monitor.csv"):
        head, _, *rows = file.read_text().splitlines()
        starts.append(json.loads(head[1:])["t_start"])
        ends.append(starts[-1] + float(rows[-1].rpartition(",")[2]))
    return max(ends) - min(starts)


@pytest.mark.parametrize("name", ["failing", "healthy"])
def test_the_example_has_one_duration(name, capsys):
    from rlvitals.cli import main

    span = true_span(EXAMPLES / name)
    assert training_time(loaded(EXAMPLES / name))[0] == pytest.approx(span, abs=0.01)
    main(["status", str(EXAMPLES / name)])
    told = re.search(r"trained +(\d+) s", capsys.readouterr().out)
    assert int(told[1]) == round(span)
    summed = re.search(r"Training time: (\d+) s,", rlvitals.lab.summarise(EXAMPLES / name))
    assert int(summed[1]) == round(span)


def test_clocks_of_parallel_environments_are_not_added_up(tmp_path):
    ends = np.arange(1.0, 101.0)
    for i in range(3):  # environments that are made half a second apart
        monitor(tmp_path / "run", i, 1000.0 + 0.5 * i, (0.0, ends))
    assert training_time(loaded(tmp_path / "run"))[0] == pytest.approx(101.0)


def test_attempts_of_parallel_environments_are_added_and_their_pause_is_not(tmp_path):
    ends = np.arange(1.0, 101.0)
    for i in range(3):
        monitor(tmp_path / "run", i, 1000.0 + 0.5 * i, (0.0, ends), (5000.0, ends[:50]))
    assert training_time(loaded(tmp_path / "run"))[0] == pytest.approx(101.0 + 51.0)


def test_clocks_without_a_start_are_not_merged(tmp_path):
    for i in range(2):
        monitor(tmp_path / "run", i, 0.0, (0.0, np.arange(1.0, 31.0)), header=False)
    trace = loaded(tmp_path / "run")
    assert "outcome/return" in trace
    assert ELAPSED.name not in trace
    assert training_time(trace)[0] is None


def test_a_single_environment_counts_its_own_seconds(tmp_path):
    monitor(tmp_path / "run", 0, 1000.0, (0.0, np.arange(1.0, 31.0)), (900.0, [2.0, 4.0]))
    assert training_time(loaded(tmp_path / "run"))[0] == pytest.approx(34.0)


def logged(metric, values, times=NONE, **settings):
    return Trace({metric: Series(STEPS, times, np.array(values, float))}, {}, settings)


@pytest.mark.parametrize(
    ("trace", "seconds", "source"),
    [
        (logged(ELAPSED.name, [10, 20, 30, 40, 50]), 50, "its log"),
        (logged(ELAPSED.name, [10, 20, 30, 5, 15]), 45, "its log"),  # a second attempt
        (logged(ELAPSED.name, [10, 20, 19.9, 30, 40]), 40.1, "its log"),  # a clock set back
        (logged(ELAPSED.name, [10, 20, 30, 9000, 9010]), 40, "its log"),  # with a pause
        (logged("x/y", STEPS, 7.0 + STEPS), 400, "the times of its rows"),
        (logged("x/y", STEPS, 7.0 + STEPS, train_runtime=450), 450, "its log"),
        (logged(STEP_TIME.name, [0.1] * 5), 50, "the times of its steps"),
    ],
)
def test_the_duration_of_a_log(trace, seconds, source):
    assert training_time(trace) == (pytest.approx(seconds), source)


def test_a_log_without_times_has_no_duration():
    trace = logged("x/y", STEPS)
    assert clock(trace) is None
    assert training_time(trace)[0] is None


@pytest.mark.parametrize("count", [1000, 1001, 1003, 1537])
def test_a_large_run_is_added_up_in_parts(count):
    rng = np.random.default_rng(count)
    gaps = rng.choice([1.0, 2.0, -3.0, 5000.0], count, p=[0.6, 0.38, 0.01, 0.01])
    rows = Series(np.arange(count), 1e9 + np.cumsum(gaps), np.ones(count))
    trace = Trace({"outcome/return": rows}, {})
    full = clock(trace)
    parts = clock(trace, max_rows=100)
    assert len(parts) <= 101
    assert parts.steps[-1] == count - 1
    np.testing.assert_allclose(parts.values, full.values[parts.steps])
