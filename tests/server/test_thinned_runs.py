"""The page of a large run: thinned while it is read, and exact where it is zoomed into."""

import base64
import io
import json
import time

import numpy as np
import pytest
from served import build
from starlette.testclient import TestClient

import rlvitals
from rlvitals import settings
from rlvitals.following.file_tail import FileTail
from rlvitals.server import chart_data, run_files
from rlvitals.server.live_run import LiveRun
from rlvitals.server.run_files import Entry
from rlvitals.storage import thin_read
from rlvitals.storage.compact import compact
from rlvitals.views import diagnosis_json, phrases

ROWS, SPIKE_STEP, SPIKE = 40_000, 12_345, 500.0
UNKNOWN = "my/number"


def record(folder, first=0, last=ROWS):
    resume = "must" if first else "never"
    run = rlvitals.start(str(folder), framework="sb3", flush_seconds=0.05, resume=resume)
    for step in range(first, last):
        value = SPIKE if step == SPIKE_STEP else step % 7
        entropy_loss = float("nan") if step == 999 else -1.0 - step % 3
        run.log(step, {"train/loss": value, "train/entropy_loss": entropy_loss, UNKNOWN: value})
    run.finish()


def open_run(root):
    entry = Entry("long", root, root / "long", None)
    return LiveRun("long", run_files.read_run(entry), settings.load(root), time.time())


def pack(run, steps=None):
    charts = list(run.page.charts.values())
    names = {line.metric for chart in charts for line in chart.panel.lines}
    logged = run.series() if steps is None else run.series_near(names, steps)
    options = chart_data.Options(steps)
    return chart_data.pack(charts, run.page, run.trace, logged, options)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    root = tmp_path_factory.mktemp("large") / "runs"
    record(root / "long")
    return root


def test_the_page_of_a_thinned_run_is_that_of_the_whole_run(recorded, monkeypatch):
    whole = open_run(recorded)
    compact(recorded / "long")
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    run = open_run(recorded)
    for key in ("optimiser/loss", "exploration/entropy", UNKNOWN):
        assert run.series()[key].outline is not None
    assert diagnosis_json.diagnosis(run.diagnosis) == diagnosis_json.diagnosis(whole.diagnosis)
    assert phrases.headline(run.diagnosis) == phrases.headline(whole.diagnosis)
    for steps in ((SPIKE_STEP - 300, SPIKE_STEP + 300), (990, 1010), (0, 10_000), (0, ROWS)):
        near, expected = pack(run, steps), pack(whole, steps)
        near_curves, curves = (
            [curve for chart in page["charts"] for curve in chart["curves"]]
            for page in (near, expected)
        )
        for curve, other in zip(near_curves, curves, strict=True):
            assert curve["bad"] == other["bad"]
            assert abs(curve["points"] - other["points"]) <= 2  # neighbours of the range
    shown, expected = pack(run), pack(whole)
    for chart, other in zip(shown["charts"], expected["charts"], strict=True):
        for curve, whole_curve in zip(chart["curves"], other["curves"], strict=True):
            assert (curve["points"], curve["bad"]) == (whole_curve["points"], whole_curve["bad"])
    assert run.whole_trace()["optimiser/loss"].values[SPIKE_STEP] == SPIKE


def test_a_spike_of_a_thinned_run_is_seen_and_served(recorded, monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    with TestClient(build(recorded), base_url="http://127.0.0.1") as client:
        page = client.get("/run/long").text
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        names = "&".join(f"name={name}" for name in data["charts"])
        charts = client.get(f"/api/charts?key=long&{names}").json()
        drawn = [chart for chart in charts["charts"] if "optimiser/loss" in chart["metrics"]]
        assert drawn
        for chart in drawn:
            curve = chart["curves"][chart["metrics"].index("optimiser/loss")]
            assert curve["points"] == ROWS
            values = charts["columns"][curve["column"]]["values"]
            assert SPIKE in np.frombuffer(base64.b64decode(values["b"]), f"<f{values['f']}")
        query = f"key=long&metric=optimiser/loss&first={SPIKE_STEP - 1}&last={SPIKE_STEP + 1}"
        near = client.get(f"/api/series?{query}").json()
        assert near["values"][near["steps"].index(SPIKE_STEP)] == SPIKE
        entropy = client.get("/api/series?key=long&metric=exploration/entropy&first=5&last=7")
        assert entropy.json()["values"][-3:] == [3.0, 1.0, 2.0]
        lines = list(io.StringIO(client.get("/api/series.csv?key=long&metric=optimiser/loss").text))
        assert len(lines) == ROWS + 1


@pytest.mark.parametrize("first_rows", [100, 20_000])  # small when it is opened, or large
def test_a_run_that_is_written_to_is_judged_as_if_it_were_read_whole(
    tmp_path, monkeypatch, first_rows
):
    run = rlvitals.start(str(tmp_path / "long"), framework="sb3", flush_seconds=0.05)
    rng = np.random.default_rng(0)

    def write(first, last):
        for step in range(first, last):
            value = SPIKE if step == SPIKE_STEP else rng.normal()
            run.log(step, {"train/loss": value, UNKNOWN: value})
            if step % 100 == 0:
                run.log(step, {"rollout/ep_rew_mean": step / 100})
        run.flush()

    monkeypatch.setattr(FileTail, "max_points", 1000)
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 100_000)
    write(0, first_rows)
    live = open_run(tmp_path)
    for first in range(first_rows, first_rows + 30_000, 10_000):
        write(first, first + 10_000)
        live.look(time.time())
    run.finish()
    live.look(time.time())
    assert live.trace["optimiser/loss"].every > 1
    assert live.series()[UNKNOWN].outline is not None
    live.judge(time.time())
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1 << 40)
    monkeypatch.setattr(FileTail, "max_points", 1 << 40)
    whole = open_run(tmp_path)
    assert whole.trace["optimiser/loss"].every == 1
    assert diagnosis_json.diagnosis(live.diagnosis) == diagnosis_json.diagnosis(whole.diagnosis)
    assert live.series_near(["optimiser/loss"], (SPIKE_STEP, SPIKE_STEP))[
        "optimiser/loss"
    ].values.tolist() == [SPIKE]


def test_new_rows_of_a_thinned_run_are_published(tmp_path, monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    record(tmp_path / "long")
    run = open_run(tmp_path)
    assert run.trace["optimiser/loss"].every > 1
    run.look(time.time())
    assert not run.needs_judging(time.time())
    sent = []
    monkeypatch.setattr(run.channel, "publish", lambda name, content: sent.append((name, content)))
    record(tmp_path / "long", ROWS, ROWS + 50)
    run.look(time.time())
    (kind, content), *others = sent
    assert (kind, content["last"], others) == ("points", ROWS + 49, [])
    assert set(content["points"]) == {"optimiser/loss", "exploration/entropy"}
    values = content["points"]["exploration/entropy"]["values"]
    drawn = np.frombuffer(base64.b64decode(values["b"]), f"<f{values['f']}")
    assert drawn.tolist() == [1.0 + step % 3 for step in range(ROWS, ROWS + 50)]
    loss = run.trace["optimiser/loss"]
    assert (loss.every > 1, loss.count, loss.steps[-1]) == (True, ROWS + 50, ROWS + 49)


def test_a_log_whose_steps_often_go_back_is_not_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(FileTail, "max_points", 1000)
    steps = [4 * block + row for block in range(5000) for row in (2, 0, 1, 3)]
    rows = [f"{step},{step % 7}" for step in steps]
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "log.csv").write_text("\n".join(["step,loss", *rows, ""]))
    run = open_run(tmp_path)
    run.look(time.time())
    assert run.trace["optimiser/loss"].every == 1
    assert len(run.trace["optimiser/loss"]) == 20_000
