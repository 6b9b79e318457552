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
    entry = Entry("long", root / "long", None)
    return LiveRun("long", run_files.read_run(root, entry), settings.load(root), time.time())


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


def test_a_thinned_run_that_goes_on_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    record(tmp_path / "long")
    run = open_run(tmp_path)
    assert run.trace["optimiser/loss"].every > 1
    run.look(time.time())
    assert not run.needs_judging(time.time())
    record(tmp_path / "long", ROWS, ROWS + 50)
    run.look(time.time())
    assert run.trace["optimiser/loss"].every == 1
    assert len(run.trace["optimiser/loss"]) == ROWS + 50
    assert run.needs_judging(time.time())


def test_a_run_that_is_written_to_is_not_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(thin_read, "LARGE_RUN_BYTES", 1000)
    run = rlvitals.start(str(tmp_path / "long"), framework="sb3", flush_seconds=0.05)
    for step in range(20_000):
        run.log(step, {"train/loss": float(step % 7)})
    run.flush()
    live = open_run(tmp_path)
    run.log(20_000, {"train/loss": 1.0})
    run.finish()
    assert np.all(live.trace["optimiser/loss"].steps == np.arange(20_000))
    live.look(time.time())
    assert live.trace.last_step == 20_000
