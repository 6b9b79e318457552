"""What is asked of W&B's own client; no server of W&B answers here."""

import inspect
import json

import pytest

from rlvitals.hosted import wandb_history


def test_the_client_has_what_is_asked_of_it():
    public = pytest.importorskip("wandb.apis.public")
    assert {"min_step", "page_size"} <= set(inspect.signature(public.Run.scan_history).parameters)
    assert {"path", "filters"} <= set(inspect.signature(public.Api.runs).parameters)
    assert "timeout" in inspect.signature(public.Api.__init__).parameters
    assert hasattr(public.Run, "lastHistoryStep")


@pytest.mark.parametrize("location", ["me", "a/b/c/d", "a/b/sweeps/x", "a/b/groups"])
def test_an_address_that_names_no_run_is_wrong_usage(call, location):
    code, _, error = call("diagnose", f"wandb:{location}")
    assert code == 2
    assert "wandb:entity/project/run" in error


def test_a_row_cut_short_is_asked_for_again(tmp_path):
    path = tmp_path / "history.jsonl"
    assert wandb_history._last_step(path) is None
    rows = [json.dumps({"_step": step, "loss": 0.5}) for step in range(5)]
    path.write_text("\n".join(rows)[:-4])
    assert wandb_history._last_step(path) == 3
    assert path.read_text() == "\n".join(rows[:4]) + "\n"
    path.write_bytes(b"")
    assert wandb_history._last_step(path) is None


def test_a_server_that_is_not_there_is_said_without_the_key(call, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setattr(wandb_history, "TIMEOUT_SECONDS", 1)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef" * 2 + "01234567")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    code, _, error = call("diagnose", "wandb:me/maze/abc")
    assert code == 3
    assert "W&B says" in error
    assert "0123456789abcdef" not in error
