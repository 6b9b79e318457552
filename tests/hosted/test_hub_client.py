"""The hub's own client asks a server on loopback: what we ask of the client, and what comes of it.

The server answers as the client's requests want it: this proves our side alone.
"""

import json
import os
import subprocess
import sys

import pytest
import tfrecords

pytest.importorskip("huggingface_hub")
pytest.importorskip("fsspec")

from hub_server import serve


def state(count):
    """A Trainer's state, as it lies in each checkpoint."""
    rows = [
        {"step": n, "epoch": n / 100, "loss": 2.0 - n / 50, "reward": n / 60, "kl": 0.01}
        for n in range(1, count + 1)
    ]
    document = {"global_step": count, "max_steps": 60, "log_history": rows, "epoch": 1.0}
    return json.dumps(document).encode()


def events(count):
    rows = [
        tfrecords.event(n, tfrecords.simple("rollout/ep_rew_mean", 5.0 * n + n % 3), time=1e9 + n)
        for n in range(1, count + 1)
    ]
    return tfrecords.VERSION + b"".join(rows)


@pytest.fixture
def server():
    with serve() as server:
        server.repositories["models/me/sums"] = {
            "checkpoint-30/trainer_state.json": state(30),
            "checkpoint-60/trainer_state.json": state(60),
            "model.safetensors": b"x" * 1000,
            "README.md": b"# sums",
        }
        server.repositories["datasets/me/logs"] = {
            "ppo/events.out.tfevents.1700000000.host.1.0": events(60)
        }
        yield server


@pytest.fixture
def ask(server, tmp_path):
    """Run `diagnose` as a user does, with the settings of the hub's client."""

    def run(address):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "PYTEST"))}
        environ = {
            **kept,
            "HOME": str(tmp_path),
            "HF_ENDPOINT": server.url,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        return subprocess.run(
            [sys.executable, "-m", "rlvitals", "diagnose", address, "--json"],
            cwd=tmp_path, env=environ, check=False, capture_output=True, text=True,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("address", ["hf:me/sums", "https://huggingface.co/me/sums/tree/main"])
def test_a_model_s_trainer_state_is_judged(server, ask, address):
    done = ask(address)
    assert done.stdout, done.stderr
    trace = json.loads(done.stdout)["trace"]
    assert trace["series"]["outcome/reward"]["last_step"] == 60
    assert any("read of 2 trainer_state.json: checkpoint-60" in note for note in trace["notes"])
    assert {path for path, _ in server.reads} == {
        "checkpoint-30/trainer_state.json", "checkpoint-60/trainer_state.json",
    }  # fmt: skip


def test_event_files_of_a_data_set_are_judged(ask):
    done = ask("hf:datasets/me/logs")
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert document["verdict"]["word"] == "learning"
    assert document["trace"]["series"]["outcome/return"]["points"] == 60


TRACKED = """
import trackio
from trackio.sqlite_storage import SQLiteStorage

for name in ("good", "bad"):
    trackio.init(project="maze", name=name, config={"gamma": 0.99})
    for i in range(60):
        value = 5.0 * i + i % 3 if name == "good" else 40.0 + i % 3
        item = {"rollout/ep_rew_mean": value, "train/approx_kl": float("nan") if i == 9 else 0.01}
        trackio.log(item if i % 2 else item | {"half": i}, step=i * 10)
    trackio.finish()
SQLiteStorage._dataset_import_attempted = True  # as after the start of a Space
SQLiteStorage.export_to_parquet()
"""


@pytest.mark.soak
def test_trackio_s_data_set_is_judged_as_its_database(server, ask, tmp_path):
    """Trackio writes both; the data set is what a Space backs up on the hub."""
    pytest.importorskip("trackio")
    pytest.importorskip("pyarrow")
    home = tmp_path / "trackio"
    environ = {**os.environ, "TRACKIO_DIR": str(home), "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", TRACKED], env=environ, check=True, capture_output=True)
    tables = {file.name: file.read_bytes() for file in home.glob("*.parquet")}
    assert {"maze.parquet", "maze_configs.parquet"} <= set(tables)
    server.repositories["datasets/me/tracks"] = {**tables, "data/train.parquet": b"x"}
    by_name = {}
    for address in ("hf:datasets/me/tracks", str(home / "maze.db")):
        done = ask(address)
        assert done.stdout, done.stderr
        documents = [document["trace"] for document in json.loads(done.stdout)]
        by_name[address] = {
            trace["name"].rpartition("/")[2]: (trace["series"], trace["settings"])
            for trace in documents
        }
    hosted, local = by_name.values()
    assert hosted == local
    assert set(local) == {"good", "bad"}
    assert local["good"][1]["gamma"] == 0.99
    assert "data/train.parquet" not in {path for path, _ in server.reads}


def test_a_repository_that_is_not_there_is_said(ask):
    done = ask("hf:me/nothing")
    assert done.returncode == 3
    assert "hf://me/nothing" in done.stderr
    assert "Traceback" not in done.stderr
