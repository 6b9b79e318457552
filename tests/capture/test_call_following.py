"""Following a call, and Ray's hook: without a process of their own."""

import os
from types import SimpleNamespace

import pytest

from rlvitals.capture import calls, ray_hook


def test_a_recording_that_fails_is_one_line_and_no_error(capsys):
    library = SimpleNamespace(log=lambda value: value + 1)
    calls.follow(library, "log", lambda *_: 1 / 0)
    assert [library.log(1), library.log(2)] == [2, 3]
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1


def test_a_call_inside_a_followed_call_is_not_recorded_again():
    recorded = []
    library = SimpleNamespace(inner=lambda: "in")
    library.outer = lambda: (library.inner(),)
    for name in ("inner", "outer"):
        calls.follow(library, name, recorded.append)
    calls.follow(library, "outer", recorded.clear)  # it is followed already
    assert (library.outer(), library.inner()) == (("in",), "in")
    assert recorded == [("in",), "in"]


def test_an_exception_of_the_library_is_its_own():
    library = SimpleNamespace(log=[].pop)
    calls.follow(library, "log", lambda *_: None)
    with pytest.raises(IndexError):
        library.log()
    with pytest.raises(IndexError):  # the next call is followed as ever
        library.log()


def earlier_hook(environment):
    return {**environment, "pip": ["x"]}


def test_ray_s_workers_get_the_variables_and_an_earlier_hook_its_call(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("/site", "/mine")))
    monkeypatch.setenv("_RLVITALS_CAPTURE", "beside")
    monkeypatch.setenv(ray_hook.RAY_VARIABLE, f"{__name__}.earlier_hook")
    ray_hook.install()
    assert os.environ[ray_hook.RAY_VARIABLE] == "rlvitals.capture.ray_hook.add"
    answer = ray_hook.add({"env_vars": {"PYTHONPATH": "/theirs", "A": "1"}})
    monkeypatch.delenv(ray_hook.NEXT_VARIABLE)
    assert answer["pip"] == ["x"]
    assert answer["env_vars"]["PYTHONPATH"] == os.pathsep.join(("/site", "/theirs"))
    assert (answer["env_vars"]["A"], answer["env_vars"]["_RLVITALS_CAPTURE"]) == ("1", "beside")
    assert ray_hook.add(None)["env_vars"]["PYTHONPATH"] == os.environ["PYTHONPATH"]
