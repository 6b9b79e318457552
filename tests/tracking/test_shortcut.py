"""The compiled way to log: what comes out is what the method in Python would have made of it."""

import copy
import gc
import inspect
import math
import pickle
import subprocess
import sys
import textwrap
import time
import tracemalloc
import weakref
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
from effort import cases, sampled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording_checks import happened, notes, points, values

import rlvitals
from rlvitals.tracking import fastlog, tensors
from rlvitals.tracking import run as runs
from rlvitals.tracking.row_batches import ROW_FIELDS, Batcher
from rlvitals.tracking.warnings_log import Notes

pytestmark = [
    pytest.mark.skipif(fastlog.load_shortcut() is None, reason=fastlog.NOT_BUILT),
    pytest.mark.usefixtures("way"),
    pytest.mark.parametrize("way", ["compiled"], indirect=True),
]
SEVERAL = {"loss": 0.5, "kl": 2, "done": True}
LONG = 1000.0  # seconds between flushes: none comes by itself


class Half(float):
    """A float of one's own."""


class HalfArray(np.float64):
    """A numpy scalar of one's own."""


class Name(str):
    """A string of one's own."""

    __slots__ = ()


@pytest.fixture
def run(tmp_path):
    with rlvitals.start(tmp_path / "run", strict=False, flush_seconds=LONG) as begun:
        yield begun


class Direct:
    """The compiled code, and what it hands on to the method or waits for."""

    def __init__(self, limit=10**9):
        self.rows, self.calls, self.waits = [], [], 0
        made = fastlog.load_shortcut()
        self.short = made(
            self.rows, limit, self.catch_up, self.method, tuple(tensors.IMMUTABLE_TYPES)
        )
        self.log = self.short.log

    def catch_up(self):
        self.waits += 1

    def method(self, *args, **named):
        self.calls.append((args, named))

    def taken(self):
        """Return the queue's rows as (step, {name: number}) and empty it."""
        self.short.move()
        flat, self.rows[:] = self.rows[:], []
        fields = zip(*(flat[i::ROW_FIELDS] for i in range(ROW_FIELDS)), strict=True)
        return [
            (step, dict(zip(names, memoryview(row).cast("d"), strict=True)))
            for step, _, row, names in fields
        ]


def test_a_run_logs_by_it_unless_it_is_strict_or_durable(tmp_path, monkeypatch):
    def is_compiled(**how):
        with rlvitals.start(tmp_path, **how) as begun:
            assert begun.compiled == inspect.isbuiltin(begun.log)
        assert happened(tmp_path, "start")[-1].facts["compiled"] == begun.compiled
        return begun.compiled

    assert is_compiled(strict=False)
    assert not is_compiled(strict=True)
    assert not is_compiled(strict=False, durable=True)
    for word in ("off", "OFF", "0", "false", "no"):
        monkeypatch.setenv("RLVITALS_COMPILED", word)
        assert not is_compiled(strict=False)


def test_plain_rows_are_taken_and_nothing_else():
    direct = Direct()
    taken = [SEVERAL, {"a": math.nan}, {"a": -1}, {"a": 2**70}, {"a": -0.0}, {"b": -1.0, "a": 1}]
    taken += [{"a": kind(1)} for kind in tensors.IMMUTABLE_TYPES]
    taken += [{"a": np.float32(0.1)}, {"a": np.uint64(2**64 - 1)}, {"a": np.float64("nan")}]
    for step, row in enumerate(taken):
        direct.log(step - 1, row)
    refused = [{}, {"a": None}, {"a": "1"}, {"a": 10**400}, {"a": Half(1)}, {"a": HalfArray(1)},
               {"a": 1j}, {1: 1.0}, {Name("a"): 1.0}, OrderedDict(a=1.0), {"a": {"b": 1.0}}, [], 1,
               None, {str(i): i for i in range(257)}]  # fmt: skip
    for row in refused:
        direct.log(3, row)
    for step in (True, 2**63, -(2**63) - 1, 1.0, "1", None, np.int64(1)):
        direct.log(step, SEVERAL)
    assert len(direct.calls) == len(refused) + 7
    expected = [{key: float(value) for key, value in row.items()} for row in taken]
    assert repr(direct.taken()) == repr(list(enumerate(expected, -1)))


def test_a_row_is_taken_in_either_order():
    direct = Direct()
    direct.log(1, SEVERAL)
    direct.log(SEVERAL, 2)
    direct.log(SEVERAL, step=3)
    direct.log(SEVERAL, **{str(b"step", "ascii"): 4})  # not interned
    assert direct.calls == []
    assert direct.taken() == [(step, SEVERAL) for step in (1, 2, 3, 4)]


def test_every_other_call_reaches_the_method_as_it_was_made():
    direct = Direct()
    wrong = [
        ((SEVERAL,), {}), ((), {"step": SEVERAL}), ((), {"metrics": SEVERAL}), ((5, 6), {}),
        ((5,), {"step": SEVERAL}), ((5,), {"metrics": SEVERAL}), ((SEVERAL,), {"steps": 5}),
        ((SEVERAL,), {"ste": 5}), ((SEVERAL,), {"tokens": 5}), ((SEVERAL,), {"step": None}),
        ((SEVERAL,), {"step": True}), ((SEVERAL,), {"step": 2**63}), ((SEVERAL, SEVERAL), {}),
        ((SEVERAL, 5), {"step": 6}), ((), {"metrics": SEVERAL, "step": 5}),
    ]  # fmt: skip
    for args, named in wrong:
        direct.log(*args, **named)
    assert direct.calls == wrong
    direct.calls.clear()
    direct.log(step=1, metrics=SEVERAL)
    direct.log(2, SEVERAL, None)
    direct.log(3, SEVERAL, time=4.0)
    direct.log(4)
    direct.log()
    direct.log(5, SEVERAL, nonsense=True)
    assert direct.calls == [
        ((), {"step": 1, "metrics": SEVERAL}),
        ((2, SEVERAL, None), {}),
        ((3, SEVERAL), {"time": 4.0}),
        ((4,), {}),
        ((), {}),
        ((5, SEVERAL), {"nonsense": True}),
    ]
    assert direct.taken() == []


def numbers():
    whole = st.one_of(st.integers(), st.sampled_from([10**400, -(2**1024), 2**53 + 1]))
    odd = st.one_of(
        st.none(), st.text(max_size=3), st.floats().map(np.float64), st.floats(width=32).map(Half),
        st.floats(width=32).map(np.float32), st.complex_numbers(), st.just(np.bool_(True)),
    )  # fmt: skip
    plain = st.one_of(st.floats(), whole, st.booleans())
    return st.one_of(plain, plain, plain, odd)


NAMES = st.sampled_from(["a", "b", "c/d", "c", "\u00e9", "\U0001f600"])
ROWS = st.one_of(
    st.dictionaries(NAMES, numbers(), max_size=4),
    st.dictionaries(NAMES, st.floats(), min_size=1, max_size=4),
    st.dictionaries(st.one_of(NAMES, NAMES.map(Name), st.integers()), st.floats(), max_size=2),
    st.dictionaries(NAMES, st.floats(), max_size=2).map(OrderedDict),
    st.dictionaries(NAMES, st.floats(), max_size=2).map(lambda row: defaultdict(float, row)),
    st.dictionaries(NAMES, st.dictionaries(NAMES, numbers(), max_size=2), max_size=2),
    st.none(),
)
STEPS = st.one_of(
    st.integers(-5, 100), st.integers(), st.booleans(), st.floats(), st.integers(0, 9).map(np.int64)
)
WORDS = ["step", "metrics", "episode", "tokens", "time", "commit", "tokes"]
CALLS = st.one_of(
    st.tuples(STEPS, ROWS).map(lambda both: (both, {})),
    st.tuples(STEPS, ROWS).map(lambda both: (both, {})),
    st.tuples(STEPS, ROWS).map(lambda both: ((), {"step": both[0], "metrics": both[1]})),
    st.tuples(ROWS, STEPS).map(lambda both: (both, {})),
    st.tuples(ROWS, st.one_of(st.none(), STEPS)).map(lambda both: (both[:1], {"step": both[1]})),
    ROWS.map(lambda row: ((row,), {})),
    st.tuples(STEPS, ROWS).map(lambda both: (both[:1], {"metrics": both[1]})),
    st.tuples(
        st.lists(st.one_of(STEPS, ROWS), max_size=7),
        st.dictionaries(st.sampled_from(WORDS), st.one_of(STEPS, ROWS), max_size=3),
    ),
    st.tuples(STEPS, ROWS, st.one_of(st.none(), st.floats())).map(lambda three: (three, {})),
    st.tuples(STEPS, ROWS, st.one_of(st.none(), st.integers())).map(
        lambda three: (three[:2], {"tokens": three[2]})
    ),
)


def came_out(flat):
    """Return what a flush makes of rows, in order: (names, [step], [[number]]), and its notes."""
    counted = Notes()
    parts = Batcher(counted).rows(flat)
    return [(part.keys, part.steps.tolist(), part.values.tolist()) for part in parts], counted


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """A run that logs by compiled code, and one that does not."""
    one = rlvitals.start(tmp_path / "compiled", strict=False, flush_seconds=LONG)
    monkeypatch.setenv("RLVITALS_COMPILED", "off")
    other = rlvitals.start(tmp_path / "python", strict=False, flush_seconds=LONG)
    assert one.compiled
    assert not other.compiled
    yield one, other
    one.finish()
    other.finish()


def test_whatever_is_logged_the_same_comes_out_by_either_way(pair):
    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(CALLS, max_size=12))
    def check(calls):
        found = []
        for run in pair:
            for args, named in copy.deepcopy(calls):
                run.log(*args, **named)
            step = run.step
            flat, run._rows[:] = run._rows[:], []
            rows, counted = came_out(flat)
            found.append((repr(rows), counted.counts, run._notes.counts, step if flat else None))
        assert found[0] == found[1]

    check()


def test_rows_of_both_ways_come_back_in_their_order(run):
    for step in range(300):
        metrics = {"x": float(step)} if step % 3 else {"x": np.float32(step)}
        run.log(step, metrics, **({"tokens": step} if step % 7 == 0 else {}))
        run.log(step, {"y": step, "z": -step})
    run.finish()
    found = points(run.folder)
    assert found["x"] == found["y"] == [(step, float(step)) for step in range(300)]
    assert notes(run.folder) == {}


def test_the_time_is_the_clock_s(run):
    before = time.time()
    run.log(1, SEVERAL)
    run._pump.gather()
    assert before <= run._rows[1] <= time.time()


def test_many_layouts_in_turns_names_made_anew_and_the_widest(run):
    wanted = {}
    for step in range(400):
        row = {f"name {step % 37}/{i}": step + i for i in range(step % 37 + 1)}
        run.log(step, row)
        for key, value in row.items():
            wanted.setdefault(key, []).append((step, float(value)))
    for width in (255, 256, 257, 1000):
        run.log(width, {f"wide {i}": i for i in range(width)})
    run.finish()
    found = points(run.folder)
    assert {key: found[key] for key in wanted} == wanted
    assert [step for step, _ in found["wide 0"]] == [255, 256, 257, 1000]


def test_a_full_buffer_is_moved_and_a_full_queue_waited_for():
    direct = Direct(limit=ROW_FIELDS * 1000)
    for step in range(20_000):
        direct.log(step, SEVERAL)
    assert direct.waits == len(direct.rows) // ROW_FIELDS // 5461  # rows of 3 numbers in the buffer
    assert [step for step, _ in direct.taken()] == list(range(20_000))


def test_what_waiting_raises_is_raised_and_the_row_is_whole():
    direct = Direct(limit=0)

    def interrupted():
        raise KeyboardInterrupt

    short = fastlog.load_shortcut()(direct.rows, 0, interrupted, direct.method, ())
    short.log(1, SEVERAL)
    short.move()
    with pytest.raises(KeyboardInterrupt):
        short.log(2, SEVERAL)
    short.move()
    assert [step for step, _ in direct.taken()] == [1, 2]


def test_once_stopped_every_call_reaches_the_method():
    direct = Direct()
    direct.log(1, SEVERAL)
    direct.short.stop()
    direct.short.stop()
    direct.short.move()
    assert len(direct.rows) == ROW_FIELDS
    direct.log(2, SEVERAL)
    assert direct.calls == [((2, SEVERAL), {})]


def test_a_held_log_of_a_finished_run_is_noted(run):
    log = run.log
    log(1, {"x": 1.0})
    run.finish()
    log(2, {"x": 2.0})
    assert values(run.folder, "x") == [1.0]
    assert run._notes.counts == {"not recorded: the run is finished": 1}


class Cycle:
    """Garbage that only a collection finds, and that does something then."""

    def __init__(self, last):
        self.me, self.last = self, last

    def __del__(self):
        self.last()


@pytest.mark.parametrize("what", sampled(["log", "log many", "move", "stop"], 2))
def test_code_that_runs_while_names_are_learnt(what):
    direct, inside = Direct(), []
    row = {f"new {i}": 1.0 for i in range(30)}  # shorter tuples may come from a store of old ones
    step, late = 5, 40 if what == "log many" else 1

    def last():
        inside.append(busy)
        if what == "stop":
            direct.short.stop()
        elif what == "move":
            direct.short.move()
        else:
            for i in range(late):
                direct.log(6, {f"late {i}": 1.0})

    busy, threshold = False, gc.get_threshold()
    direct.log(4, {"x": 1.0})
    gc.collect()
    gc.disable()
    Cycle(last)
    due = [[i] for i in range(100)]  # objects enough that a collection is due
    busy = True
    gc.set_threshold(1)
    gc.enable()
    direct.log(step, row)  # makes a list and a tuple: before Python 3.12 it is collected there
    busy = False
    gc.set_threshold(*threshold)
    gc.collect()
    assert inside == [sys.version_info < (3, 12)], len(due)
    found = direct.taken()
    assert found[0] == (4, {"x": 1.0})
    assert found.count((step, row)) + direct.calls.count(((step, row), {})) == 1
    assert sum(step == 6 for step, _ in found) == (late if "log" in what else 0)


def test_no_reference_is_kept_and_no_memory():
    direct = Direct()
    step, value, name = 123_456, 0.123, str(b"name", "ascii")  # not interned
    row = {name: value, "y": 2**80}
    held = [step, value, name, row, row["y"], direct.rows]
    direct.log(step, row)
    direct.taken()
    before = [sys.getrefcount(one) for one in held]
    for i in range(cases(20_000, 200_000)):
        direct.log(step, row)
        direct.log(row, step)
        direct.log(row, step=step)
        if i % 10_000 == 0:
            direct.taken()
    direct.taken()
    assert [sys.getrefcount(one) for one in held] == before

    def some():
        for i in range(5000):
            direct.log(step, row)
            direct.log(step, {f"{i % 100}": 1.0})  # a new layout in place of an old one
            direct.log(row, step=step)
            direct.log({"x": None}, i)
            direct.log(row, steps=step)
            direct.log(i, {"x": None})
            direct.calls.clear()
        direct.taken()

    some()
    tracemalloc.start()
    try:
        some()
        gc.collect()  # what the interpreter keeps for later as well
        had = tracemalloc.get_traced_memory()[0]
        some()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - had < 5000, "less than a byte a call"
    finally:
        tracemalloc.stop()


def alone(code, *words):
    """Run code in a process of its own, where what it breaks is its own."""
    whole = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_memory_a_row_is_queued_whole_or_handed_on():
    pytest.importorskip("_testcapi")
    code = """
        import _testcapi
        from rlvitals.tracking.shortcut import FIELDS, Shortcut
        rows, calls, logged = [], [], 0
        short = Shortcut(rows, 10**9, print, lambda *call: calls.append(call), ())
        for names in ({"a": 1.5}, {"b": 1.5, "c": 2.5}):
            for allowed in range(40):
                _testcapi.set_nomemory(allowed, 0)
                try:
                    short.log(allowed, names)
                    logged += 1
                    short.move()
                except MemoryError:
                    pass
                finally:
                    _testcapi.remove_mem_hooks()
                assert len(rows) % FIELDS == 0
        short.move()
        assert len(rows) // FIELDS + len(calls) >= logged
        print(logged)
    """
    assert int(alone(code)) >= 20


def test_a_run_is_collected_with_it(tmp_path):
    run = rlvitals.start(tmp_path, strict=False)
    run.log(1, SEVERAL)
    run.finish()
    gone, short = weakref.ref(run), weakref.ref(run._pump)
    del run
    gc.collect()
    assert gone() is None
    assert short() is None


def test_it_looks_like_the_method(run):
    method = inspect.signature(runs.Run.log).parameters
    mine = inspect.signature(run.log).parameters
    assert [(p.name, p.kind, p.default) for p in list(method.values())[1:]] == [
        (p.name, p.kind, p.default) for p in mine.values()
    ]
    assert run.log.__name__ == "log"
    assert run.log.__doc__.splitlines()[0] == runs.Run.log.__doc__.splitlines()[0]


@pytest.mark.parametrize("what", [lambda run: run, lambda run: run.log], ids=["run", "log"])
def test_neither_can_be_sent_to_another_process(run, what):
    with pytest.raises(rlvitals.UsageError, match="cannot be sent to another process"):
        pickle.dumps(what(run))


def test_a_subclass_s_log_and_a_spy_s_are_theirs(tmp_path, monkeypatch):
    seen, method = [], runs.Run.log

    def spy(self, step, metrics, **axes):
        seen.append(step)
        method(self, step, metrics, **axes)

    monkeypatch.setattr(runs.Run, "log", spy)
    with rlvitals.start(tmp_path, strict=False) as run:
        run.log(1, {"x": 1.0})
    assert seen == [1]
    assert values(tmp_path, "x") == [1.0]


def test_another_interpreter_of_the_process_has_its_own():
    pytest.importorskip("_xxsubinterpreters")
    code = """
        import _xxsubinterpreters as interpreters
        from rlvitals.tracking import shortcut
        code = f'''if True:
            import importlib.util, sys
            spec = importlib.util.spec_from_file_location("shortcut", {shortcut.__file__!r})
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            rows = []
            short = module.Shortcut(rows, 100, print, print, ())
            short.log(1, {{"x": 1.0}})
            short.move()
            assert rows[0] == 1
        '''
        for _ in range(3):
            one = interpreters.create()
            interpreters.run_string(one, code)
            interpreters.destroy(one)
    """
    alone(code)


def test_a_binary_of_other_rows_is_left_alone(monkeypatch):
    from rlvitals.tracking import shortcut

    with monkeypatch.context() as other_build:
        other_build.setattr(shortcut, "FIELDS", ROW_FIELDS + 1)
        assert fastlog.load_shortcut() is None
    with monkeypatch.context() as older_build:
        older_build.delattr(shortcut, "ARGUMENTS")
        assert fastlog.load_shortcut() is None
    assert fastlog.load_shortcut() is not None


def test_importing_and_starting_without_it(tmp_path):
    code = """
        import sys
        sys.modules["rlvitals.tracking.shortcut"] = None  # what is not there
        import rlvitals
        run = rlvitals.start(sys.argv[1], strict=False)
        run.log(1, {"x": 1.0})
        run.finish()
        print(run.compiled)
    """
    assert alone(code, tmp_path) == "False"
    assert values(tmp_path, "x") == [1.0]
