"""What `run.log` takes: every kind of number, as it was when it was logged."""

import inspect
import math
from collections import OrderedDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import get_overloads

import numpy as np
import pytest
import torch
from recording_checks import happened, notes, points, same, scans, values

import rlvitals
from rlvitals.tracking import validation

BIG = 10**400


@pytest.fixture
def loose(tmp_path, way):
    assert way
    with rlvitals.start(tmp_path / "run", strict=False) as run:
        yield run


def logged(run, metrics, step=3):
    run.log(step, metrics)
    run.finish()
    return {key: at[-1] for key, at in points(run.folder).items()}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, 0.1),
        (7, 7.0),
        (True, 1.0),
        (-(2**70), -(2.0**70)),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.5), 0.5),
        (np.int32(-4), -4.0),
        (np.uint64(2**63), 2.0**63),
        (np.bool_(True), 1.0),
        (np.array(2.5), 2.5),
        (np.array([[4]]), 4.0),
        (torch.tensor(0.25), 0.25),
        (torch.tensor([3]), 3.0),
        (torch.tensor(1.5, dtype=torch.bfloat16, requires_grad=True), 1.5),
        (torch.nn.Parameter(torch.tensor(0.5)), 0.5),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 4), 0.25),
        (float("nan"), math.nan),
        (float("-inf"), -math.inf),
        (BIG, math.inf),
        (-BIG, -math.inf),
    ],
    ids=str,
)
@pytest.mark.parametrize("durable", [False, True])
def test_a_number(tmp_path, value, number, durable):
    run = rlvitals.start(tmp_path, durable=durable)
    found = logged(run, {"a": 1.0, "x": value, "b": 2})
    assert found["a"] == (3, 1.0)
    assert found["b"] == (3, 2.0)
    assert same(found["x"], (3, number))
    assert notes(run.folder) == {}


@pytest.mark.parametrize(
    "value",
    [np.float32(0.1), np.int64(3), np.bool_(False)],
    ids=lambda value: type(value).__name__,
)
def test_a_number_among_plain_ones_that_is_converted_at_the_flush(loose, value):
    assert logged(loose, {"x": value, "y": 1})["x"] == (3, float(value))


@pytest.mark.parametrize(("value", "number"), [(BIG, math.inf), (-BIG, -math.inf)])
def test_a_whole_number_beyond_float64_among_others(loose, value, number):
    loose.log(1, {"x": 1, "y": 1.5})
    loose.log(2, {"x": value, "y": 2.5})
    loose.log(3, {"x": value, "y": 3})
    loose.finish()
    found = points(loose.folder)
    assert found == {"x": [(1, 1.0), (2, number), (3, number)], "y": [(1, 1.5), (2, 2.5), (3, 3.0)]}


def test_none_is_left_out_and_counted(loose):
    for step in range(3):
        loose.log(step, {"loss": 1.0, "kl": None})
    found = logged(loose, {"loss": 2.0, "kl": 0.5})
    assert found == {"loss": (3, 2.0), "kl": (3, 0.5)}
    assert values(loose.folder, "loss") == [1.0, 1.0, 1.0, 2.0]
    assert notes(loose.folder) == {"kl was None: left out": 3}


def test_nested_dicts_join_with_a_slash(loose):
    nested = {"train": {"loss": 1, "kl": {"k1": torch.tensor(2.0), "k3": None}}, "a/b": 3}
    found = logged(loose, nested)
    assert found == {"train/loss": (3, 1.0), "train/kl/k1": (3, 2.0), "a/b": (3, 3.0)}


def test_a_dict_that_holds_itself_ends(loose):
    circle = {"x": 1.0}
    circle["again"] = circle
    assert logged(loose, circle)["x"] == (3, 1.0)
    assert any("nested more than" in text for text in notes(loose.folder))


def test_what_the_caller_changes_afterwards_is_its_own(loose):
    metrics, inner = {"x": 1.0}, {"y": 1.0}
    tensor, array = torch.tensor(1.0), np.array(1.0)
    loose.log(0, metrics)
    loose.log(1, {"in": inner, "t": tensor, "a": array})
    metrics["x"] = inner["y"] = 9.0
    tensor += 8
    array += 8
    loose.finish()
    assert set(points(loose.folder).values().__iter__().__next__()) == {(0, 1.0)}
    assert {at[0] for at in map(tuple, points(loose.folder).values())} == {(0, 1.0), (1, 1.0)}


@pytest.mark.parametrize(
    "kind", [OrderedDict, MappingProxyType, lambda d: defaultdict(float, d)], ids=["o", "p", "d"]
)
def test_any_mapping(loose, kind):
    assert logged(loose, kind({"x": 1.0, "y": 2.0})) == {"x": (3, 1.0), "y": (3, 2.0)}


def test_rows_of_many_layouts_come_back_whole_and_in_order(loose):
    wanted = {}
    for step in range(500):
        row = {"always": step / 7}
        row |= {"train/loss": step * 2.0} if step % 3 == 0 else {}
        row |= {"kl": -step} if step % 5 == 0 else {}
        if step % 7 == 0:
            row = dict(reversed(row.items()))
        loose.log(step, row)
        for key, value in row.items():
            wanted.setdefault(key, []).append((step, float(value)))
    loose.finish()
    assert points(loose.folder) == wanted


def test_two_layouts_that_share_no_metric_are_two_blocks_a_flush(loose):
    for step in range(200):
        loose.log(step, {"train/loss": 1.0})
        loose.log(step, {"rollout/return": 2.0})
    loose.finish()
    assert [len(part.steps) for part in scans(loose.folder)["1-0"].scalars] == [200, 200]


def test_the_other_x_axes_are_columns_of_the_same_rows(loose):
    loose.log(10, {"x": 1.0}, episode=2, tokens=np.int64(300), time=1e9)
    loose.log(11, {"x": 1.0}, episode=None)
    loose.finish()
    found = points(loose.folder)
    assert found["axis/episode"] == [(10, 2.0)]
    assert found["axis/tokens"] == [(10, 300.0)]
    first = scans(loose.folder)["1-0"].scalars[0]
    assert first.times.tolist() == [1e9]


@pytest.mark.parametrize("step", [np.int64(5), np.uint8(5), 5.0, torch.tensor(5), np.array(5)])
def test_a_step_is_any_whole_number(loose, step):
    assert logged(loose, {"x": 1.0}, step) == {"x": (5, 1.0)}


def test_a_step_may_go_back(loose):
    for step in (5, 6, 3, -1):
        loose.log(step, {"x": step})
    loose.finish()
    assert points(loose.folder)["x"] == [(5, 5.0), (6, 6.0), (3, 3.0), (-1, -1.0)]


WRONG = [
    ((1, {3: 1.0}), "a metric's name must be a string, not an int"),
    ((1, {"a": {None: 1.0}}), "a metric's name must be a string, not a NoneType"),
    ((1, {"x": "high"}), "x: a str is no number"),
    ((1, {"x": [1.0, 2.0]}), "x: a list is no number"),
    ((1, {"x": np.zeros((2, 3))}), "x: a numpy.ndarray [2, 3] is no number"),
    ((1, {"x": torch.zeros(4)}), "x: a torch.Tensor [4] is no number (RuntimeError)"),
    ((1, {"x": 1j}), "x: a complex is no number"),
    (("one", {"x": 1.0}), "a step must be a whole number, not a str"),
    ((1.5, {"x": 1.0}), "a step must be a whole number, not a float"),
    ((None, {"x": 1.0}), "a step must be a whole number, not a NoneType"),
    ((True, {"x": 1.0}), "a step must be a whole number, not a bool"),
    ((2**63, {"x": 1.0}), "a step must be a whole number, not an int"),
    ((1, ["x"]), "metrics must be a dict, not a list"),
    ((1, None), "metrics must be a dict, not a NoneType"),
]


@pytest.mark.parametrize(("call", "problem"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_call_raises_where_calls_are_checked_and_is_counted_elsewhere(
    tmp_path, call, problem
):
    strict = rlvitals.start(tmp_path / "strict")
    with pytest.raises(rlvitals.UsageError) as error:
        strict.log(*call)
    assert error.value.problem == problem
    strict.finish()

    run = rlvitals.start(tmp_path / "run", strict=False)
    for _ in range(3):
        run.log(*call)
    run.log(7, {"after": 1.0})
    run.finish()
    assert notes(run.folder) == {problem: 3}
    assert points(run.folder)["after"] == [(7, 1.0)]


def test_a_step_and_metrics_in_either_order(loose):
    calls = [
        ((1, {"x": 1.0}), {}), (({"x": 2.0}, 2), {}), (({"x": 3.0},), {"step": 3}),
        ((), {"step": 4, "metrics": {"x": 4.0}}), ((), {"metrics": {"x": 5.0}, "step": 5}),
        ((6,), {"metrics": {"x": 6.0}}), (({"x": np.float32(7)},), {"step": np.int64(7)}),
        (({"x": 8.0}, 8, 80, 800), {"time": 5.0}), (({"x": 9.0},), {"tokens": 900, "step": 9}),
    ]  # fmt: skip
    for args, named in calls:
        loose.log(*args, **named)
    loose.finish()
    found = points(loose.folder)
    assert found["x"] == [(step, float(step)) for step in range(1, 10)]
    assert found["axis/episode"] == [(8, 80.0)]
    assert found["axis/tokens"] == [(8, 800.0), (9, 900.0)]
    times = [t for part in scans(loose.folder)["1-0"].scalars for t in part.times.tolist()]
    assert times[7] == 5.0
    assert notes(loose.folder) == {}


def test_the_types_name_the_arguments_that_there_are():
    found = [list(inspect.signature(one).parameters) for one in get_overloads(rlvitals.Run.log)]
    assert found == [["self", *validation.STEP_FIRST], ["self", *validation.METRICS_FIRST]]


def test_without_a_step_a_row_stands_one_behind_the_last(loose):
    loose.log({"x": 0.0})
    loose.log({"x": 1.0}, step=None)
    loose.log({"x": 2.0}, None)
    loose.log(metrics={"x": 3.0})
    loose.log({"x": 10.0}, step=10)
    loose.log({"x": np.float32(11)})
    assert loose.flush()
    loose.log({"x": 12.0})
    loose.log(-5, {"x": -5.0})
    loose.log({"x": -4.0})
    assert loose.step == -4
    loose.log(2**63 - 1, {"y": 1.0})
    loose.log({"y": 2.0})
    loose.finish()
    assert points(loose.folder)["x"] == [(s, s) for s in (0, 1, 2, 3, 10, 11, 12, -5, -4)]
    assert notes(loose.folder) == {"a step must be a whole number, not an int": 1}


@pytest.mark.parametrize("durable", [False, True])
def test_steps_are_counted_on_whenever_the_rows_are_taken(tmp_path, way, durable):
    assert way
    with rlvitals.start(tmp_path, flush_seconds=0.001, durable=durable, strict=False) as run:
        for value in range(3000):
            run.log({"x": value})
    assert points(tmp_path)["x"] == [(value, value) for value in range(3000)]


def test_each_rank_counts_on_from_its_own_earlier_attempts(tmp_path, monkeypatch):
    for first in (0, 3):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", f"launch {first}")
        with rlvitals.start(tmp_path) as zero:
            for value in range(first, first + 3):
                zero.log({"x": value})
            assert zero.flush()
            monkeypatch.setenv("RANK", "1")
            with rlvitals.start(tmp_path) as one:
                assert one.attempt == zero.attempt
                one.log({"x": first})
    found = {stem: points(tmp_path, stem)["x"] for stem in ("1-0", "1-1", "2-0", "2-1")}
    assert found == {
        "1-0": [(0, 0), (1, 1), (2, 2)], "1-1": [(0, 0)],
        "2-0": [(3, 3), (4, 4), (5, 5)], "2-1": [(1, 3)],
    }  # fmt: skip


ROW = {"x": 1.0}
NOT_LOG = [  # arguments, what is noted, whether the row is there
    ((), {}, {"metrics must be a dict, not a NoneType"}, False),
    ((5,), {}, {"metrics must be a dict, not a NoneType"}, False),
    (("loss", 0.5, 7), {}, {"metrics must be a dict, not a float"}, False),
    ((ROW, ROW), {}, {"a step must be a whole number, not a dict"}, False),
    ((ROW,), {"step": "7"}, {"a step must be a whole number, not a str"}, False),
    ((7,), {"loss": 1.0}, {
        "log() has no argument loss: left out", "metrics must be a dict, not a NoneType",
    }, False),
    ((7, ROW), {"commit": True}, {"log() has no argument commit: left out"}, True),
    ((ROW,), {"step": 7, "tokes": 1},
     {"log() has no argument tokes: left out (did you mean tokens?)"}, True),
    ((7, ROW), {"step": 8}, {"log() got step twice: the first holds"}, True),
    ((7, ROW), {"metrics": {}}, {"log() got metrics twice: the first holds"}, True),
    ((7, ROW, 1, 2, 3.0, 4), {}, {"log() takes 5 arguments: the others are left out"}, True),
]  # fmt: skip


@pytest.mark.parametrize("call", NOT_LOG, ids=range(len(NOT_LOG)))
def test_a_wrong_call_of_log_is_a_note_and_what_is_right_in_it_is_kept(tmp_path, loose, call):
    args, named, problems, kept = call
    loose.log(*args, **named)
    loose.finish()
    assert notes(loose.folder) == dict.fromkeys(problems, 1)
    assert points(loose.folder).get("x", []) == ([(7, 1.0)] if kept else [])
    with rlvitals.start(tmp_path / "strict") as strict, pytest.raises(rlvitals.UsageError):
        strict.log(*args, **named)


@pytest.mark.parametrize("name", ["log_text", "log_table", "log_histogram", "event",
                                  "update_settings"])  # fmt: skip
@pytest.mark.parametrize(
    ("args", "named"), [((), {}), ((1, 2, 3, 4, 5), {}), ((), {"nonsense": 1, "kind": 3})]
)
def test_too_few_or_too_many_arguments_are_a_note_too(tmp_path, loose, name, args, named):
    getattr(loose, name)(*args, **named)
    loose.log(1, ROW)
    loose.finish()
    (text,) = notes(loose.folder)
    assert name in text or text == "a name must be a string, not an int"
    assert values(loose.folder, "x") == [1.0]
    with (
        rlvitals.start(tmp_path / "strict") as strict,
        pytest.raises((TypeError, rlvitals.UsageError)),
    ):
        getattr(strict, name)(*args, **named)


def test_a_fact_may_be_called_self(loose):
    loose.event("move", 1, self="white", other="black")
    loose.finish()
    assert happened(loose.folder, "move")[0].facts["self"] == "white"


def test_what_is_right_in_a_wrong_call_is_kept(loose):
    found = logged(loose, {"x": 1.0, "bad": "text", "y": 2.0, 5: 1.0})
    assert found == {"x": (3, 1.0), "y": (3, 2.0)}


class Strange:
    def __float__(self):
        raise ZeroDivisionError


class Worse(float):
    def __add__(self, other):
        raise MemoryError

    __radd__ = __add__

    def __float__(self):
        raise MemoryError


STRANGERS = {"none": Strange(), "worse": Worse(1.0), "object": object(), "function": lambda: 1}


@pytest.mark.parametrize("value", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_raises_nothing_into_the_loop(loose, value):
    assert logged(loose, {"x": 1.0, "odd": value})["x"] == (3, 1.0)


def test_a_histogram(loose):
    loose.log_histogram(1, "whole", [1, 2, 2, 4])
    loose.log_histogram(2, "spread", torch.linspace(0, 1, 1000))
    loose.log_histogram(3, "holes", np.array([0.5, np.nan, np.inf, -np.inf, 1.25]))
    loose.log_histogram(4, "given", edges=[0, 1, 2], counts=[3, 4])
    loose.log_histogram(5, "none", [])
    loose.finish()
    found = dict(scans(loose.folder)["1-0"].histograms)
    assert found["whole"].counts.tolist() == [1, 2, 0, 1]
    assert found["whole"].edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert found["spread"].counts.sum() == 1000
    assert len(found["spread"].counts) == 64
    assert found["holes"].counts.sum() == 4
    assert np.isinf(found["holes"].edges[[0, -1]]).all()
    assert found["given"].step == 4
    assert found["none"].counts.sum() == 0


def test_a_histogram_s_values_may_be_reused(loose):
    values = np.zeros(10)
    loose.log_histogram(1, "x", values)
    values += 5
    loose.finish()
    ((_, found),) = scans(loose.folder)["1-0"].histograms
    assert found.counts.tolist() == [10]
    assert found.edges.tolist() == [-0.5, 0.5]


@pytest.mark.parametrize(
    "given",
    [
        {"edges": [0, 1], "counts": [1, 2]},
        {"edges": [1, 0], "counts": [1]},
        {"values": [1], "edges": [0, 1], "counts": [1]},
        {"values": "text"},
        {},
    ],
    ids=str,
)
def test_a_histogram_that_is_none(tmp_path, given):
    with rlvitals.start(tmp_path) as run, pytest.raises(rlvitals.UsageError):
        run.log_histogram(1, "x", **given)


def test_texts_and_tables(loose):
    loose.log_text(1, "prompt", "2 + 2 = ?")
    loose.log_table(2, "completions", {"text": ["4", "5"], "reward": torch.tensor([1.0, 0.0])})
    loose.log_table(3, "completions", {"text": ["6"], "reward": [None]})
    loose.finish()
    scan = scans(loose.folder)["1-0"]
    ((key, text),) = scan.texts
    assert (key, text.step, text.text) == ("prompt", 1, "2 + 2 = ?")
    (first, second) = [table for _, table in scan.tables]
    assert dict(first.columns) == {"text": ["4", "5"], "reward": [1.0, 0.0]}
    assert second.steps.tolist() == [3]


@pytest.mark.parametrize("columns", [["a"], {"a": [1], "b": [1, 2]}, {"a": 1}, {"a": "text"}])
def test_a_table_that_is_none(tmp_path, columns):
    with rlvitals.start(tmp_path) as run, pytest.raises(rlvitals.UsageError):
        run.log_table(1, "x", columns)


def test_settings_and_their_changes(tmp_path):
    run = rlvitals.start(tmp_path, settings={"lr": 3e-4, "env": {"id": "CartPole-v1", "n": 8}})
    assert dict(run.settings) == {"lr": 3e-4, "env/id": "CartPole-v1", "env/n": 8}
    run.log(40, {"x": 1.0})
    run.update_settings({"lr": 1e-4, "env": {"n": 8}})
    run.update_settings({"env": {"n": 8}})
    run.finish()
    (changed,) = happened(tmp_path, "settings")
    assert changed.step == 40
    assert changed.facts["changed"] == {"lr": {"from": 3e-4, "to": 1e-4}}
    assert run.settings["lr"] == 1e-4
    (stored,) = scans(tmp_path)["1-0"].settings
    assert stored.step == 40
    assert stored.settings["lr"] == 1e-4


def test_events_and_notes(loose):
    loose.event("checkpoint", 5, path="checkpoint-5", loss=np.float32(0.5))
    for _ in range(5):
        loose.note("the judge is slow")
    loose.finish()
    (event,) = happened(loose.folder, "checkpoint")
    assert (event.step, event.facts["path"], event.facts["loss"]) == (5, "checkpoint-5", 0.5)
    assert notes(loose.folder) == {"the judge is slow": 5}


def test_a_block_that_an_exception_ends_is_a_failed_run(tmp_path):
    def train():
        with rlvitals.start(tmp_path) as run:
            run.log(1, {"x": 1.0})
            run.log(2, {"x": 1 / 0})

    with pytest.raises(ZeroDivisionError):
        train()
    (end,) = happened(tmp_path, "finish")
    assert end.facts["status"] == "failed"
    assert "ZeroDivisionError: division by zero" in end.facts["traceback"]
    assert points(tmp_path) == {"x": [(1, 1.0)]}


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt, "interrupted"), (SystemExit, "finished")]
)
def test_how_a_block_ends(tmp_path, error, status):
    with pytest.raises(error), rlvitals.start(tmp_path):
        raise error
    (end,) = happened(tmp_path, "finish")
    assert end.facts["status"] == status


@pytest.mark.parametrize(
    ("args", "named", "facts"),
    [
        ((), {}, {"status": "finished"}),
        ((0,), {}, {"status": "finished"}),
        ((None,), {}, {"status": "finished"}),
        ((2,), {}, {"status": "failed", "exit_code": 2}),
        ((None,), {"exit_code": 3}, {"status": "failed", "exit_code": 3}),
        (("stopped",), {"exit_code": 4}, {"status": "stopped", "exit_code": 4}),
    ],
)
def test_an_exit_code_may_stand_for_a_status(tmp_path, args, named, facts):
    rlvitals.start(tmp_path).finish(*args, **named)
    (end,) = happened(tmp_path, "finish")
    assert {key: end.facts[key] for key in end.facts if key not in {"time", "attempt"}} == facts


def test_a_note_may_be_what_was_raised(loose):
    loose.note(ValueError("the judge is slow"))
    loose.finish()
    assert notes(loose.folder) == {"the judge is slow": 1}


def test_finishing_twice_is_once_and_a_later_call_is_wrong(tmp_path):
    run = rlvitals.start(tmp_path)
    run.finish("stopped")
    run.finish()
    assert [end.facts["status"] for end in happened(tmp_path, "finish")] == ["stopped"]
    with pytest.raises(rlvitals.UsageError, match="nothing is recorded: the run is finished"):
        run.log(1, {"x": 1.0})


def test_the_step_logged_last(loose):
    assert loose.step == 0
    loose.log(5, {"x": 1.0})
    assert loose.step == 5
    assert loose.flush()
    assert loose.step == 5
    loose.log(6, {"x": None})
    assert loose.step == 6


def test_flush_brings_all_that_is_logged_to_readers(loose):
    loose.log(1, {"x": 1.0})
    assert loose.flush()
    assert points(loose.folder) == {"x": [(1, 1.0)]}
