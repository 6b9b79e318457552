"""The parts of a run's page beyond the diagnosis: rollouts, distributions, console, timeline."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from served import build, record, until
from starlette.testclient import TestClient

import rlvitals
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.server import chart_data
from rlvitals.storage import compact, thin_file
from rlvitals.types import Series

RUNS = Path(__file__).parents[1] / "runs"
EVIL = "<script>alert(1)</script>"


def record_language(folder):
    """Record a run with rollouts, histograms, parts of the reward, and two attempts."""
    rng = np.random.default_rng(0)
    for first in (0, 20):
        run = rlvitals.start(str(folder), framework="trl", settings={"learning_rate": 1e-6})
        for step in range(first, first + 20):
            run.log(
                {
                    "reward": 0.5 + step / 100,
                    "rewards/correct/mean": step / 40,
                    "rewards/format/mean": 0.5,
                    "kl": 0.01,
                },
                step=step,
            )
            run.log_histogram(step, "rewards/spread", rng.normal(size=50))
            if step % 10 == 0:
                run.log_rollouts(step, [rollout(step, good) for good in (0, 1)])
        run.event("checkpoint", step=first + 15)
        run.update_settings({"learning_rate": 2e-6 + first}, step=first + 10)
        run.finish()


def rollout(step, good):
    call = {"id": "c", "function": {"name": "calc", "arguments": "6*7"}}
    return {
        "prompt": f"What is 6 x 7? {EVIL}",
        "completion": [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": EVIL},
            {"role": "assistant", "content": f"It is {42 if good else 41}, at step {step}."},
        ],
        "reward": float(good),
        "rewards": {"correct": {"score": float(good), "weight": 2.0}},
        "group": f"g{step}",
        "sampler_log_probs": [-0.5, -2.0],
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "runs"
    record_language(folder / "language")
    record(folder / "plain")
    (folder / "plain" / "train.log").write_text("first\n10 %\r20 %\nlast line\n")
    return folder


@pytest.fixture(scope="module")
def client(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root.parent / "cache"))
        with TestClient(build(root), base_url="http://127.0.0.1") as opened:
            until(lambda: len(opened.get("/api/runs").json()["rows"]) == 2)
            yield opened


@pytest.fixture(autouse=True)
def cache():
    """Use the cache folder of the module's client."""


def page_data(client, key):
    text = client.get(f"/run/{key}").text
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_one_prompt_is_shown_at_two_steps(client):
    answer = client.get("/api/rollouts?key=language&view=pairs&step=0&against=30").json()["html"]
    assert "means of 2 and 2 rollouts: reward 0.5 → 0.5" in answer
    assert "correct 1 → 1" in answer  # the mean score with its weight, as in the bars
    assert "<del>0. </del>" in answer
    assert "<ins>30. </ins>" in answer
    assert EVIL not in answer
    assert "&lt;script&gt;" in answer


def test_a_group_is_shown_side_by_side_with_its_parts_and_calls(client):
    answer = client.get("/api/rollouts?key=language&view=group&step=10").json()["html"]
    assert answer.index("It is 42") < answer.index("It is 41")  # the best paid first
    assert "calc" in answer
    assert ">2<" in answer  # the part with its weight
    assert 'class="strip"' in answer
    assert "2 tokens: the stronger, the less likely" in answer
    assert answer.count("&lt;script&gt;") == 3  # the prompt, and each result once
    assert EVIL not in answer


@pytest.mark.parametrize(
    "query",
    ["view=pairs&step=1&against=30", "view=group&step=7", "view=proof&rule=none", "step=x"],
)
def test_what_rollouts_lack_is_said(client, query):
    answer = client.get(f"/api/rollouts?key=language&{query}")
    assert answer.status_code == 400
    assert answer.json()["problem"]
    assert client.get(f"/api/rollouts?key=plain&{query}").status_code == 400


def test_parts_and_distributions_are_charts_of_layers(client):
    data = page_data(client, "language")
    forms = {chart["form"]: name for name, chart in data["charts"].items()}
    assert {"stacked", "bands", "lines"} <= forms.keys()
    answer = client.get(f"/api/charts?key=language&name={forms['bands']}").json()
    assert len(answer["charts"][0]["curves"]) == 7  # quantiles
    parts = client.get(f"/api/charts?key=language&name={forms['stacked']}").json()
    assert {"correct", "format"} <= {c["label"] for c in parts["charts"][0]["curves"]}


def test_shares_of_actions_are_stacked(tmp_path):
    (tmp_path / "scheduler").mkdir()
    shutil.copy(RUNS / "scheduler-collapsed" / "run.csv", tmp_path / "scheduler")
    with TestClient(build(tmp_path), base_url="http://127.0.0.1") as opened:
        (key,) = until(lambda: [row["key"] for row in opened.get("/api/runs").json()["rows"]])
        charts = page_data(opened, key)["charts"]
        (name,) = [name for name, chart in charts.items() if chart["form"] == "shares"]
        answer = opened.get("/api/charts", params={"key": key, "name": name}).json()
    labels = [curve["label"] for curve in answer["charts"][0]["curves"]]
    assert labels == [f"replica {number}" for number in range(4)]


def test_attempts_checkpoints_and_changed_settings_stand_on_the_axis(client):
    data = page_data(client, "language")
    assert data["seams"] == [20]
    assert [step for step, _, _ in data["checkpoints"]] == [15, 35]
    step, text = data["changes"][0]
    assert step == 10
    assert "learning_rate 1e-06 → 2e-06" in text


def test_a_checkpoint_has_the_lamp_of_its_health(tmp_path):
    record(tmp_path / "saved", points=60)
    healths = {1024: "healthy", 2048: "learning-rate-jump, kl-spike", 3072: "not judged"}
    checkpoints = Checkpoints(tmp_path / "saved", health=healths.get, tell=lambda _: None)
    for step in healths:
        with checkpoints.save(step) as folder:
            (folder / "model.bin").write_bytes(b"weights")
    (checkpoints_folder,) = (tmp_path / "saved").rglob("*3072")
    (checkpoints_folder / "model.bin").write_bytes(b"cut")
    with TestClient(build(tmp_path), base_url="http://127.0.0.1") as opened:
        until(lambda: opened.get("/api/runs").json()["rows"])
        marks = page_data(opened, "saved")["checkpoints"]
    assert [(step, lamp) for step, lamp, _ in marks] == [
        (1024, "good"), (2048, "watch"), (3072, "bad"),
    ]  # fmt: skip
    assert marks[1][2].endswith(" at 2,048: learning-rate-jump, kl-spike")


def test_the_end_of_a_console_file_is_shown(client, root, tmp_path):
    assert '<option value="train.log">' in client.get("/run/plain").text
    text = client.get("/api/console?key=plain&name=train.log").text
    assert text == "first\n20 %\nlast line\n"
    (tmp_path / "secret.log").write_text("not-for-you")
    (root / "plain" / "linked.log").symlink_to(tmp_path / "secret.log")
    for name in ("../plain/train.log", "run.json", "linked.log", "%00"):
        answer = client.get(f"/api/console?key=plain&name={name}")
        assert answer.status_code == 400
        assert "not-for-you" not in answer.text
    (root / "plain" / "linked.log").unlink()


def test_an_average_is_centred_and_leaves_out_what_is_no_number():
    steps = np.arange(101, dtype=np.int64)
    values = np.where(steps == 50, np.nan, steps.astype(float))
    series = Series(steps, steps.astype(float), values)
    places, means = chart_data.average(series, 0.1)
    assert means == pytest.approx(places, abs=1e-9 + 0.6)  # a straight line stays where it is
    assert np.isfinite(means).all()


def test_an_average_is_given_next_to_the_points(client):
    names = [n for n, c in page_data(client, "plain")["charts"].items() if c["title"] == "Return"]
    query = f"/api/charts?key=plain&name={names[0]}"
    plain, smooth = client.get(query).json(), client.get(f"{query}&average=0.2").json()
    assert smooth["charts"][0]["curves"][0]["average"] is not None
    assert plain["columns"][0] == smooth["columns"][0]  # the points are the same
    assert client.get(f"{query}&average=0").json()["charts"][0]["curves"][0]["average"] is None
    assert client.get(f"{query}&average=2").status_code == 400


def test_the_page_of_a_thinned_run_says_so(tmp_path):
    record(tmp_path / "old")
    compact.compact(tmp_path / "old")
    for path in (tmp_path / "old" / "blocks").glob("*.packed.rlv"):
        thin_file.thin(path, 4)
    with TestClient(build(tmp_path), base_url="http://127.0.0.1") as opened:
        until(lambda: opened.get("/api/runs").json()["rows"])
        text = until(lambda: (page := opened.get("/run/old").text) and "thinned" in page and page)
    assert "points are left, of each of 4 buckets" in text
