"""Objects that raise, lie or never end, in every public call: nothing reaches the training."""

import argparse
import dataclasses
import itertools
import json
import math
import sys
import warnings
from collections import UserDict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording_checks import happened, points

import rlvitals
from rlvitals.storage.run_folder import RunFolder
from rlvitals.tracking import media


class Raises:
    """Every question that can be asked of it raises."""

    def _no(self, *_):
        raise ZeroDivisionError("no")

    __str__ = __repr__ = __eq__ = __bool__ = __len__ = __iter__ = __float__ = __index__ = _no
    __int__ = __getitem__ = __contains__ = __call__ = __add__ = __radd__ = __hash__ = _no

    def __getattr__(self, name):
        raise RuntimeError(name)


class Liar:
    """Its class is said to be what it is not."""

    def __init__(self, kind):
        self.kind = kind

    @property
    def __class__(self):
        return self.kind


class RaisingClass:
    @property
    def __class__(self):
        raise LookupError("no class")


class BadError(Exception):
    def __str__(self):
        raise ValueError("not even this")


class RaisesBadError:
    def __float__(self):
        raise BadError

    __str__ = __repr__ = __float__


class Endless(UserDict):
    """A mapping without end."""

    def items(self):
        return ((f"name {i}", i) for i in itertools.count())

    def __iter__(self):
        return itertools.count()

    def values(self):
        return itertools.count()


class RaisingDict(dict):
    def _no(self, *_):
        raise MemoryError

    items = keys = values = __iter__ = __getitem__ = _no


@dataclasses.dataclass
class Node:
    name: str = "node"
    other: object = None


def circle():
    one, two = {}, Node()
    two.other, one["in"] = one, [two]
    return one


def deep(levels=2000):
    found = {}
    for _ in range(levels):
        found = {"x": found}
    return found


def namespace():
    found = argparse.Namespace(lr=1e-3, raises=Raises())
    found.itself = found
    return found


def objects():
    found = np.empty(2, object)
    found[0] = Raises()
    return found


HOSTILE = {
    "raises": Raises,
    "lies: dict": lambda: Liar(dict),
    "lies: str": lambda: Liar(str),
    "lies: float": lambda: Liar(float),
    "no class": RaisingClass,
    "bad error": RaisesBadError,
    "raising dict": lambda: RaisingDict(a=1),
    "circle": circle,
    "deep": deep,
    "deep list": lambda: eval("[" * 90 + "]" * 90),  # noqa: S307 - ours
    "namespace": namespace,
    "simple namespace": lambda: SimpleNamespace(a=Raises()),
    "dataclass": lambda: Node("a", Node("b", Raises())),
    "generator": lambda: (i for i in itertools.count()),
    "huge": lambda: 10**400,
    "very huge": lambda: -(10**5000),
    "surrogate": lambda: "\ud800",
    "surrogates": lambda: {"\ud800": "\udfff", "a": ["\ud800"]},
    "nan": lambda: math.nan,
    "bytes": lambda: b"\xff",
    "keys": lambda: {b"a": 1, 1: 2, None: 3, (1, 2): 4},
    "numpy": lambda: np.float32(1.5),
    "array": lambda: np.zeros((3, 4)),
    "objects": objects,
    "torch": lambda: torch.ones(3, requires_grad=True) * 2,
    "meta": lambda: torch.zeros(1, device="meta"),
    "a type": lambda: Raises,
    "a function": lambda: print,
    "a set": lambda: {1, "a", None},
    "none": lambda: None,
}
ANY = st.sampled_from(sorted(HOSTILE))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with rlvitals.start(tmp_path_factory.mktemp("hostile"), strict=False) as begun:
        yield begun


CALLS = {
    "log": lambda run, a, b: run.log(a, b),
    "log value": lambda run, a, b: run.log(1, {"fine": 1.0, "odd": a, "odder": {"x": b}}),
    "log named": lambda run, a, b: run.log(1, {"fine": 1.0}, episode=a, tokens=b, time=a),
    "log more": lambda run, a, b: run.log(a, {"fine": 1.0}, a, b, a, b, odd=a),
    "event": lambda run, a, b: run.event("odd", 1, one=a, two=b, time=a),
    "event kind": lambda run, a, b: run.event(a, b),
    "note": lambda run, a, _: run.note(a),
    "update_settings": lambda run, a, _: run.update_settings(a),
    "update_settings value": lambda run, a, b: run.update_settings({"a": a, "b": [b]}, step=1),
    "update_settings step": lambda run, a, b: run.update_settings({"a": a}, step=b),
    "log_text": lambda run, a, b: run.log_text(a, b, a),
    "log_text value": lambda run, a, _: run.log_text(1, "text", a),
    "log_table": lambda run, a, b: run.log_table(1, "table", {"x": [a, b]}),
    "log_table columns": lambda run, a, b: run.log_table(a, b, a),
    "log_histogram": lambda run, a, b: run.log_histogram(1, "histogram", a, counts=b),
    "log_histogram edges": lambda run, a, b: run.log_histogram(1, "h", edges=a, counts=b),
}


@pytest.mark.parametrize("way", ["compiled", "python"], indirect=True)
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(calls=st.lists(st.tuples(st.sampled_from(sorted(CALLS)), ANY, ANY), min_size=1, max_size=8))
def test_no_call_raises_and_the_next_row_is_recorded(run, way, calls):
    assert way
    for name, one, other in calls:
        CALLS[name](run, HOSTILE[one](), HOSTILE[other]())
    step = run._rows[-4] if run._rows else 0
    run.log(10**6, {"after": 1.0})
    assert run.step == 10**6, step


@pytest.mark.parametrize("name", HOSTILE)
def test_start_and_finish_never_raise(tmp_path, name):
    def one():
        return HOSTILE[name]()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = rlvitals.start(
            tmp_path, settings={"odd": one(), "in": {"odd": [one()]}, "lr": 0.1}, strict=False,
            tags=["a", one()], notes=one(), seed=one(), group=one(),
        )  # fmt: skip
    run.at_finish(one())
    run.log(1, {"x": 1.0})
    run.finish(one(), traceback=one(), exit_code=one())
    assert points(tmp_path)["x"] == [(1, 1.0)]
    assert RunFolder.open(tmp_path).about.settings["lr"] == 0.1
    (end,) = happened(tmp_path, "finish")
    assert isinstance(end.facts["status"], str)
    json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_the_settings_and_the_tags_are_a_run_begins(tmp_path, name):
    with rlvitals.start(
        tmp_path, settings=HOSTILE[name](), tags=HOSTILE[name](), strict=False
    ) as run:
        run.log(1, {"x": 1.0})
    assert points(tmp_path)["x"] == [(1, 1.0)]


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_the_config_is_a_run_begins(tmp_path, name):
    with rlvitals.start(tmp_path, config=HOSTILE[name](), strict=False) as run:
        run.log(1, {"x": 1.0})
    assert points(tmp_path)["x"] == [(1, 1.0)]


@pytest.mark.parametrize("config", [5, "lr", [1, 2], [([], 1)]], ids=repr)
def test_a_config_without_names_is_noted_as_settings_are(tmp_path, config):
    with rlvitals.start(tmp_path / "a", config=config, strict=False) as run:
        assert dict(run.settings) == {}
    (note,) = happened(tmp_path / "a", "note")
    assert note.facts["text"].startswith("settings must be a dict, not ")
    for name in ("config", "settings"):
        with pytest.raises(rlvitals.UsageError, match="settings must be a dict, not "):
            rlvitals.start(tmp_path / "b", **{name: config}, strict=True)


def test_a_mapping_without_end_is_cut(monkeypatch, tmp_path):
    monkeypatch.setattr("rlvitals.tracking.media.MAX_COLUMN_CELLS", 1000)
    monkeypatch.setattr("rlvitals.tracking.tensors.MAX_ROW_NAMES", 1000)
    with rlvitals.start(tmp_path, settings=Endless(), strict=False) as run:
        run.log(1, Endless())
        run.log(2, {"x": 1.0, "in": Endless()})
        run.event("odd", 1, endless=Endless())
        run.log_table(1, "t", {"x": itertools.count(), "y": [1]})
        run.log_table(1, "t", Endless())
        assert 900 < len(run.settings) <= 1000
    assert points(tmp_path)["x"] == [(2, 1.0)]


def test_what_settings_become():
    found = media.settings(
        {
            "data": Node("a", Node("b")), "space": argparse.Namespace(lr=1), "big": 10**400,
            "int": 2**70, "text": "\ud800x", "numpy": np.int64(3), "list": [1, np.float32(0.5)],
            "circle": circle(), "kind": Node,
        }
    )  # fmt: skip
    assert found["data/name"] == "a"
    assert found["data/other/other"] is None
    assert (found["space/lr"], found["int"], found["numpy"]) == (1, 2**70, 3)
    assert found["big"] == str(10**400)
    assert found["text"] == "\\ud800x"
    assert found["list"] == [1, 0.5]
    assert "holds itself" in json.dumps(found["circle/in"])


@pytest.mark.parametrize("in_worker", [False, True])
def test_a_ray_that_raises_stops_no_recording(tmp_path, monkeypatch, in_worker):
    train = ray = Raises()
    if in_worker:  # of Ray Train, which knows its rank and nothing else
        context = SimpleNamespace(get_world_rank=lambda: 0)
        train = SimpleNamespace(get_context=lambda: context)
        actor = SimpleNamespace(get_actor_id=lambda: "1")
        ray = SimpleNamespace(is_initialized=lambda: True, get_runtime_context=lambda: actor)
    for name, module in {"ray": ray, "ray.train": train, "ray.tune": Raises()}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("RAY_JOB_ID", "ffffffff")
    with rlvitals.start(tmp_path / "run") as run:
        run.log(1, {"return": 1.0})
    assert points(tmp_path / "run")["return"] == [(1, 1.0)]


def test_a_config_or_a_summary_without_names_is_noted_in_a_run_that_goes_on(tmp_path):
    with rlvitals.start(tmp_path / "run", strict=False) as run:
        run.config.update(5)
        run.summary.update(5)
        run.config.update({"lr": 0.1})
        assert dict(run.config) == {"lr": 0.1}
    assert points(tmp_path / "run") == {}
    strict = rlvitals.start(tmp_path / "strict", strict=True)
    with strict, pytest.raises(rlvitals.UsageError, match="settings must be a dict, not an int"):
        strict.config.update(5)


def test_a_config_without_names_begins_a_run_of_w_and_b_s_names(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # strict otherwise
    run = rlvitals.init(config=5, dir=tmp_path)
    run.log({"x": 1.0})
    run.finish()
    assert dict(run.config) == {}
