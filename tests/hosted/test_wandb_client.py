"""W&B's own client asks a server on loopback: what we ask of the client, and what comes of it.

The server answers as the client's requests want it: this proves our side alone.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("wandb")
pytest.importorskip("pyarrow")

from wandb_server import serve


def rows(count, *, rises=True):
    return [
        {
            "_step": n,
            "_timestamp": 1_700_000_000.0 + 60 * n,
            "global_step": 2048 * (n + 1),
            "rollout/ep_rew_mean": 5.0 * n + n % 3 if rises else 40.0 + n % 3,
            "train/approx_kl": 0.01 if rises else 0.1,
        }
        for n in range(count)
    ]


@pytest.fixture
def server():
    with serve() as server:
        settings = {"seed": 1, "target_kl": 0.02, "_wandb": {"version": "0"}}
        run = {"config": settings, "state": "finished"}
        server.runs["good"] = {**run, "rows": rows(60), "exported": 60}
        server.runs["bad"] = {**run, "rows": rows(60, rises=False), "exported": 40}
        server.runs["live"] = {**run, "rows": rows(30), "exported": 0, "state": "running"}
        yield server


@pytest.fixture
def ask(server, tmp_path):
    """Run a verb as a user does, with the settings of W&B's client."""

    def run(*words):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB", "PYTEST"))}
        environ = {
            **kept,
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "WANDB_BASE_URL": server.url,
            "WANDB_API_KEY": "0123456789" * 4,
            "WANDB_SILENT": "true",
            "WANDB_ERROR_REPORTING": "false",
        }
        command = [sys.executable, "-m", "rlvitals", *words, "--json"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, check=False, capture_output=True, text=True
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_project_is_triaged_and_only_what_is_new_is_asked_for(server, ask):
    first = {row["run"].rpartition("-")[2]: row for row in ask("triage", "wandb:me/maze")["runs"]}
    assert {name: row["verdict"] for name, row in first.items()} == {
        "good": "learning", "bad": "stalled", "live": "learning",
    }  # fmt: skip
    assert {name for name, _ in server.queries} >= {"Runs", "RunParquetHistory", "HistoryPage"}
    server.queries.clear()
    server.runs["live"]["rows"] += rows(40)[30:]
    documents = ask("diagnose", "https://wandb.ai/me/maze?nw=nwuserme", "--fail-on", "never")
    series = {d["trace"]["name"].rpartition("-")[2]: d["trace"]["series"] for d in documents}
    assert series["live"]["outcome/return"]["points"] == 40
    assert series["bad"]["outcome/return"]["points"] == 60  # none twice, of file and live rows
    asked = [v for name, v in server.queries if name in {"RunParquetHistory", "HistoryPage"}]
    assert {v.get("runName") or v.get("run") for v in asked} == {"live"}
    assert min(v["minStep"] for name, v in server.queries if name == "HistoryPage") == 30


@pytest.mark.soak
def test_the_hours_of_a_team_count_each_gpu(server, ask):
    server.runs["bad"]["gpus"], server.runs["good"]["gpus"] = 8, 2
    total = ask("triage", "wandb:me/maze")["total"]
    assert total["gpu_hours_of_broken"] == pytest.approx(8 * total["hours_of_broken"])
    hours_of_good = 59 / 60  # 60 rows, a minute apart
    assert total["gpu_hours"] == pytest.approx(total["gpu_hours_of_broken"] + 2 * hours_of_good)


def test_a_group_by_its_address_and_by_its_page(server, ask):
    server.runs["good"]["group"] = server.runs["live"]["group"] = "lr 1"
    page = "https://wandb.ai/me/maze/groups/lr%201/workspace?nw=x"
    for address in ("wandb:me/maze/groups/lr 1", page):
        rows = ask("triage", address, "--since", "9999d")["runs"]
        assert {row["run"].rpartition("-")[2] for row in rows} == {"good", "live"}


def test_a_run_by_its_address_and_by_its_page(ask):
    for address in ("wandb:me/maze/good", "https://wandb.ai/me/maze/runs/good/workspace?nw=x"):
        document = ask("diagnose", address)
        assert document["verdict"]["word"] == "learning"
        assert document["trace"]["settings"]["target_kl"] == 0.02
        assert document["trace"]["series"]["outcome/return"]["last_step"] == 60 * 2048
