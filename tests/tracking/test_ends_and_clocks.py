"""Processes that end without a word, clocks that jump, cancelled loops, hours of logging."""

import asyncio
import csv
import gc
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import psutil
import pyarrow.parquet
import pytest
from recording_checks import happened, notes, points, scans, values
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from test_faults import SPAWNER, both_ways, done, script

import rlvitals
from rlvitals.settings import Recording
from rlvitals.tracking import run as runs

LONG = 600.0  # seconds: no test depends on how busy the machine is
SINKS = ("csv", "jsonl", "tensorboard", "parquet")


@both_ways
def test_a_fork_that_ends_at_once_harms_nothing(tmp_path):
    process = script(
        """
        import os, sys, rlvitals
        LONG = 600
        run = rlvitals.start(sys.argv[1], sinks=["csv", "jsonl"])
        for step in range(300):
            run.log(step, {"x": step})
            if step % 100 == 50:
                child = os.fork()
                if not child:
                    run.log(step, {"x": -1.0})
                    run.note("from a child")
                    run.flush(LONG)
                    run.finish("of a child")
                    os._exit(5)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        assert run.flush(LONG)
        os._exit(3)
        """,
        tmp_path,
        stderr=subprocess.PIPE,
    )
    assert done(process) == (3, None, "")
    assert points(tmp_path)["x"] == [(step, float(step)) for step in range(300)]
    assert happened(tmp_path, "finish") == []
    with rlvitals.start(tmp_path) as run:
        assert run.attempt == 2


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_wall_clock_that_jumps_changes_times_alone(tmp_path, monkeypatch, jump):
    monkeypatch.setenv("RLVITALS_COMPILED", "off")
    run = rlvitals.start(tmp_path, strict=False)
    for step in range(100):
        run.log(step, {"x": step})
    assert run.flush(LONG)
    real = time.time
    monkeypatch.setattr(runs, "_now", lambda: real() + jump)
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    for step in range(100, 200):
        run.log(step, {"x": step})
    assert run.flush(LONG)
    run.finish()
    assert values(tmp_path, "x") == list(map(float, range(200)))
    times = np.concatenate([part.times for part in scans(tmp_path)["1-0"].scalars])
    assert abs(times[100] - times[99] - jump) < 3600
    assert notes(tmp_path) == {}


@both_ways
def test_cancelled_tasks_and_a_closed_loop(tmp_path):
    run = rlvitals.start(tmp_path, strict=False)

    async def work(number):
        for step in range(10**6):
            run.log(step, {f"x{number}": step})
            await asyncio.sleep(0)

    async def everything():
        tasks = [asyncio.create_task(work(i)) for i in range(5)]
        for _ in range(200):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ends = asyncio.run(everything())
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    run.log(7, {"after": 1.0})
    assert run.flush(LONG)
    run.finish()
    found = points(tmp_path)
    for number in range(5):
        steps = [step for step, _ in found[f"x{number}"]]
        assert steps == list(range(len(steps)))
        assert len(steps) >= 199
    assert found["after"] == [(7, 1.0)]


@pytest.mark.soak  # its count of objects takes a minute beside torch
@both_ways
def test_hours_of_logging_keep_no_object(tmp_path):
    run = rlvitals.start(tmp_path, strict=False, sinks=["csv", "jsonl", "tensorboard"])

    def some(first):
        for step in range(first, first + 500):
            run.log(step, {"x": step, "y": np.float32(step)})
            run.log(step, {"in": {"z": step}, "none": None})
        run.log_text(first, "text", "some text")
        run.log_histogram(first, "histogram", np.arange(10.0))
        run.log_table(first, "table", {"a": [1, 2]})
        run.event("checkpoint", first)
        run.note("a note")
        assert run.flush(LONG)
        while run._pump.budget.used:  # of the sinks beside
            time.sleep(0.01)
        gc.collect()
        return len(gc.get_objects())

    before = [some(500 * i) for i in range(6)][-1]
    after = [some(500 * i) for i in range(6, 26)][-1]
    assert after - before < 200, "20,000 rows and 100 other calls"
    run.finish()


@pytest.mark.soak
def test_memory_over_five_minutes(tmp_path):
    run, process = rlvitals.start(tmp_path, strict=False, sinks=["csv"]), psutil.Process()
    until, begun, found, step = time.monotonic() + 300, None, [], 0
    while time.monotonic() < until:
        for _ in range(100):
            step += 1
            run.log(step, {f"m{i}": step for i in range(20)})
        time.sleep(0.05)
        if step % 5000 == 0:
            found.append(process.memory_info().rss)
            begun = begun or found[-1]
    run.finish()
    half = len(found) // 2
    assert np.median(found[half:]) - np.median(found[half // 2 : half]) < 10e6, found


def test_a_default_run_hands_its_rows_to_the_system_five_times_a_second(tmp_path):
    assert Recording().flush_seconds < 0.2
    run = rlvitals.start(tmp_path, strict=False)
    for step in range(3):
        run.log(step, {"x": step})
        while (step, float(step)) not in points(tmp_path).get("x", []):
            time.sleep(0.01)
    run.finish()


def loop(folder, pipe):
    run = rlvitals.start(folder, sinks=SINKS, flush_seconds=0.02, strict=False)
    step = 0
    while True:
        run.log(step, {"x": step, "y": step / 3})
        if step % 50 == 0:
            run.flush(LONG)
            os.write(pipe.fileno(), b"x")
        while step == 100 and not list(folder.rglob("[!.]*.parquet")):
            time.sleep(0.01)  # it loads pyarrow first
        step += 1
        time.sleep(0.0002)


def killed_with_sinks(folder, words):
    heard, pipe = SPAWNER.Pipe(duplex=False)
    process = SPAWNER.Process(target=loop, args=(folder, pipe), daemon=True)
    process.start()
    pipe.close()
    for _ in range(words):
        assert os.read(heard.fileno(), 1)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    heard.close()


def sink_steps(folder):
    """The steps that each sink's files hold, in their order; a torn file raises."""
    lines = [path.read_bytes() for path in sorted((folder / "metrics").glob("*.jsonl"))]
    whole = [json.loads(line) for text in lines for line in text.splitlines()]
    texts = [path.read_text() for path in (folder / "metrics").glob("*.csv")]
    tables = [list(csv.reader(text.splitlines())) for text in texts]
    assert all(len(row) == len(table[0]) for table in tables for row in table)
    events = [
        event.step
        for path in (folder / "tensorboard").glob("events.*")
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
        if value.tag == "x"
    ]
    parts = sorted(path for path in folder.rglob("*.parquet") if not path.name.startswith("."))
    packed = [pyarrow.parquet.read_table(path).to_pydict() for path in parts]
    return {
        "jsonl": [line["step"] for line in whole if "x" in line],
        "csv": [int(row[0]) for table in tables if table and "x" in table[0] for row in table[1:]],
        "tensorboard": events,
        "parquet": [step for part in packed if "x" in part for step in part["step"]],
    }


def check_killed_with_sinks(tmp_path, words):
    killed_with_sinks(tmp_path, words)
    native = [step for step, _ in points(tmp_path)["x"]]
    assert native == list(range(len(native)))
    assert len(native) > 50 * (words - 1)
    for name, steps in sink_steps(tmp_path).items():
        assert steps == list(range(len(steps))), name
        assert len(steps) <= len(native) + 1000, name


@pytest.mark.parametrize("words", [1, 2, 4, 7])
def test_killed_each_sink_s_files_are_whole_up_to_somewhere(tmp_path, words):
    check_killed_with_sinks(tmp_path, words)


@pytest.mark.soak
@pytest.mark.parametrize("words", range(1, 41))
def test_killed_40_times_with_sinks(tmp_path, words):
    check_killed_with_sinks(tmp_path, words % 13 + 1)


def test_sinks_whose_files_are_removed_say_so(tmp_path, caplog):
    run = rlvitals.start(tmp_path / "run", sinks=["csv", "jsonl", "tensorboard"], strict=False)
    for step in range(100):
        run.log(step, {"x": step})
    assert run.flush(LONG)
    while run._pump.budget.used:
        time.sleep(0.01)
    shutil.rmtree(tmp_path / "run")
    for step in range(100, 200):
        run.log(step, {"x": step})
    assert run.flush(LONG), "of the run folder"
    run.finish()
    assert values(tmp_path / "run", "x") == list(map(float, range(200)))
    for name in ("csv", "jsonl", "tensorboard"):
        assert any(f"sink {name}: " in text and "removed" in text for text in caplog.messages)
