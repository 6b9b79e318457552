"""Runs of a real MLflow server on this machine, asked for by its own client."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from waiting import HANG_SECONDS

from rlvitals.hosted import address, fetch
from rlvitals.hosted import mlflow_server as hosted

pytest.importorskip("flask_cors", reason="the server needs it")
pytestmark = pytest.mark.soak  # a server of several processes starts in ten seconds


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1"),
        *("--default-artifact-root", str(folder / "artifacts")),
    ]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + HANG_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()  # noqa: S310 - ours
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail((folder / "log").read_text()[-3000:])
                time.sleep(0.2)
        yield url
        os.killpg(process.pid, 15)


@pytest.fixture
def client(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=server)


def record(client, experiment, name, *, rises=True, rows=60, ends=True):
    from mlflow.entities import Metric, Param

    run = client.create_run(experiment, run_name=name)
    log(client, run, range(1, rows + 1), rises=rises)
    client.log_batch(run.info.run_id, params=[Param("target_kl", "0.02")])
    if ends:
        client.set_terminated(run.info.run_id)
    assert Metric
    return run.info.run_id


def log(client, run, steps, *, rises=True):
    from mlflow.entities import Metric

    points = []
    for n in steps:
        value = 5.0 * n + n % 3 if rises else 40.0 + n % 3
        stamp = 1_700_000_000_000 + 60_000 * n
        points.append(Metric("rollout/ep_rew_mean", value, stamp, 2048 * n))
        points.append(Metric("train/approx_kl", 0.01 if rises else 0.1, stamp, 2048 * n))
    client.log_batch(run.info.run_id, metrics=points)


def test_runs_of_a_server_are_judged_and_only_what_is_new_is_fetched(
    client, server, call, monkeypatch
):
    experiment = client.create_experiment("maze")
    good = record(client, experiment, "good")
    bad = record(client, experiment, "bad", rises=False)
    target = f"mlflow:{server}/#/experiments/{experiment}"
    code, out, error = call("diagnose", target, "--json")
    assert (code, error) == (1, "")
    words = {d["trace"]["name"]: d["verdict"]["word"] for d in json.loads(out)}
    assert words == {"maze/good": "learning", "maze/bad": "stalled"}
    one = json.loads(call("diagnose", f"{target}/runs/{bad}", "--json")[1])
    assert one["trace"]["settings"]["target_kl"] == 0.02

    growing = record(client, experiment, "growing", rows=30, ends=False)
    asked = []
    real = type(client).get_metric_history
    monkeypatch.setattr(
        type(client),
        "get_metric_history",
        lambda self, run, key: asked.append((run, key)) or real(self, run, key),
    )
    call("diagnose", target)
    assert {run for run, _ in asked} == {growing}
    assert len(asked) == 2
    asked.clear()
    call("diagnose", target)
    assert asked == []
    log(client, client.get_run(growing), range(31, 41))
    (document,) = [
        d
        for d in json.loads(call("diagnose", target, "--json")[1])
        if d["trace"]["name"] == "maze/growing"
    ]
    assert document["trace"]["series"]["outcome/return"]["last_step"] == 40 * 2048
    assert {run for run, _ in asked} == {growing}
    assert good


def test_triage_sorts_them_and_counts_the_hours(client, server, call):
    experiment = client.create_experiment("triage")
    record(client, experiment, "good")
    record(client, experiment, "bad", rises=False)
    target = f"mlflow:{server}/#/experiments/{experiment}"
    code, out, _ = call("triage", target, "--json", "--since", "1d", "--now", "1700004000")
    rows = json.loads(out)["runs"]
    assert [row["run"] for row in rows] == ["triage/bad", "triage/good"]
    assert rows[0]["hours"] == pytest.approx(59 / 60, abs=0.02)
    assert code == 1


def test_errors_name_the_server_and_no_password(call, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(hosted, "MLFLOW_RETRIES", "0")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    code, _, error = call("diagnose", "mlflow:http://user:geheim@127.0.0.1:9")
    assert code == 3
    first, where, hint = error.splitlines()
    assert first == "error: no MLflow server answers"
    assert where.startswith("  at:  http://")
    assert "MLFLOW_TRACKING_TOKEN" in hint
    assert "geheim" not in error
    assert all("geheim" not in str(path) for path in Path(tmp_path).rglob("*"))


def test_a_key_cannot_leave_the_cache(tmp_path):
    for key in ("../x", "/etc/x", "a/../../x", "a\x00b"):
        assert hosted._file(tmp_path, key) is None
    assert hosted._file(tmp_path, "train/loss") == tmp_path / "train" / "loss"
    folder = fetch.cache_folder(address.Address(address.Source.MLFLOW, "http://u:p@host/x"))
    assert "u:p" not in str(folder)
