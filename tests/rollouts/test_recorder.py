"""`run.log_rollouts`: what is written, that it holds no secret, rotates and never raises."""

import json
import subprocess
import sys

import pytest

import rlvitals
from rlvitals.errors import UsageError
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.records import zstd
from rlvitals.rollouts.sample import RewardPart
from rlvitals.tracking import rollout_log

TOKEN = "hf_" + "aB3dE6gH9j" * 4
SAMPLE = {
    "prompt": "What is 6 x 7?",
    "completion": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {"name": "calc", "arguments": "6*7"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
    ],
    "reward": 1.1,
    "rewards": {"correct": 1.0, "brief": {"score": 0.5, "weight": 0.2}},
    "group": "g",
    "task": "math",
    "answer": "42",
    "advantage": 0.5,
    "stop_reason": "stop",
    "seconds": 2.5,
    "token_count": 3,
    "policy_version": 7,
    "sampler_log_probs": [-0.5, -0.25, -0.125],
    "mask": [1, 1, 1],
}


def test_what_is_recorded_is_read_again(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        run.log_rollouts(3, [SAMPLE, {"prompt": "1 + 1?", "completion": "2", "error": "timeout"}])
    rollouts = rollout_index.read(tmp_path / "run")
    first, second = rollouts.read_sample(0), rollouts.read_sample(1)
    assert first.step == 3
    assert first.text == "\n\nIt is 42."
    assert [(c.name, c.result) for c in first.tool_calls] == [("calc", "42")]
    assert first.parts == {"correct": RewardPart(1.0), "brief": RewardPart(0.5, 0.2)}
    for name in ("reward", "group", "task", "answer", "advantage", "stop_reason", "seconds"):
        assert getattr(first, name) == SAMPLE[name]
    assert (first.token_count, first.policy_version) == (3, 7)
    assert first.tokens.sampler_log_probs == (-0.5, -0.25, -0.125)
    assert (second.text, second.error, second.reward) == ("2", "timeout", None)


def test_the_run_is_diagnosed_without_taking_its_samples_for_rows(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        for step in range(30):
            run.log(step, {"episode_return": 1.0 + step})
            run.log_rollouts(step, [SAMPLE])
    (log,) = rlvitals.read(tmp_path / "run")
    assert "episode_return" in log.series


def test_no_secret_reaches_the_file(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        chat = [{"role": "assistant", "content": f"export HF_TOKEN={TOKEN}"}]
        run.log_rollouts(0, [{"prompt": f"use {TOKEN}", "messages": chat, "password": "hunter2"}])
    (file,) = (tmp_path / "run" / "rollouts").iterdir()
    text = zstd.decompress(file.read_bytes()).decode()
    assert TOKEN not in text
    assert "hunter2" not in text
    assert text.count("[redacted]") == 3
    assert json.loads(text)["step"] == 0


def test_files_rotate_and_the_first_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(rollout_log, "MAX_ROLLOUTS_FILE_BYTES", 400)
    monkeypatch.setenv("RLVITALS_RECORDING_ROLLOUTS_MIB", str(1600 / 2**20))
    with rlvitals.start(tmp_path / "run") as run:
        for step in range(12):
            run.log_rollouts(step, [SAMPLE | {"noise": str(hash(str(step)))}])
            run.flush()
    files = sorted((tmp_path / "run" / "rollouts").iterdir())
    assert sum(file.stat().st_size for file in files) <= 1600
    steps = set(rollout_index.read(tmp_path / "run").rows["step"].tolist())
    assert {0, 11} <= steps
    assert 3 not in steps


def test_the_off_switches(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_ROLLOUTS_MIB", "0")
    with rlvitals.start(tmp_path / "run") as run:
        run.log_rollouts(0, [SAMPLE])
    assert not (tmp_path / "run" / "rollouts").exists()
    monkeypatch.setenv("RLVITALS_MODE", "off")
    with rlvitals.start(tmp_path / "none") as run:
        run.log_rollouts(0, [SAMPLE])
    assert not (tmp_path / "none").exists()


class Strange:
    def __str__(self):
        raise RuntimeError


WRONG = [None, 7, "text", {"prompt": "a"}, [7], [{"prompt": Strange(), "completion": {1, 2}}]]


@pytest.mark.parametrize("samples", WRONG)
def test_nothing_is_raised(tmp_path, samples):
    with rlvitals.start(tmp_path / "run", strict=False) as run:
        run.log_rollouts(0, samples)
        run.log_rollouts("no step", [SAMPLE])
        run.log_rollouts(1, [SAMPLE])
    assert 1 in rollout_index.read(tmp_path / "run").rows["step"]


def test_where_strict_a_wrong_call_raises(tmp_path):
    with (
        rlvitals.start(tmp_path / "run", strict=True) as run,
        pytest.raises(UsageError, match="rollouts must be a list of dicts, not an int"),
    ):
        run.log_rollouts(0, 7)


def test_a_folder_that_cannot_be_written_is_a_note(tmp_path):
    with rlvitals.start(tmp_path / "run", strict=False) as run:
        (tmp_path / "run" / "rollouts").write_text("a file in the way")
        run.log_rollouts(0, [SAMPLE])
    (log,) = rlvitals.read(tmp_path / "run")
    assert any("1 rollout not recorded: File exists" in note for note in log.notes)


def test_samples_beyond_the_queue_s_room_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(rollout_log, "MAX_QUEUE_BYTES", 4000)
    with rlvitals.start(tmp_path / "run") as run:
        run.log_rollouts(0, [SAMPLE] * 50)
    (log,) = rlvitals.read(tmp_path / "run")
    assert any("the disk is slower than the training" in note for note in log.notes)


KILLED = """
import os, rlvitals
run = rlvitals.start({folder!r})
for step in range(5):
    run.log_rollouts(step, [{{"prompt": "a", "completion": "b"}}])
    run.flush()
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_had_flushed_is_there(tmp_path):
    folder = str(tmp_path / "run")
    subprocess.run([sys.executable, "-c", KILLED.format(folder=folder)], check=False)
    assert rollout_index.read(tmp_path / "run").rows["step"].tolist() == [0, 1, 2, 3, 4]
