"""What is told, when, and what is taken back."""

import json
import math
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from alerts import receivers
from rules import made_traces as made
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.alerts import conditions, message, routes
from rlvitals.alerts.conditions import Alarm
from rlvitals.alerts.sender import RouteWorker, Sender
from rlvitals.alerts.tracker import Tracker
from rlvitals.diagnosis import engine
from rlvitals.types import Budget, Lifecycle

RUNS = Path(__file__).parents[1] / "runs"
KL = Alarm("kl-spike", "error", "KL rose to 9", 1200, "fires on 0 of 208 healthy runs")
FINAL = replace(KL, is_final=True)


def told(tracker, time_s):
    return [(n.run, n.alarm.subject, n.is_cleared) for n in tracker.collect(time_s)]


def test_an_alarm_is_told_once_it_stood_and_once_it_is_over():
    tracker = Tracker(start=0.0, wait=60.0)
    tracker.update("a", {"kl-spike": KL}, 100.0, math.inf)
    assert told(tracker, 130.0) == []
    assert told(tracker, 160.0) == [], "a second diagnosis may not find it"
    tracker.update("a", {"kl-spike": KL}, 170.0, math.inf)
    assert told(tracker, 170.0) == [("a", "kl-spike", False)]
    tracker.update("a", {"kl-spike": KL}, 180.0, math.inf)
    assert told(tracker, 500.0) == [], "nothing twice"
    tracker.update("a", {}, 510.0, math.inf)
    assert told(tracker, 510.0) == [("a", "kl-spike", True)]
    assert told(tracker, 9e9) == []


def test_what_passes_before_it_is_told_is_never_told():
    tracker = Tracker(start=0.0, wait=60.0)
    for time_s in range(0, 1000, 50):
        tracker.update("a", {"kl-spike": KL} if time_s % 100 else {}, float(time_s), math.inf)
        assert told(tracker, float(time_s)) == []


def test_an_alarm_of_every_other_diagnosis_is_never_told():
    tracker = Tracker(start=0.0, wait=0.0)
    for number in range(20):
        tracker.update("a", {"kl-spike": KL} if number % 2 else {}, float(number), math.inf)
        assert told(tracker, number + 0.5) == []


def test_an_alarm_that_returns_must_stand_twice_as_long():
    tracker, time_s, waits = Tracker(start=0.0, wait=60.0), 0.0, []
    for _ in range(8):
        for _ in range(2):
            tracker.update("a", {"kl-spike": KL}, time_s, math.inf)
        wait = next(w for w in range(0, 4000, 60) if told(tracker, time_s + w))
        waits.append(wait)
        time_s += wait + 1
        tracker.update("a", {}, time_s, math.inf)
        assert told(tracker, time_s) == [("a", "kl-spike", True)]
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize(("last_row", "count"), [(None, 0), (50.0, 0), (150.0, 1), (math.inf, 1)])
def test_runs_that_ended_before_are_no_news(last_row, count):
    tracker = Tracker(start=100.0, wait=0.0)
    tracker.update("a", {"kl-spike": FINAL}, 200.0, last_row)
    assert len(told(tracker, 200.0)) == count
    tracker.update("a", {"kl-spike": FINAL}, 300.0, math.inf)
    assert len(told(tracker, 300.0)) == 1 - count, "it goes on after all"


def test_a_symptom_is_told_with_its_cause_alone():
    tracker = Tracker(start=0.0, wait=0.0)
    both = {
        "kl-spike": FINAL,
        "no-learning": replace(FINAL, subject="no-learning", cause="kl-spike"),
    }
    tracker.update("a", both, 0.0, math.inf)
    assert told(tracker, 0.0) == [("a", "kl-spike", False)]


def make_worker(url, clock, **fields):
    section = {"channel": "webhook", "url": url, "wait_seconds": 0, **fields}
    return RouteWorker(routes.make_route(section, "test", {}), lambda run: f"/run/{run}", clock)


class Clock:
    def __init__(self):
        self.time_s = 1.7e9

    def __call__(self):
        return self.time_s


def bodies(got):
    return [[(a["run"], a["state"]) for a in body["alerts"]] for _, _, body in got.requests]


def test_what_follows_a_message_is_collected_into_a_digest():
    clock = Clock()
    with receivers.http() as got:
        worker = make_worker(got.url, clock, digest_minutes=5)
        for name in "abc":
            worker.put((name, {"kl-spike": FINAL}, clock(), math.inf))
            worker.step()
        assert bodies(got) == [[("a", "raised")]]
        worker.put(("b", {}, clock(), math.inf))  # told neither as raised nor as cleared
        worker.step()
        clock.time_s += 301
        worker.step()
        worker.step()
    assert bodies(got) == [[("a", "raised")], [("c", "raised")]]


def test_quiet_hours_hold_back_and_lose_nothing(monkeypatch):
    clock = Clock()
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    clock.time_s = 1.7e9 - 1.7e9 % 86_400 + 23 * 3600
    with receivers.http() as got:
        worker = make_worker(got.url, clock, quiet_hours="22:00-07:00")
        worker.put(("a", {"kl-spike": FINAL}, clock(), math.inf))
        worker.step()
        clock.time_s += 7.9 * 3600
        worker.step()
        assert not got.requests
        clock.time_s += 0.2 * 3600
        worker.step()
    assert bodies(got) == [[("a", "raised")]]


def test_a_channel_that_fails_is_asked_again_later_and_no_secret_is_logged(caplog):
    clock = Clock()
    with receivers.http(500, 429, headers=[("Retry-After", "100")]) as got:
        worker = make_worker(f"{got.url}/s3cret", clock)
        worker.put(("a", {"kl-spike": FINAL}, clock(), math.inf))
        counts = []
        for _ in range(30):
            worker.step()
            counts.append(len(got.requests))
            clock.time_s += 10
    assert counts[0] == 1
    assert counts[9] == 1, "Retry-After is honoured"
    assert counts[-1] == 3
    assert bodies(got)[-1] == [("a", "raised")]
    assert "an alert to webhook failed: HTTP 500" in caplog.text
    assert "s3cret" not in caplog.text


def test_a_lasting_failure_is_given_up_once(caplog):
    clock = Clock()
    with receivers.http(404) as got:
        worker = make_worker(got.url, clock)
        worker.put(("a", {"kl-spike": FINAL}, clock(), math.inf))
        for _ in range(5):
            worker.step()
            clock.time_s += 1e4
    assert len(got.requests) == 1
    assert "1 alerts to webhook are given up: HTTP 404" in caplog.text


def test_the_caller_never_waits_for_a_receiver_that_hangs():
    with receivers.http() as got:
        received = threading.Event()
        got.take = lambda _request: received.wait(HANG_SECONDS) and 200
        route = routes.make_route({"channel": "webhook", "url": got.url}, "test", {})
        sender = Sender([route], str)
        diagnosis = diagnose("ppo-cartpole-lr-x300")
        for number in range(5_000):  # more than the queue holds
            sender.update(f"run_{number}", diagnosis)
        received.set()
        sender.close()


@cache
def diagnose(name):
    return rlvitals.diagnose(next((RUNS / name).glob("run*")))


def find(name, *texts):
    return conditions.find_alarms(diagnose(name), [conditions.parse(text) for text in texts])


def test_a_message_says_what_since_how_often_wrong_and_what_to_try():
    alarms = find("ppo-cartpole-lr-x300", "warning")
    assert alarms
    tracker = Tracker(start=0.0, wait=0.0)
    for _ in range(2):
        tracker.update("api_key=sk-1234567890abcdef1234567890abcdef", alarms, 1.7e9, math.inf)
    text = message.write(list(tracker.collect(1.7e9 + 1)), lambda _: "/run/x").text
    for label in ("since: step", "how often this alarm is wrong: ", "try: ", "see: /run/x"):
        assert label in text
    assert "sk-1234567890" not in text


def falling(after, lifecycle=None):
    """Return the diagnosis of a run that lost all that it gained, `after` rows after that."""
    values = np.concatenate((np.linspace(0, 100, 200), np.full(after, 5.0)))
    trace = made.trace(outcome__return=values + 0.5 * made.noise(len(values), 4))
    return engine.diagnose(replace(trace, lifecycle=lifecycle or trace.lifecycle))


@pytest.mark.parametrize("name", ["error", "return-collapse"])
def test_a_fall_is_an_error_once_the_run_had_as_long_to_learn_again(name):
    condition = [conditions.parse(name)]
    young, old = (conditions.find_alarms(falling(rows), condition) for rows in (60, 320))
    assert ("return-collapse" in young) is (name != "error"), "the user asked for the rule"
    assert "return-collapse" in old
    ended = falling(60, Lifecycle(ended=True))
    assert "return-collapse" in conditions.find_alarms(ended, condition)


def test_an_error_before_learning_has_begun_is_sent_when_the_run_has_ended():
    crash = Lifecycle(exit_code=1, traceback="RuntimeError: CUDA error: an illegal access")
    trace = made.trace(outcome__return=np.ones(3), value__loss=np.ones(3))
    diagnosis = engine.diagnose(replace(trace, lifecycle=crash))
    assert "ended-early" in conditions.find_alarms(diagnosis, [conditions.parse("error")])


def test_a_healthy_run_has_no_alarm_and_a_failed_one_has():
    assert find("ppo-cartpole-healthy", "warning", "failed", "silent") == {}
    assert set(find("ppo-cartpole-healthy", "finished", "learning")) <= {"finished", "learning"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("outcome/return < 1e9 after 1k", True),
        ("outcome/return > 1e9", False),
        ("outcome/return < 1e9 after 5b", False),
        ("outcome/success_rate < 2", False),
    ],
)
def test_a_limit_of_a_metric(text, holds):
    assert bool(find("ppo-cartpole-healthy", text)) is holds


def test_nothing_is_told_before_the_first_update():
    diagnosis = diagnose("ppo-cartpole-lr-x300")
    assert conditions.find_alarms(diagnosis, [conditions.parse("warning")])
    trace = diagnosis.trace
    only = {name: s for name, s in trace.series.items() if name not in conditions.UPDATE_METRICS}
    early = replace(trace, series=only, budget=None, lifecycle=Lifecycle(live=True, live_by="x"))
    word = replace(diagnosis.verdict, word=rlvitals.Word.UNKNOWN)
    unlearned = replace(diagnosis, trace=early, verdict=word)
    assert conditions.find_alarms(unlearned, [conditions.parse("warning")]) == {}


def test_an_alarm_of_a_run_that_has_only_begun_is_called_provisional():
    diagnosis = diagnose("ppo-cartpole-lr-x300")
    budget = Budget(100 * diagnosis.trace.last_step, "set")
    trace = replace(diagnosis.trace, lifecycle=Lifecycle(live=True), budget=budget)
    for begun in (True, False):
        judged = replace(diagnosis, trace=trace if begun else diagnosis.trace)
        alarms = conditions.find_alarms(judged, [conditions.parse("warning")])
        assert alarms
        for alarm in alarms.values():
            assert any(text.startswith("provisional") for text in alarm.counter) is begun


def test_follow_sends_what_a_run_shows(tmp_path, call_follow):
    """A real process, a real receiver: a run that fails is told with its reason."""
    with receivers.http() as got:
        run = rlvitals.start(tmp_path / "run_1")
        for step in range(40):
            run.log(step, {"loss": 1.0 / (step + 1)})
        run.flush()
        process = call_follow(tmp_path, f"webhook={got.url}", "failed")
        assert "run_1" in process.stdout.readline()
        run.log(40, {"loss": 0.0})
        run.finish("failed", traceback="ValueError: boom")
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode in {1, 4}, out + err
    ((_, _, body),) = got.requests
    (alert,) = body["alerts"]
    assert (alert["run"], alert["state"], alert["subject"]) == ("run_1", "raised", "failed")
    assert "boom" in alert["summary"]
    assert alert["see"].startswith("rlvitals diagnose ")
    assert json.dumps(body)


def test_serve_sends_what_its_fleet_judges(tmp_path, monkeypatch):
    """A real server and a real receiver: a run that fails below its root is told."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    root.mkdir()
    argv = [sys.executable, "-m", "rlvitals", "serve", str(root), "--port", "0"]
    with receivers.http() as got:
        argv += ["--alert", f"webhook={got.url}", "--alert-when", "failed"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            address = process.stdout.readline().split()[-1]
            time.sleep(1.0)  # until its clock is past the second in which it began
            with rlvitals.start(root / "run 1") as run:
                for step in range(40):
                    run.log(step, {"loss": 1.0 / (step + 1)})
                run.finish("failed", traceback="ValueError: boom")
            deadline = time.monotonic() + HANG_SECONDS
            while not got.requests and time.monotonic() < deadline:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            process.wait(HANG_SECONDS)
    ((_, _, body),) = got.requests
    (alert,) = body["alerts"]
    assert (alert["run"], alert["subject"]) == ("run 1", "failed")
    assert alert["see"] == f"{address}run/run%201"
