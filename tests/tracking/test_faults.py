"""What may befall a recorded run: it never stops the loop, and says what is missing."""

import asyncio
import errno
import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from effort import cases
from recording_checks import happened, notes, points, scans, values
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.storage import blocks, write_buffer
from rlvitals.tracking import fastlog
from rlvitals.tracking import writer_thread as pumps
from rlvitals.tracking.sinks import selection, sink

FLUSH = 0.2  # seconds
SPAWNER = multiprocessing.get_context("forkserver")
SPAWNER.set_forkserver_preload(["rlvitals.tracking.start"])


both_ways = pytest.mark.usefixtures("way")
every_way = pytest.mark.parametrize(
    ("how", "way"),
    [("plain", "compiled"), ("plain", "python"), ("durable", "python")],
    indirect=["way"],
)


def script(code, *words, **more):
    """Start a Python of its own that runs `code`."""
    env = {**os.environ, "PYTHONPATH": str(Path(rlvitals.__file__).parents[1])}
    env.pop("PYTEST_CURRENT_TEST", None)
    whole = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    return subprocess.Popen(whole, env=env, text=True, **more)


def done(process):
    out, errors = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, out, errors


def loop(folder, how, pipe):
    """Log for ever, and tell each step that is logged."""
    os.environ[fastlog.COMPILED_VARIABLE] = "off" if how == "python" else "on"
    run = rlvitals.start(folder, durable=how == "durable", flush_seconds=FLUSH, strict=False)
    step = 0
    while True:
        step += 1
        run.log(step, {"a": step, "b": step * 0.5})
        os.write(pipe.fileno(), step.to_bytes(8, "little"))
        time.sleep(0.0005)


def killed(folder, how, after):
    """Kill a recording loop; return the last step it told, and how it fared with a reader."""
    told, pipe = SPAWNER.Pipe(duplex=False)
    process = SPAWNER.Process(target=loop, args=(folder, how, pipe), daemon=True)
    process.start()
    pipe.close()
    last = os.read(told.fileno(), 8)
    path, cursor, seen = folder / "blocks" / "1-0.rlv", None, 0
    begun = time.monotonic()
    while time.monotonic() < begun + after:
        found = blocks.scan(path, cursor)
        cursor = found.cursor
        assert not found.damage
        seen += sum(len(part.steps) for part in found.scalars)
        time.sleep(0.01)
    process.kill()
    process.join()
    while more := os.read(told.fileno(), 1 << 16):
        last = more[-8:]
    told.close()
    process.close()
    return int.from_bytes(last, "little"), seen


def check_killed(folder, how, after):
    told, seen = killed(folder, how, after)
    found = points(folder).get("a", [])
    assert found == [(step, float(step)) for step in range(1, len(found) + 1)]
    assert len(found) >= seen, "what a reader has seen stays"
    if how == "durable":
        assert len(found) >= told
    else:
        # Steps take 0.5 ms at least; the thread may wait for a core as long again.
        assert len(found) >= told - 2 * FLUSH / 0.0005


MOMENTS = np.random.default_rng(5).uniform(0.01, 0.4, 500)


@pytest.mark.parametrize("how", ["plain", "python"])
@pytest.mark.parametrize("after", MOMENTS[: cases(6, 15)].round(3))
def test_killed_at_any_moment_every_flushed_block_is_read(tmp_path, after, how):
    check_killed(tmp_path, how, after)


@pytest.mark.parametrize("after", MOMENTS[20 : cases(24, 30)].round(3))
def test_killed_at_any_moment_a_durable_run_has_every_row(tmp_path, after):
    check_killed(tmp_path, "durable", after)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["plain", "python", "durable"])
@pytest.mark.parametrize("after", MOMENTS[250:].round(4))
def test_killed_at_500_moments(tmp_path, after, how):
    check_killed(tmp_path, how, after)


def test_a_killed_run_goes_on_as_a_second_attempt(tmp_path):
    told, _ = killed(tmp_path, "durable", 0.1)
    with rlvitals.start(tmp_path) as run:
        assert run.attempt == 2
        run.log(told, {"a": -1.0})
    assert points(tmp_path, "2-0") == {"a": [(told, -1.0)]}
    starts = happened(tmp_path, "start")
    assert [event.facts["resumed"] for event in starts] == [False, True]


@pytest.fixture
def full(monkeypatch):
    """A disk that takes `room` bytes more of block files: a write ends in the middle of a block."""
    state = {"room": None}
    write = write_buffer._write

    def limited(fd, parts):
        if state["room"] is None:
            return write(fd, parts)
        if not state["room"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = write(fd, [b"".join(parts)[: state["room"]]])
        state["room"] -= taken
        return taken

    monkeypatch.setattr(write_buffer, "_write", limited)
    return state


@both_ways
def test_a_full_disk_and_then_space_again(tmp_path, full):
    run = rlvitals.start(tmp_path, strict=False)
    for step in range(300):
        if step == 100:
            full["room"] = 777
        if step == 200:
            full["room"] = None
        run.log(step, {"x": step})
        if step % 10 == 9:
            run.flush()
    run.finish()
    assert points(tmp_path)["x"] == [(step, float(step)) for step in range(300)]
    ((text, count),) = notes(tmp_path).items()
    assert text == "the disk takes no rows: No space left on device"
    assert count >= 5


def test_a_disk_that_is_full_for_too_long_loses_the_oldest_and_says_how_many(
    tmp_path, full, monkeypatch
):
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 20_000)
    run = rlvitals.start(tmp_path, strict=False)
    run.log(0, {"x": 0})
    run.flush()
    full["room"] = 100
    for step in range(1, 2001):
        run.log(step, {"x": step})
        if step % 20 == 0:
            run.flush()
    full["room"] = None
    run.log(2001, {"x": 2001})
    run.finish()
    found = points(tmp_path)["x"]
    assert found[0] == (0, 0.0)
    assert found[-1] == (2001, 2001.0)
    lost = 2002 - len(found)
    assert lost > 1000
    assert notes(tmp_path)["rows lost: the disk was full for too long"] == lost


@both_ways
@every_way
def test_a_real_disk_that_is_full(tmp_path, how):
    process = script(
        """
        import resource, signal, sys, rlvitals
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        run = rlvitals.start(sys.argv[1], durable=sys.argv[2] == "durable")
        run.log(1, {"x": 1.0})
        run.flush()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        for step in range(2, 300):
            run.log(step, {"x": step})
        run.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        run.log(300, {"x": 300.0})
        run.finish()
        """,
        tmp_path,
        how,
        stderr=subprocess.PIPE,
    )
    code, _, errors = done(process)
    assert code == 0
    (line,) = errors.splitlines()
    assert line.startswith("the disk takes no rows: File too large (up to 256 MiB wait in memory)")
    assert points(tmp_path)["x"] == [(step, float(step)) for step in range(1, 301)]
    assert any("the disk takes no rows" in text for text in notes(tmp_path))


def test_a_durable_row_is_with_the_system_before_the_call_returns(tmp_path, monkeypatch):
    waits, through = [], pumps.WriterThread.wait_durable
    monkeypatch.setattr(
        pumps.WriterThread, "wait_durable", lambda pump: (waits.append(1), through(pump))
    )
    run = rlvitals.start(tmp_path, durable=True, sinks=["jsonl"], flush_seconds=60)
    waits.clear()
    for step in range(200):
        run.log(step, {"x": step, "y": np.float32(0.5)} if step % 2 else {"z": {"x": step}})
        (*_, last) = scans(tmp_path)["1-0"].scalars
        assert last.steps.tolist() == [step]
    assert len(waits) < 20, "a row that waits for another thread is rare"
    run.log(200, {})
    run.event("checkpoint", 3)
    run.finish()
    assert all(part.keys for part in scans(tmp_path)["1-0"].scalars), "nothing logged, no block"
    assert points(tmp_path)["z/x"] == [(step, float(step)) for step in range(0, 200, 2)]
    (told,) = (tmp_path / "metrics").glob("*.jsonl")
    lines = map(json.loads, told.read_text().splitlines())
    rows = [line for line in lines if {"x", "z/x"} & set(line)]
    assert sorted(row["step"] for row in rows) == list(range(200))
    assert all(row.get("x", row.get("z/x")) == row["step"] for row in rows)


def test_a_folder_that_cannot_be_written(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with pytest.raises(rlvitals.VitalsError, match="nothing is recorded"):
        rlvitals.start(blocker / "run")
    with pytest.warns(RuntimeWarning, match="nothing is recorded"):
        run = rlvitals.start(blocker / "run", strict=False)
    run.log(1, {"x": 1.0})
    run.finish()


def test_a_folder_that_is_gone_stops_nothing(tmp_path):
    folder = tmp_path / "run"
    run = rlvitals.start(folder, strict=False)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()
    run.log(1, {"x": 1.0})
    run.event("checkpoint", 1)
    assert not run.requests().stop
    run.finish()
    assert values(folder, "x") == [1.0]
    assert any("files of the run folder were removed" in note for note in notes(folder))


@both_ways
def test_two_processes_on_one_folder_are_two_attempts_and_both_whole(tmp_path):
    code = """
        import sys, rlvitals
        run = rlvitals.start(sys.argv[1])
        for step in range(5000):
            run.log(step, {"x": run.attempt * 10000 + step})
        run.finish()
    """
    both = [script(code, tmp_path) for _ in range(2)]
    assert [done(process)[0] for process in both] == [0, 0]
    for attempt in (1, 2):
        found = points(tmp_path, f"{attempt}-0")["x"]
        assert found == [(step, attempt * 10000.0 + step) for step in range(5000)]


@both_ways
def test_a_fork_writes_nothing_of_its_parent_and_is_refused(tmp_path):
    process = script(
        """
        import os, sys, rlvitals
        run = rlvitals.start(sys.argv[1])
        for step in range(100):
            run.log(step, {"x": step})
        child = os.fork()
        for step in range(100, 200):
            run.log(step, {"x": step})
        if child:
            assert os.waitpid(child, 0)[1] == 0
        run.finish()
        """,
        tmp_path,
        stderr=subprocess.PIPE,
    )
    assert done(process) == (0, None, "")
    assert points(tmp_path)["x"] == [(step, float(step)) for step in range(200)]
    assert len(happened(tmp_path, "finish")) == 1
    ((text, count),) = notes(tmp_path).items()
    assert text == "a forked process logged: its rows are not recorded"
    assert count == 1


@both_ways
def test_multiprocessing(tmp_path):
    process = script(
        """
        import multiprocessing, sys, rlvitals

        def work(run):
            run.log(5, {"x": 5.0})

        if __name__ == "__main__":
            run = rlvitals.start(sys.argv[1])
            run.log(1, {"x": 1.0})
            fork = multiprocessing.get_context("fork")
            child = fork.Process(target=work, args=(run,))
            child.start()
            child.join()
            assert child.exitcode == 0
            try:
                multiprocessing.get_context("spawn").Process(target=work, args=(run,)).start()
            except rlvitals.UsageError as error:
                print(error.problem)
            run.log(2, {"x": 2.0})
            run.finish()
        """,
        tmp_path,
        stdout=subprocess.PIPE,
    )
    assert done(process)[:2] == (0, "a run cannot be sent to another process\n")
    assert points(tmp_path)["x"] == [(1, 1.0), (2, 2.0)]


def test_spawned_processes_with_ranks_of_their_own_are_one_attempt(tmp_path):
    code = """
        import os, sys, time, rlvitals
        run = rlvitals.start(sys.argv[1])
        run.log(1, {"x": run.rank})
        run.finish()
    """
    env = {"WORLD_SIZE": "3", "MASTER_ADDR": "here", "MASTER_PORT": "29500"}
    os.environ |= env
    try:
        ranks = []
        for rank in (2, 0, 1):
            os.environ["RANK"] = str(rank)
            ranks.append(script(code, tmp_path))
        assert [done(process)[0] for process in ranks] == [0, 0, 0]
    finally:
        for name in (*env, "RANK"):
            del os.environ[name]
    assert sorted(scans(tmp_path)) == ["1-0", "1-1", "1-2"]
    assert points(tmp_path, "1-2") == {"x": [(1, 2.0)]}


@both_ways
def test_threads(tmp_path):
    run = rlvitals.start(tmp_path, strict=False, flush_seconds=0.05)
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        for step in range(5000):
            run.log(step, {f"x{number}": step, "y": number})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.finish()
    found = points(tmp_path)
    for number in range(8):
        assert found[f"x{number}"] == [(step, float(step)) for step in range(5000)]
    assert len(found["y"]) == 40_000


@both_ways
def test_asyncio(tmp_path):
    run = rlvitals.start(tmp_path, strict=False)

    async def work(number):
        for step in range(50):
            run.log(step, {f"x{number}": step})
            await asyncio.sleep(0)

    async def everything():
        await asyncio.gather(*(work(i) for i in range(10)))

    asyncio.run(everything())
    run.finish()
    assert all(len(points(tmp_path)[f"x{i}"]) == 50 for i in range(10))


@both_ways
@every_way
def test_interrupted_in_the_middle_of_a_log(tmp_path, how):
    process = script(
        """
        import os, signal, sys, rlvitals
        run = rlvitals.start(sys.argv[1], durable=sys.argv[2] == "durable")
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        armed = False
        caught = step = 0

        def interrupt(*_):
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        while caught < 30:
            try:
                armed = True
                while True:
                    step += 1
                    run.log(step, {"x": step, "in": {"y": 1}} if step % 2 else {"x": step})
            except KeyboardInterrupt:
                caught += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        run.finish()
        print(step)
        """,
        tmp_path,
        how,
        stdout=subprocess.PIPE,
    )
    code, out, _ = done(process)
    assert code == 0
    steps = [step for step, _ in points(tmp_path)["x"]]
    assert steps == sorted(set(steps)), "nothing is written twice"
    assert len(steps) >= int(out) - 30, "nothing but the interrupted call is missing"


@both_ways
@every_way
def test_a_signal_s_handler_may_log_and_finish(tmp_path, how):
    process = script(
        """
        import os, signal, sys, rlvitals
        run = rlvitals.start(sys.argv[1], durable=sys.argv[2] == "durable")

        def handler(number, frame):
            run.log(10**6, {"x": -1.0, "in": {"y": 1}})
            run.event("signal", number=number)
            run.finish("stopped")
            os._exit(3)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        step = 0
        while True:
            step += 1
            run.log(step, {"x": step, "in": {"y": 1}} if step % 2 else {"x": step})
        """,
        tmp_path,
        how,
        stdout=subprocess.PIPE,
    )
    begun = time.monotonic()
    assert done(process)[0] == 3
    assert time.monotonic() < begun + HANG_SECONDS
    found = points(tmp_path)["x"]
    assert (10**6, -1.0) in found
    steps = [step for step, _ in found if step < 10**6]
    assert steps == list(range(1, len(steps) + 1))
    assert happened(tmp_path, "finish")[0].facts["status"] == "stopped"


@both_ways
def test_the_interpreter_s_exit_finishes_a_run(tmp_path):
    code = """
        import sys, rlvitals
        run = rlvitals.start(sys.argv[1])
        run.log(1, {"x": 1.0})
        if sys.argv[2] == "raise":
            raise ValueError("no such thing")
        sys.exit(int(sys.argv[2]))
    """
    for i, (word, status) in enumerate([("0", "exiting"), ("raise", "failed")]):
        folder = tmp_path / str(i)
        done(script(code, folder, word, stderr=subprocess.DEVNULL))
        assert points(folder)["x"] == [(1, 1.0)]
        (end,) = happened(folder, "finish")
        assert end.facts["status"] == status
        assert ("no such thing" in end.facts.get("traceback", "")) == (status == "failed")


class Broken:
    """A sink that fails, or hangs, at whatever is named."""

    def __init__(self, wrong, how="raise"):
        self.wrong, self.how = wrong, how
        self.taken = []

    def __getattr__(self, name):
        def call(*args):
            if name in self.wrong:
                if self.how == "hang":
                    time.sleep(1000)
                raise ConnectionError(f"no {name}")
            self.taken.append((name, args))

        return call


@pytest.fixture
def beside(monkeypatch):
    """Start a run with a sink of the test's own."""

    def start(folder, writing, **more):
        one = sink.Sink("beside", "a test's own", "", lambda _: writing)
        monkeypatch.setattr(selection, "find", {"beside": one}.get)
        monkeypatch.setattr(selection, "SINK_MODULES", ("beside",))
        return rlvitals.start(folder, sinks=["beside"], strict=False, **more)

    return start


@both_ways
def test_a_sink_takes_all_that_is_logged_in_order(tmp_path, beside):
    writing = Broken(())
    run = beside(tmp_path, writing, settings={"lr": 1})
    for step in range(10):
        run.log(step, {"x": step})
    run.log_text(3, "t", "text")
    run.update_settings({"lr": 2})
    run.finish("stopped")
    names = [name for name, _ in writing.taken]
    rows = [args[0] for name, args in writing.taken if name == "scalars"]
    assert [step for part in rows for step in part.steps] == list(range(10))
    assert rows[0].values.shape == (len(rows[0].steps), 1)
    assert {"text", "settings", "event"} <= set(names)
    assert writing.taken[-1] == ("close", ("stopped",))


def test_a_dead_sink_is_counted_and_costs_the_others_nothing(tmp_path, beside):
    run = beside(tmp_path, Broken(("scalars", "flush", "close")))
    for step in range(10):
        run.log(step, {"x": step})
        run.flush()
    run.finish()
    assert len(values(tmp_path, "x")) == 10
    assert notes(tmp_path)["sink beside: ConnectionError: no scalars"] == 10
    assert notes(tmp_path)["sink beside: ConnectionError: no close"] == 1


def test_a_sink_that_hangs_holds_up_nothing(tmp_path, beside, monkeypatch):
    monkeypatch.setattr("rlvitals.tracking.sink_worker.SINK_CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 20_000)
    run = beside(tmp_path, Broken(("scalars",), "hang"))
    for step in range(100):
        run.log(step, {"x": step})
        assert run.flush()
    run.finish()
    assert len(values(tmp_path, "x")) == 100
    assert any("did not close" in text for text in notes(tmp_path))
    assert any("too slow" in text for text in notes(tmp_path))


def test_an_unknown_sink_is_named(tmp_path):
    with pytest.raises(rlvitals.UsageError, match="no sink is called 'nativ'") as error:
        rlvitals.start(tmp_path, sinks=["nativ"])
    assert error.value.hint == "did you mean native?"


@both_ways
def test_a_disk_that_blocks_keeps_the_loop_going_and_counts_what_it_loses(tmp_path, monkeypatch):
    monkeypatch.setattr(write_buffer, "MAX_PENDING_BYTES", 600_000)
    monkeypatch.setenv("RLVITALS_RECORDING_MACHINE_SECONDS", "0")
    gate = threading.Event()
    write = write_buffer._write

    def stuck(fd, parts):
        gate.wait()
        return write(fd, parts)

    run = rlvitals.start(tmp_path, strict=False)
    monkeypatch.setattr(write_buffer, "_write", stuck)
    run.log(0, {"x": 0})
    while not run._pump._is_blocked:
        time.sleep(0.01)
    for step in range(1, 20_000):  # ends, though the disk takes nothing
        run.log(step, {"x": step})
    gate.set()
    run.finish()
    lost = notes(tmp_path)["rows lost: the disk blocked for too long"]
    assert len(values(tmp_path, "x")) + lost == 20_000
    assert lost > 10_000


@both_ways
def test_saturated_nothing_is_lost(tmp_path):
    run = rlvitals.start(tmp_path, strict=False)
    for step in range(50_000):
        run.log(step, {"x": step})
    run.finish()
    assert values(tmp_path, "x") == list(map(float, range(50_000)))
    assert notes(tmp_path) == {}
