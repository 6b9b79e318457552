"""`rlvitals triage` of a folder: worst first, hours, and only what logged lately."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import tune_experiment
from alerts.receivers import http
from small_logs import write

import rlvitals
from rlvitals.tracking import machine
from rlvitals.views import triage_table
from rlvitals.views.triage_table import TriageRow

KL = ("--set", "target_kl=0.02")


def timed(folder, start=1_700_000_000, rises=True):
    """Write a run of an hour: each row with its time."""
    folder.mkdir(parents=True)
    rows = []
    for n in range(1, 61):
        value = 5.0 * n + n % 3 if rises else 40.0 + 3 * np.sin(n)
        row = {"step": n * 2048, "_timestamp": start + 60 * n, "rollout/ep_rew_mean": value}
        rows.append(json.dumps({**row, "train/approx_kl": 0.01 if rises else 0.1}))
    (folder / "progress.json").write_text("\n".join(rows) + "\n")
    return folder


def test_the_worst_come_first_with_their_hours(call, tmp_path):
    timed(tmp_path / "runs" / "good")
    timed(tmp_path / "runs" / "bad", rises=False)
    code, out, error = call("triage", tmp_path / "runs", *KL, "--json")
    assert (code, error) == (1, "")
    document = json.loads(out)
    bad, good = document["runs"]
    assert (bad["run"], bad["broken"], good["run"], good["broken"]) == ("bad", True, "good", False)
    assert bad["cause"]
    assert bad["hours"] == pytest.approx(59 / 60, abs=0.01)
    assert document["total"]["hours_of_broken"] == pytest.approx(bad["hours"])
    assert document["total"]["hours"] == pytest.approx(bad["hours"] + good["hours"])
    text = call("triage", tmp_path / "runs", *KL)[1]
    assert text.index("bad") < text.index("good")
    assert "2 runs, 1 broken: 59 min of 2.0 h" in text
    page = call("triage", tmp_path / "runs", *KL, "--markdown")[1]
    assert "| ❌ " in page


def test_gpu_hours_are_of_the_gpus_that_a_run_held():
    one = TriageRow("one", "stalled", True, 3.0, None, "no-learning", "flat", gpus=8)
    rows = [one, replace(one, run="two", broken=False, hours=1.0, gpus=2)]
    assert triage_table.sentence(rows).endswith("; 24 of 26 GPU-hours on broken runs")
    rows.append(replace(one, run="three", gpus=None))
    assert triage_table.sentence(rows).endswith(" (1 run without a recorded GPU)")
    assert "GPU" not in triage_table.sentence(rows[2:])


@pytest.mark.parametrize(("ranks", "gpus"), [("1", 4), ("16", 16)])
def test_a_recorded_run_knows_its_gpus(tmp_path, monkeypatch, ranks, gpus):
    monkeypatch.setattr(machine, "gpus", lambda: ["NVIDIA H100"] * 4)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", ranks)
    with rlvitals.start(tmp_path / "run") as run:
        run.log({"return": 1.0}, step=1)
    assert rlvitals.diagnose(tmp_path / "run").trace.settings["rlvitals/gpus"] == gpus


def test_the_list_is_one_page_without_a_script(call, tmp_path):
    timed(tmp_path / "runs" / "good")
    timed(tmp_path / "runs" / "<b>bad", rises=False)
    page = tmp_path / "pages" / "triage.html"
    code, out, _ = call("triage", tmp_path / "runs", *KL, "--page", page)
    assert code == 1
    assert "2 runs, 1 broken" in out
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "<script" not in text
    assert "<b>bad" not in text
    assert "2 runs, 1 broken: 59 min of 2.0 h" in text
    assert text.index("&lt;b&gt;bad") < text.index(">good<")
    file = tmp_path / "file"
    file.touch()
    code, _, error = call("triage", tmp_path / "runs", "--page", file / "page.html")
    assert (code, "no page can be written there" in error) == (2, True)


def test_since_counts_from_the_last_row_or_else_the_file(call, tmp_path):
    timed(tmp_path / "runs" / "old", start=1_700_000_000)
    timed(tmp_path / "runs" / "new", start=1_700_000_000 + 86_400)
    write(tmp_path / "runs" / "undated")
    os.utime(tmp_path / "runs" / "undated" / "progress.csv", (1.7e9, 1.7e9))
    now = ("--now", str(1_700_000_000 + 90_100))
    names = lambda *argv: {
        run["run"]
        for run in json.loads(call("triage", tmp_path / "runs", "--json", *argv)[1])["runs"]
    }
    assert names(*now) == {"old", "new", "undated"}
    assert names(*now, "--since", "2h") == {"new"}
    code, _, error = call("triage", tmp_path / "runs", "--since", "soon")
    assert code == 2
    assert "'soon' is not a time" in error


def test_what_cannot_be_read_is_a_row_and_no_pass(call, tmp_path):
    write(tmp_path / "runs" / "good")
    (tmp_path / "empty").mkdir()
    code, out, _ = call("triage", tmp_path / "runs", tmp_path / "empty", "--json")
    assert code == 4
    assert [run["verdict"] for run in json.loads(out)["runs"]] == ["unreadable", "learning"]
    assert call("triage", tmp_path / "empty")[0] == 3


def test_alarms_of_all_runs_are_one_message(call, tmp_path):
    timed(tmp_path / "runs" / "good")
    timed(tmp_path / "runs" / "bad", rises=False)
    timed(tmp_path / "runs" / "worse", rises=False)
    when = ("--alert-when", "warning", "--alert-when", "stalled")
    with http(400) as refused, http() as taken:
        channels = ("--alert", f"webhook={refused.url}", "--alert", f"webhook={taken.url}")
        code, out, error = call("triage", tmp_path / "runs", *KL, *channels, *when)
    assert code == 1
    assert "3 runs, 2 broken" in out
    assert error.startswith("an alert to webhook failed: ")
    ((_, _, message),) = taken.requests
    assert {alert["run"] for alert in message["alerts"]} == {"bad", "worse"}
    assert message["alerts"][0]["see"] == f"rlvitals diagnose {tmp_path / 'runs' / 'bad'}"


def test_the_trials_of_an_experiment_of_ray_tune_stand_together(call, tmp_path):
    """They stand behind the worst of them; runs of no group stand alone."""
    root = tmp_path / "results"
    tune_experiment.write(root / "sweep", (1e-3, 1e-4))
    tune_experiment.write(root / "single", (1e-3,), seeds=(0,))
    timed(root / "bad", rises=False)
    rows = json.loads(call("triage", root, *KL, "--json")[1])["runs"]
    assert sorted(row["group"] for row in rows) == ["", "single", *["sweep"] * 4]
    groups = [row["group"] for row in rows]
    first = groups.index("sweep")
    assert groups[first : first + 4] == ["sweep"] * 4
    lines = call("triage", root, *KL)[1].splitlines()
    (head,) = [n for n, line in enumerate(lines) if line.startswith("group")]
    words = " ".join(lines[head : head + 2]).split()
    assert words[-5:] == ["sweep", "4", "runs,", "0", "broken"]
    page = call("triage", root, *KL, "--markdown")[1]
    assert page.count("**group**") == 1
    assert "| **sweep** | 4 runs, 0 broken |" in page
    out = call("compare", root / "sweep", root / "single", "--by", "group")[1]
    assert "4 runs" in out or "group=sweep" in out
    assert "group=single" in out
