"""Runs passed on to the real services, offline; and services that fail or hang."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from effort import sampled
from openings import opening, rows
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import storage
from rlvitals.errors import UsageError
from rlvitals.readers.select import reader_of
from rlvitals.tracking import sink_worker
from rlvitals.tracking.sinks import SINKS, find, lazy, mlflow, selection, wandb
from rlvitals.types import Histogram

SCRIPT = Path(__file__).parent / "services_script.py"
STEPS = list(range(20, 60))
ODD = [np.nan, np.inf, 0.1]


PLANTED = "q7Xb00000Kd9wTzR4"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a service's folder of runs, and what the service says of the first; made once."""
    made = {}

    def of(service):
        pytest.importorskip({"parquet": "pyarrow"}.get(service, service))
        if service not in made:
            made[service] = record(tmp_path_factory.mktemp(service), service)
        return made[service]

    return of


def record(folder, service):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPT, folder, service, "--password", PLANTED],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    notes, found = json.loads(done.stdout.splitlines()[-1])
    assert notes == {}
    return folder, found


@pytest.mark.parametrize("service", sampled(["wandb", "trackio", "mlflow", "parquet"], 3))
def test_no_file_of_a_service_holds_a_secret(recorded, service):
    """Nor what the service itself notes of the program's arguments."""
    folder, _ = recorded(service)
    for part in (folder, folder / "secret"):
        written = [path for path in part.rglob("*") if path.is_file()]
        assert len(written) > 3
        assert [path for path in written if PLANTED.encode() in path.read_bytes()] == []


def assert_as_logged(logs, *, timed):
    """Both attempts' rows are there, at their steps."""
    expected = {
        "train/loss": [1 / (step + 1) for step in STEPS],
        "odd": [ODD[step % 3] for step in STEPS],
        "eval/return": [20.0, 30.0, 40.0, 50.0],
    }
    for key, values in expected.items():
        series = [log.series[key] for log in logs]
        steps = np.concatenate([one.steps for one in series])
        np.testing.assert_array_equal(np.concatenate([one.values for one in series]), values)
        assert steps.tolist() == [s for s in STEPS if key != "eval/return" or s % 10 == 0]
        if timed:
            times = np.concatenate([one.times for one in series])
            np.testing.assert_allclose(times, 1.7e9 + steps, rtol=0, atol=1e-3)


def test_wandb(recorded):
    folder = recorded("wandb")[0] / "run"
    files = sorted((folder / "wandb").glob("offline-run-*/*.wandb"))
    logs = [reader_of(file).read(file, None)[0] for file in files]
    assert_as_logged(logs, timed=True)
    ids = {log.settings["wandb/id"] for log in logs}
    assert ids == {json.loads((folder / "run.json").read_text())["id"]}
    assert len(logs) == 2
    for log, code in zip(logs, (1, 0), strict=True):
        assert log.settings["env/id"] == "CartPole-v1"
        assert log.settings["learning_rate"] == 1e-5
        assert log.settings["wandb/project"] == "run"
        assert log.ending.exit_code == code
        (shown,) = log.histograms["weights"]
        np.testing.assert_array_equal(shown.edges, [-1.0, 0.0, 0.5, 2.0])
        np.testing.assert_array_equal(shown.counts, [1.0, 0.0, 5.0])
    found = [json.loads(file.read_text()) for file in folder.rglob("*.table.json")]
    assert next(
        {"columns": table["columns"], "data": table["data"]}
        for table in found
        if "text" in table["columns"]
    ) == {"columns": ["step", "text"], "data": [[26, "a text"]]}
    (table, _) = (table for table in found if "reward" in table["columns"])
    assert table["data"] == [[27, "a", 0.5], [27, None, 1.0]]


@pytest.mark.soak
def test_without_an_account_wandb_is_kept_offline_and_says_so(tmp_path):
    pytest.importorskip("wandb")
    program = (
        "import rlvitals, sys\n"
        "run = rlvitals.start('run', sinks=['wandb'])\n"
        "run.log(1, {'loss': 0.5})\n"
        "run.finish()\n"
        "sys.stdout.write(str(run._pump.notes.counts))\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path,
        env={**env, "HOME": str(tmp_path), "PYTHONPATH": str(Path(rlvitals.__file__).parents[1])},
        capture_output=True, text=True, check=False, timeout=HANG_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("{}")
    assert "nobody is logged in, so the run is kept offline" in done.stderr
    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert reader_of(file).read(file, None)[0].series["loss"].values.tolist() == [0.5]


def test_trackio(recorded):
    folder, _ = recorded("trackio")
    (path,) = (folder / "trackio").glob("run*.db")
    log, _ = reader_of(path).read(path, None)
    assert_as_logged([log], timed=False)  # Trackio takes no times
    assert log.settings == {"learning_rate": 3e-4, "env/id": "CartPole-v1", "cuda": True}
    assert log.tables["completions"].columns["reward"] == [0.5, 1.0] * 2
    assert [one.step for one in log.histograms["weights"]] == [25, 25]


def test_mlflow(recorded):
    folder, found = recorded("mlflow")
    assert (found["status"], found["name"], found["tags"]["group"]) == ("FINISHED", "first", "g")
    artifacts = folder / "mlruns-run"
    (path,) = artifacts.glob("*/*/meta.yaml")
    log, _ = reader_of(path).read(path, None)
    assert_as_logged([log], timed=True)
    assert log.settings["learning_rate"] == 3e-4
    (text,) = artifacts.rglob("texts/sample/26.md")
    assert text.read_text() == "a text"
    (table,) = artifacts.rglob("tables/completions/27.json")
    assert json.loads(table.read_text()) == {
        "columns": ["step", "completion", "reward"],
        "data": [[27, "a", 0.5], [27, None, 1.0]],
    }
    (shown,) = artifacts.rglob("histograms/weights/25.json")
    assert json.loads(shown.read_text())["counts"] == [1.0, 0.0, 5.0]


def test_an_experiment_that_another_process_creates_meanwhile_is_used(tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file://{tmp_path}/mlruns"
    look_up = tracking.MlflowClient.get_experiment_by_name
    answers = []

    def late(client, name):
        answers.append(look_up(client, name))
        if len(answers) == 1:
            client.create_experiment(name)  # after this look, before the sink creates it
        return answers[-1]

    monkeypatch.setattr(tracking.MlflowClient, "get_experiment_by_name", late)
    with rlvitals.start(
        tmp_path / "run", project="cart", sinks={"mlflow": {"tracking_uri": uri}}
    ) as run:
        run.log(1, {"loss": 0.5})
    assert run._pump.notes.counts == {}
    assert answers[0] is None
    assert len(answers) == 2


def run_with(folder, uri, monkeypatch, count=2000):
    """Record beside a service; return the notes, and how long the slowest call took."""
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(sink_worker, "SINK_CLOSE_SECONDS", 1.0)
    run = rlvitals.start(folder, sinks={"mlflow": {"tracking_uri": uri}})
    slowest = 0.0
    for step in range(count):
        began = time.perf_counter()
        run.log(step, {"loss": 1.0})
        slowest = max(slowest, time.perf_counter() - began)
    run.finish()
    with storage.open(folder) as view:
        assert view.series("loss").steps.tolist() == list(range(count))
    return run._pump.notes.counts, slowest


def test_a_service_that_refuses_costs_nothing_but_its_own_numbers(tmp_path, monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # not listening: connections are refused
        uri = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        notes, _ = run_with(tmp_path, uri, monkeypatch)
    assert any(note.startswith("sink mlflow: ") for note in notes)


def test_a_sink_that_fails_is_told_at_first_and_at_the_end(tmp_path, caplog, monkeypatch):
    def broken(_):
        raise OSError("no\nroute " + "x" * 999)

    sink = replace(find("csv"), open=lazy.open_lazily(broken))
    monkeypatch.setattr(selection, "find", {"csv": sink}.get)
    with rlvitals.start(tmp_path, sinks=["csv"]) as run:
        for step in range(3):
            run.log(step, {"loss": 1.0})
            run.flush()
    first, last = (record.getMessage() for record in caplog.records)
    assert first.startswith("sink csv: OSError: no route xxx")
    assert len(first) < 200
    assert last.startswith(first)
    assert last.endswith(" times)")


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_nobody_is_asked_for_a_key_of_wandb(tmp_path):
    """W&B's own `init` asks at a terminal, and waits for an answer."""
    pytest.importorskip("wandb")
    code = (
        "import sys, rlvitals\n"
        "run = rlvitals.start(sys.argv[1], sinks=['wandb'])\n"
        "for step in range(3): run.log(step, {'loss': 1.0})\n"
        "run.finish()\n"
    )
    leader, follower = os.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tmp_path / "run"],
        check=True, timeout=HANG_SECONDS,
        stdin=follower, stdout=follower, stderr=follower,
        env={**kept, "HOME": str(tmp_path), "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    assert done.returncode == 0
    said = os.read(leader, 65536).decode().splitlines()
    os.close(leader)
    assert said[0].startswith("sink wandb: nobody is logged in, so the run is kept offline: ")
    assert not any("times)" in line for line in said)


def test_a_service_that_hangs_holds_up_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:  # accepts, never answers
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        notes, slowest = run_with(tmp_path, uri, monkeypatch)
        assert slowest < 60  # seconds of a busy machine, and half of what a request waits
        assert any(note.startswith("sink mlflow: did not close") for note in notes)


def test_a_missing_package_is_said_at_once(tmp_path):
    opened = lazy.open_lazily(lambda _: pytest.fail("it was opened"), "no_such_package")
    with pytest.raises(UsageError, match="no_such_package is not installed"):
        opened(opening(tmp_path))


def test_a_sink_that_could_not_be_opened_is_tried_again(tmp_path):
    (tmp_path / "metrics").write_text("in the way")
    sink = find("csv")
    writing = sink.open(opening(tmp_path))
    for _ in range(2):
        with pytest.raises(NotADirectoryError):
            writing.scalars(rows())
    (tmp_path / "metrics").unlink()
    with pytest.raises(NotADirectoryError):  # not at every call
        writing.scalars(rows())
    writing.retry_time = 0.0
    writing.scalars(rows())
    writing.close("finished")
    assert (tmp_path / "metrics" / "train-1.csv").exists()


def test_many_bins_are_put_together():
    edges = np.concatenate(([-np.inf], np.arange(1999.0), [np.inf]))
    found, counts = wandb.merge_bins(Histogram(0, 0.0, edges, np.ones(2000)), 512)
    assert len(counts) == 500
    assert sum(counts) == 2000
    assert (found[0], found[-1], len(found)) == (0.0, 1998.0, 501)


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        ("train/loss", "train/loss"),
        ("ünï@%", "ünï__"),
        ("/../../a", "a"),
        ("", "_"),
        ("a" * 300, "a" * 250),
    ],
)
def test_keys_as_mlflow_takes_them(key, plain):
    assert mlflow.plain(key) == plain


def test_every_sink_says_what_it_is():
    assert len({sink.name for sink in SINKS}) == len(SINKS)
    assert all(sink.title and find(sink.name) is sink for sink in SINKS)
    assert find("none") is None
