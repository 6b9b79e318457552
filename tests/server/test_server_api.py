"""The server's JSON: the fleet, a run, its charts, comparisons and events."""

import asyncio
import base64
import csv
import io
import json
import math
import re
import shutil
import threading
import time

import numpy as np
import pytest
import tune_experiment
from served import build, record, until, write
from starlette.testclient import TestClient

import rlvitals
from rlvitals import settings
from rlvitals.server import chart_data, fleet_groups, fleet_line, run_files
from rlvitals.server.channel import MAX_QUEUED_MESSAGES, MAX_REPLAYED_MESSAGES, Channel
from rlvitals.server.fleet_line import Summary
from rlvitals.server.live_run import LiveRun
from rlvitals.server.run_files import Entry
from rlvitals.storage import search_terms
from rlvitals.storage.index import Index
from rlvitals.views import diagnosis_json


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "runs"
    record(folder / "good")
    record(folder / "bad", collapse=40)
    return folder


@pytest.fixture
def client(root):
    with TestClient(build(root), base_url="http://127.0.0.1") as opened:
        yield opened


def rows(client, query=""):
    return client.get(f"/api/runs?{query}").json()["rows"]


def judged(client):
    return until(
        lambda: (found := rows(client)) and not any(r["lamp"] == "pending" for r in found) and found
    )


def test_the_first_page_has_every_run_before_any_is_judged(root):
    application = build(root)
    with TestClient(application, base_url="http://127.0.0.1") as client:
        page = client.get("/")
        assert page.status_code == 200
        data = json.loads(page.text.split('id="data">')[1].split("</script>")[0])
        assert {row["key"] for row in data["rows"]} <= {"good", "bad"}
        assert judged(client)


def test_the_first_page_has_every_folder_before_the_first_is_read(root, monkeypatch):
    is_seen = threading.Event()
    refresh = Index.refresh
    monkeypatch.setattr(Index, "refresh", lambda self: (is_seen.wait(), refresh(self)))
    try:
        with TestClient(build(root), base_url="http://127.0.0.1") as client:
            found = rows(client) if "good" in client.get("/").text else []
            assert {row["key"]: row["lamp"] for row in found} == {
                "good": "pending",
                "bad": "pending",
            }
            is_seen.set()
            assert {row["verdict"] for row in judged(client)} == {"learning", "collapsed"}
    finally:
        is_seen.set()


def test_runs_are_judged_and_the_worst_comes_first(client):
    found = judged(client)
    assert [row["key"] for row in found] == ["bad", "good"]
    bad, good = found
    assert (bad["lamp"], bad["verdict"], bad["outcome"]) == ("bad", "collapsed", "return")
    assert bad["onset"] is not None
    assert bad["reason"]
    assert (good["lamp"], good["verdict"], good["step"]) == ("good", "learning", 60 * 1024)
    assert len(good["spark"]) > 10


def test_a_run_with_too_few_rows_is_not_green(root, client):
    record(root / "short", points=3)

    def short():  # it may have been judged before it had a row
        rows = (row for row in judged(client) if row["key"] == "short")
        return next((row for row in rows if "no outcome" not in row["reason"]), None)

    row = until(short)
    assert row["lamp"] == "unknown"
    assert (
        row["reason"] == "outcome/return has 3 numbers of the 10 needed: train longer or log more"
    )


def test_a_run_that_has_only_begun_is_called_provisional(root, client):
    run = rlvitals.start(str(root / "begun"), settings={"total_timesteps": 4_000_000})
    write(run, range(40))
    run.flush()
    begun = until(lambda: [r for r in judged(client) if r["key"] == "begun"])
    assert begun[0]["is_provisional"]
    assert "provisional: learning has only begun" in client.get("/run/begun").text
    run.finish()
    assert not any(row["is_provisional"] for row in judged(client) if row["key"] != "begun")


def test_filters_are_those_of_the_index(client):
    judged(client)
    assert [row["key"] for row in rows(client, "search=goo")] == ["good"]
    assert [row["key"] for row in rows(client, "search=verdict:collapsed")] == ["bad"]
    assert len(rows(client, "search=learning_rate<1e-3")) == 2
    assert rows(client, "search=learning_rate>1e-3") == []
    assert [row["key"] for row in rows(client, "lamp=good")] == ["good"]
    assert [row["key"] for row in rows(client, "sort=name&offset=1")] == ["good"]
    wrong = client.get("/api/runs?search=nothing:x")
    assert wrong.status_code == 400
    assert "nothing" in wrong.json()["problem"]


def test_verdicts_are_kept_for_the_next_start_and_the_folder_is_not_written(root, cache):
    files = sorted(root.rglob("*"))
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        old = judged(client)
    assert sorted(root.rglob("*")) == files
    assert list(cache.rglob("*.index"))
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        assert rows(client) == old  # at once: nothing is judged again


def find_in(page, text):
    return page if text in page else ""


def test_runs_are_listed_though_the_index_is_deleted(root, client, cache):
    until(lambda: len(judged(client)) == 2)
    shutil.rmtree(cache)
    record(root / "later")
    assert until(lambda: [r for r in judged(client) if r["key"] == "later"])
    assert client.get("/api/runs?search=later").json()["total"] == 1


def test_a_run_that_cannot_be_read_is_not_said_to_have_finished(root, client):
    folder = root / "newer"
    folder.mkdir()
    (folder / "run.json").write_text('{"written_by": "rlvitals", "format": 99}')
    row = until(lambda: next((r for r in judged(client) if r["key"] == "newer"), None))
    assert (row["verdict"], row["state"], row["time"]) == ("unreadable", "unknown", None)


def test_runs_are_compared_without_those_that_are_gone(root, client):
    until(lambda: len(judged(client)) == 2)
    record(root / "other")
    until(lambda: len(judged(client)) == 3)
    address = "/compare?key=good&key=other&key=bad&key=never"
    assert "bad: deleted" not in client.get(address).text
    shutil.rmtree(root / "bad")
    page = until(lambda: find_in(client.get(address).text, "bad: deleted; shown as it was"))
    assert "never: there is no such run." in page
    answer = client.get("/api/compare?key=good&key=never")
    assert (answer.status_code, answer.json()["problem"]) == (404, "never: there is no such run")


def test_a_log_of_another_framework_is_a_run_too(root, client):
    shutil.copytree("examples/failing", root.parent / "sb3")
    (root.parent / "sb3").rename(root / "sb3")  # a half of it would be judged, too
    found = until(lambda: next((r for r in judged(client) if r["key"] == "sb3"), None))
    assert found["verdict"] == "collapsed"
    assert client.get("/run/sb3").status_code == 200
    for query, fits in {
        "env_id=CartPole-v1": True, "env_id=Other": False, "env_id>1": False, "verdict:coll": True,
        "status:finished": False, "sb3 collapsed": True, "action-collapse": False,
        found["rule"]: True, "tag:x": False, "project:x": False,
    }.items():  # fmt: skip
        keys = [
            row["key"] for row in client.get("/api/runs", params={"search": query}).json()["rows"]
        ]
        assert ("sb3" in keys) is fits, query


@pytest.mark.parametrize(
    ("query", "fits"),
    [("lr<1e-3", True), ("lr<=1e-4", False), ("optimiser/lr>2e-4", True), ("lr!=3e-4", False),
     ("clip=auto", True), ("clip>1", False), ("r=3e-4", False), ("LR<1e-3", True),
     ("Optimiser/LR=3e-4", False), ("CLIP=auto", False)],  # a whole name as it is logged
)  # fmt: skip
def test_a_line_fits_by_its_settings(query, fits):
    line = Summary("a", "a", settings={"optimiser/lr": "0.0003", "clip": "auto"})
    assert fleet_line.fits(line, search_terms.parse(query)) is fits


def test_the_training_time_of_broken_runs_is_summed_up(tmp_path):
    for name, seconds, is_broken in (("fine", 2, False), ("lost", 3, True)):
        table = ["time/time_elapsed,time/total_timesteps,rollout/ep_rew_mean,train/approx_kl"]
        for row in range(100):
            outcome = 9 + row % 2 if is_broken and row > 50 else 20 + 3 * row
            table.append(f"{seconds * row},{1024 * row},{outcome},0.01")
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.csv").write_text("\n".join(table))
    with TestClient(build(tmp_path), base_url="http://127.0.0.1") as opened:
        until(lambda: len(judged(opened)) == 2)
        trained = opened.get("/api/runs").json()["trained"]
    assert trained == pytest.approx({"bad": 3 * 99, "all": 5 * 99}, rel=0.02)  # but the first row


def unpack(told):
    kind = f"<f{told['f']}"
    return np.frombuffer(base64.b64decode(told["b"]), kind)


def test_a_spike_of_one_point_survives_any_zoom(tmp_path):
    folder = tmp_path / "runs"
    run = rlvitals.start(str(folder / "long"), framework="sb3")
    for row in range(30_000):
        value = 500.0 if row == 17_001 else float(np.nan) if row == 9_000 else row % 7
        run.log({"train/loss": value}, step=row)
    run.finish()
    with TestClient(build(folder), base_url="http://127.0.0.1") as client:
        page = client.get("/run/long").text
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        name = next(k for k, chart in data["charts"].items() if "loss" in chart["title"].lower())
        for query in ("", "&first=16000&last=18000", "&first=17001&last=17001"):
            answer = client.get(f"/api/charts?key=long&name={name}{query}").json()
            curve = answer["charts"][0]["curves"][0]
            values = unpack(answer["columns"][curve["column"]]["values"])
            assert np.nanmax(values) == 500
            assert len(values) <= 4002
        whole = client.get(f"/api/charts?key=long&name={name}").json()["charts"][0]
        assert whole["curves"][0]["bad"] == [1, 0, 0]
        near = client.get(f"/api/charts?key=long&name={name}&first=8999&last=9001").json()
        assert np.isnan(unpack(near["columns"][0]["values"])).any()


def test_points_of_a_large_ended_run_are_let_go_and_read_again(root):
    files = run_files.read_run(Entry("bad", root, root / "bad", None))
    run = LiveRun("bad", files, settings.load(root.parent), time.time())

    def pack(**options):
        charts = list(run.page.charts.values())
        return chart_data.pack(
            charts, run.page, run.trace, run.series(), chart_data.Options(**options)
        )

    whole, zoomed = pack(), pack(steps=(9_000, 20_000))
    text = diagnosis_json.diagnosis(run.diagnosis)
    run.release(100)
    run.release(min_seconds=0.0)
    assert diagnosis_json.diagnosis(run.diagnosis) == text  # in use, and not large
    run.release(100, 0.0)
    assert sum(map(len, run.diagnosis.trace.series.values())) < 100
    assert not any(map(len, (tail.log.series for tail in run._files.values())))
    run.look(time.time())
    assert not run.needs_judging(time.time())
    assert pack() == whole
    run.release(100, 0.0)
    assert pack(steps=(9_000, 20_000)) == zoomed
    run.release(100, 0.0)
    assert diagnosis_json.diagnosis(run.full_diagnosis()) == text
    run.release(100, 0.0)
    again = rlvitals.start(str(root / "bad"), resume="must", framework="sb3", flush_seconds=0.05)
    write(again, range(60, 70))
    again.finish()
    run.look(time.time())
    assert run.trace.last_step == 70 * 1024
    assert run.needs_judging(time.time())


def test_charts_of_an_older_judgement_are_refused(client):
    assert client.get("/api/charts?key=good&name=dashboard-0&version=1").status_code == 200
    assert client.get("/api/charts?key=good&name=dashboard-0&version=7").status_code == 409


def test_points_are_given_as_json_and_csv(client):
    answer = client.get("/api/series?key=good&metric=outcome/return&first=1024&last=3072").json()
    assert answer["steps"] == [1024, 2048, 3072, 4096]  # and a neighbour
    text = client.get("/api/series.csv?key=good&metric=outcome/return").text
    table = list(csv.reader(io.StringIO(text)))
    assert table[0] == ["step", "value"]
    assert len(table) == 61
    assert client.get("/api/series?key=good&metric=no/such").status_code == 400
    assert (
        client.get("/api/series?key=good&metric=outcome/return&first=x&last=2").status_code == 400
    )


def test_a_diagnosis_is_that_of_the_command_line(client):
    answer = client.get("/api/run?key=bad").json()
    assert answer["format"] == 2
    assert answer["verdict"]["word"] == "collapsed"


def test_runs_are_compared(root, client):
    record(root / "other", rate=1e-3)
    until(lambda: len(rows(client)) == 3)
    answer = client.get("/api/compare?key=good&key=other").json()
    assert len(answer["comparison"]["groups"]) == 2
    assert len(answer["charts"][0]["curves"]) == 2
    page = client.get("/compare?key=good&key=other&axis=time")
    assert page.status_code == 200
    assert "learning_rate" in page.text
    assert client.get("/api/compare?key=good").status_code == 400
    assert client.get("/compare?key=good").status_code == 422


def test_the_outcome_is_drawn_against_each_setting_that_differs(root, client):
    for rate in (1e-3, 1e-2):
        record(root / f"rate-{rate}", rate=rate)
    until(lambda: len(rows(client)) == 4)
    page = client.get("/compare?key=good&key=rate-0.001&key=rate-0.01").text
    (chart,) = re.findall(r"<figure>.*?</figure>", page)
    assert "<figcaption>learning_rate</figcaption>" in chart
    assert re.findall(r"<title>(.*?): (.*?), .*?</title>", chart) == [
        ("good", "0.0003"), ("rate-0.001", "0.001"), ("rate-0.01", "0.01"),
    ]  # fmt: skip
    places = [float(x) for x in re.findall(r'cx="([0-9.]+)"', chart)]
    ends = places[2] - places[0]  # of a logarithmic scale: they span a factor of 33
    assert (places[1] - places[0]) / ends == pytest.approx(
        math.log(1e-3 / 3e-4) / math.log(1e-2 / 3e-4), abs=0.01
    )
    same = client.get("/compare?key=good&key=bad").text
    assert "Outcome by setting" not in same


def test_seeds_are_grouped_and_different_settings_are_not(root, client):
    for seed in (1, 2, 3):
        record(root / "sweep" / f"seed-{seed}", seed=seed, rate=1e-4)
    until(lambda: len(judged(client)) == 5)
    until(lambda: client.get("/api/runs").json()["differing"])

    def grouped():
        groups = client.get("/api/groups").json()["groups"]
        return sorted(len(group["keys"]) for group in groups) == [2, 3] and groups

    groups = until(grouped)  # `good` and `bad` are of one setting and seed
    (sweep,) = [group for group in groups if len(group["keys"]) == 3]
    assert sweep["label"] == "sweep · learning_rate 0.0001"
    assert sweep["lamps"]["good"] == 3
    assert sweep["low"] == sweep["high"] == pytest.approx(sweep["middle"])  # one recording
    assert client.get("/api/groups?lamp=bad").json()["total"] == 1


def line(key, heights, values, steps):
    return Summary(key, key, outcome="return", settings={"seed": key, "rate": "1"},
                   spark=heights, spark_values=values, spark_steps=steps)  # fmt: skip


def test_a_seed_and_a_device_split_no_group_however_they_are_written():
    for name in ("seed", "Seed", "train/SEED"):
        runs = [
            Summary(key, key, settings={name: value, "rate": "1", "Device": value})
            for key, value in (("first", "1"), ("second", "2"))
        ]
        (group,) = fleet_groups.group(runs, ("rate",))
        assert len(group.keys) == 2


def test_a_group_has_the_band_of_its_runs():
    flat = [line(str(n), (50, 50), (n, n), (0, 100)) for n in range(4)]
    (group,) = fleet_groups.group(flat, ("rate",))
    assert set(group.spark) == {50}  # the mean of 1 and 2, between 0 and 3
    assert (set(group.spark_low), set(group.spark_high)) == ({0}, {100})
    rising = line("5", (0, 100), (0.0, 10.0), (0, 100))
    (group,) = fleet_groups.group([rising, line("6", (0, 100), (0.0, 10.0), (0, 400))], ("rate",))
    assert group.spark_low[-1] is not None  # half of the runs come this far
    (group,) = fleet_groups.group(
        [rising, rising, line("6", (0, None, 100), (0.0, 10.0), (0, 400))], ("rate",)
    )
    assert group.spark[0] == 0
    assert group.spark[-1] is not None  # to the step that two of the three reach
    (alone,) = fleet_groups.group([line("7", (), (0.0, 0.0), (0, 0))], ())
    assert alone.spark == ()


def test_the_headline_says_who_is_better_or_why_nobody_can_say(root, client):
    for seed in range(3):
        for name, collapse in (("low", 20), ("high", None), ("same", None)):
            record(root / name / f"seed-{seed}", points=40, collapse=collapse, seed=seed)
    until(lambda: len(rows(client)) == 11)

    def page(*keys):
        return client.get("/compare?" + "&".join(f"key={key}" for key in keys)).text

    seeds = {name: [f"{name}/seed-{seed}" for seed in range(3)] for name in ("low", "high", "same")}
    assert "high is better than low" in page(*seeds["low"], *seeds["high"])
    assert "No clear difference between same and high" in page(*seeds["high"], *seeds["same"])
    few = page(seeds["low"][0], seeds["high"][0])
    assert "Too few seeds to compare high with low" in few
    assert "nobody can tell" not in few
    assert "Each line is a run." in few
    assert "thick line" not in few
    assert "thick line the mean" in page(*seeds["low"], *seeds["high"])


def test_every_endpoint_is_documented(client):
    document = client.get("/api/openapi.json").json()
    routes = client.app.routes[-1].app.router().routes
    paths = {route.path for route in routes if route.path.startswith("/api/")}
    assert set(document["paths"]) == paths
    assert document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        required = [p["name"] for p in operations["get"]["parameters"] if p["required"]]
        if required and "text/event-stream" not in str(operations):
            assert client.get(path).status_code in {400, 404}, path


def test_unknown_runs_are_not_found(client):
    for path in ("/run/none", "/api/run?key=none", "/api/events?key=none", "/nothing"):
        assert client.get(path).status_code == 404, path


def test_a_deleted_run_leaves_the_fleet_and_its_open_page_says_so(root):
    application = build(root)
    with TestClient(application, base_url="http://127.0.0.1") as client:
        judged(client)
        client.get("/run/bad")
        shutil.rmtree(root / "bad")
        until(lambda: [row["key"] for row in rows(client)] == ["good"])
        assert client.get("/api/run?key=bad").status_code in {200, 404}
        assert client.get("/").status_code == 200


def collect(channel, position, count, act=lambda: None):
    async def listen():
        messages = []
        stream = channel.listen(position)
        async for message in stream:
            if message.startswith(b"retry"):
                act()
            else:
                messages.append(message.decode())
            if len(messages) >= count:
                await stream.aclose()
                break
        return messages

    return asyncio.run(listen())


def test_a_browser_that_comes_back_is_sent_what_it_missed():
    channel = Channel()
    channel.publish("points", {"n": 1})
    position = channel.position()
    channel.publish("points", {"n": 2})
    (message,) = collect(channel, position, 1)
    assert '{"n":2}' in message
    for n in range(MAX_REPLAYED_MESSAGES + 1):
        channel.publish("points", {"n": n})
    assert "event: reload" in collect(channel, position, 1)[0]
    assert "event: reload" in collect(channel, "another-1", 1)[0]


def test_a_slow_listener_is_cut_off_and_others_are_not():
    channel = Channel()

    async def scenario():
        slow, quick = channel.listen(""), channel.listen("")
        await anext(slow), await anext(quick)
        task = asyncio.create_task(anext(slow))
        await asyncio.sleep(0)
        count = 0
        for _ in range(MAX_QUEUED_MESSAGES + 2):
            channel.publish("points", {})
            await asyncio.sleep(0)
            assert (await anext(quick)).startswith(b"id")
            count += 1
        await task
        remaining = [message async for message in slow]
        await quick.aclose()
        return count, remaining

    count, remaining = asyncio.run(scenario())
    assert count == MAX_QUEUED_MESSAGES + 2
    assert len(remaining) < MAX_QUEUED_MESSAGES


def test_new_rows_are_sent_while_a_run_is_watched(root):
    run = record(root / "growing", points=30, finish=False)
    application = build(root)
    with TestClient(application, base_url="http://127.0.0.1") as client:

        def steps(count):
            address = "/api/series?key=growing&metric=outcome/return"
            found = client.get(address).json().get("steps", ())
            return len(found) == count and found

        until(lambda: steps(30))
        write(run, range(30, 33))
        assert until(lambda: steps(33))[-1] == 33 * 1024
    run.finish()


def test_the_line_of_a_run_has_its_scheduler_s_job(root, client, monkeypatch):
    variables = {"SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n3", "SLURM_RESTART_COUNT": "2"}
    for name, value in {**variables, "RLVITALS_RECORDING_FACTS": "true"}.items():
        monkeypatch.setenv(name, value)
    record(root / "scheduled")
    jobs = {"good": "", "bad": "", "scheduled": "Slurm job 77 on n3, restart 2"}
    until(lambda: {row["key"]: row["job"] for row in rows(client)} == jobs)


def test_the_trials_of_an_experiment_of_ray_tune_are_one_group(tmp_path):
    root = tmp_path / "results"
    tune_experiment.write(root / "PPO_sweep", (1e-3, 1e-4))
    tune_experiment.write(root / "PPO_again", (1e-3,), seeds=(0,))
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        until(lambda: len(judged(client)) == 5)
        until(lambda: client.get("/api/runs").json()["differing"])
        groups = client.get("/api/groups").json()["groups"]
    assert {group["label"]: len(group["keys"]) for group in groups} == {
        "PPO_sweep · learning_rate 0.0001, 0.001": 4,
        "PPO_again · learning_rate 0.001": 1,
    }
