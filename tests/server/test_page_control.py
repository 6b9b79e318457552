"""`--control`: only the server's own pages change something, and only what they offer."""

import json
import signal
import subprocess
import sys
import time

import httpx
import pytest
from served import build, record, serving, until
from starlette.testclient import TestClient
from waiting import HANG_SECONDS

from rlvitals.server.access import CONTROL_HEADER, MAX_BODY_BYTES
from rlvitals.server.control import Control

ORIGIN = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "runs"
    record(folder / "bad", collapse=40)
    return folder


@pytest.fixture
def client(root):
    with TestClient(build(root, control=True), base_url="http://127.0.0.1") as opened:
        until(lambda: opened.get("/api/runs").json()["lamps"]["bad"])
        yield opened


def page_data(client, key="bad"):
    text = client.get(f"/run/{key}").text
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def token(client):
    return {CONTROL_HEADER: page_data(client)["control"]["token"]}


def send(client, path, values, headers=None):
    headers = {**ORIGIN, **token(client)} if headers is None else headers
    return client.post(path, json={"key": "bad", **values}, headers=headers)


def findings(client):
    found = client.get("/api/run?key=bad").json()["findings"]
    return [finding["rule"] for finding in found]


def test_a_run_is_marked_and_its_page_says_so(client, root):
    assert send(client, "/api/mark", {"label": "healthy"}).status_code == 200
    line = json.loads((root / "bad" / "marks.jsonl").read_text().splitlines()[-1])
    assert (line["label"], line["run"]) == ("healthy", "bad")
    assert "marked healthy by a person" in client.get("/run/bad").text
    rule = findings(client)[0]
    assert send(client, "/api/mark", {"label": "wrong", "subject": rule}).status_code == 200
    assert f"{rule} is marked a wrong alarm" in client.get("/run/bad").text


@pytest.mark.parametrize(
    "values",
    [
        {"label": "nice"},
        {"label": "broken"},
        {"label": "wrong", "subject": "no-such-rule"},
        {"label": "broken", "subject": "x" * 300},
        {"label": ["healthy"]},
    ],
)
def test_a_wrong_mark_is_refused(client, root, values):
    answer = send(client, "/api/mark", values)
    assert answer.status_code == 400
    assert answer.json()["problem"]
    assert not (root / "bad" / "marks.jsonl").exists()


def test_a_muted_finding_is_set_apart_until_it_is_taken_back(client, root):
    rule = findings(client)[0]
    files = sorted(root.rglob("*"))
    assert send(client, "/api/mute", {"rule": rule, "reason": ""}).status_code == 400
    assert send(client, "/api/mute", {"rule": "no-such", "reason": "x"}).status_code == 400
    assert send(client, "/api/mute", {"rule": rule, "reason": "known <b>"}).status_code == 200
    assert rule not in findings(client)
    page = client.get("/run/bad").text
    assert "muted: known &lt;b&gt;" in page
    assert page_data(client)["control"]["mutes"] == [rule]
    assert sorted(root.rglob("*")) == files  # the served folder is not written
    with TestClient(build(root), base_url="http://127.0.0.1") as again:  # it is kept
        until(lambda: again.get("/api/runs").json()["rows"])
        assert rule not in findings(again)
    assert send(client, "/api/mute", {"rule": rule, "undo": True}).status_code == 200
    assert rule in findings(client)


def test_a_running_process_is_asked_to_save_and_stop(client, root):
    run = record(root / "growing", points=30, finish=False)
    until(lambda: "growing" in client.get("/").text)
    assert page_data(client, "growing")["control"]["requests"] == ["save", "stop", "lower-rate"]
    for kind in ("save", "stop"):
        assert send(client, "/api/request", {"key": "growing", "kind": kind}).status_code == 200
    until(lambda: run.requests().stop)
    run.finish()
    ended = send(client, "/api/request", {"kind": "stop"})
    assert ended.status_code == 400
    assert ended.json()["problem"] == "no process is left to ask: the run has ended (finished)"
    assert send(client, "/api/request", {"key": "growing", "kind": "shell"}).status_code == 400


def events(folder):
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "asked"]


def test_the_learning_rate_is_lowered_and_the_run_records_it(client, root):
    run = record(root / "growing", points=30, finish=False)
    until(lambda: "growing" in client.get("/").text)
    answer = send(client, "/api/request", {"key": "growing", "kind": "lower-rate"})
    assert answer.status_code == 200
    assert until(run.requests).rate_factor == 0.5
    run.finish()
    assert [(event["what"], event["factor"]) for event in events(root / "growing")] == [
        ("lower-rate", 0.5)
    ]


LOOP = """
import itertools, signal, sys, time, rlvitals
signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in sys.argv[1] else signal.SIG_DFL)
run = rlvitals.start(sys.argv[1], framework="sb3", flush_seconds=0.05)
for step in itertools.count():
    run.log({"rollout/ep_rew_mean": step}, step=step)
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("name", "ended_by"),
    [
        pytest.param("loop", ["SIGTERM"], marks=pytest.mark.soak),
        ("deaf", ["SIGTERM", "SIGKILL"]),
    ],
)
def test_a_process_that_never_looks_is_ended(root, monkeypatch, name, ended_by):
    """The request is answered at once; the page is told of each signal, and of the end."""
    monkeypatch.setattr(Control, "kill_grace_seconds", 2.0)
    with (
        serving(build(root, control=True)) as address,
        httpx.Client(base_url=address, timeout=HANG_SECONDS) as client,
        subprocess.Popen([sys.executable, "-c", LOOP, str(root / name)]) as process,
    ):
        try:
            until(lambda: name in client.get("/").text)
            until(lambda: "kill" in page_data(client, name)["control"]["requests"])
            headers = {"origin": address, **token(client)}
            with client.stream("GET", f"/api/events?key={name}") as stream:
                start = time.monotonic()
                for _ in range(2):  # the second one finds it under way
                    answer = send(client, "/api/request", {"key": name, "kind": "kill"}, headers)
                    assert answer.status_code == 202
                    assert "are being ended" in answer.json()["done"]
                assert time.monotonic() - start < 0.9, "before the first signal is sent"
                texts = told(stream, len(ended_by) + 1)
            assert [text.split()[0] for text in texts[:-1]] == ended_by
            assert texts[-1].endswith(f"that ended: 1 of 1 ({ended_by[-1]}).")
            assert process.wait(HANG_SECONDS) != 0
            until(lambda: page_data(client, name)["control"]["requests"] == [])
        finally:
            process.kill()
    assert [event["what"] for event in events(root / name)] == ["kill"]


def test_a_process_that_ends_without_another_row_has_ended_on_the_page(client, root):
    program = LOOP.replace("    time.sleep(0.1)", "    time.sleep(0.1 if step < 5 else 900)")
    with subprocess.Popen([sys.executable, "-c", program, str(root / "quiet")]) as process:
        try:
            until(lambda: "quiet" in client.get("/").text)
            # All that is written has been read, and the run judged.
            until(lambda: page_data(client, "quiet")["last"] == 5)
            until(lambda: "stop" in page_data(client, "quiet")["control"]["requests"])
        finally:
            process.kill()
    until(lambda: page_data(client, "quiet")["control"]["requests"] == [])


SERVER = """
import sys
from rlvitals.cli import main
from rlvitals.server.control import Control
Control.kill_grace_seconds = 2.0
sys.exit(main(["serve", sys.argv[1], "--port", "0", "--control"]))
"""


@pytest.mark.soak
def test_a_hard_stop_comes_to_its_end_when_the_server_is_closed(root):
    """A process that ignores SIGTERM gets SIGKILL, although the server was asked to end."""
    with (
        subprocess.Popen([sys.executable, "-c", SERVER, str(root)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True) as server,
        subprocess.Popen([sys.executable, "-c", LOOP, str(root / "deaf")]) as process,
    ):  # fmt: skip
        try:
            url, _, query = server.stdout.readline().split()[-1].partition("?")
            with httpx.Client(base_url=url, timeout=HANG_SECONDS, follow_redirects=True) as client:
                client.get(f"/?{query}")  # the token becomes a cookie
                until(lambda: "deaf" in client.get("/").text)
                until(lambda: "kill" in page_data(client, "deaf")["control"]["requests"])
                headers = {"origin": url.rstrip("/"), **token(client)}
                values = {"key": "deaf", "kind": "kill"}
                assert send(client, "/api/request", values, headers).status_code == 202
            server.send_signal(signal.SIGINT)
            assert process.wait(HANG_SECONDS) == -signal.SIGKILL
            assert "waiting until the processes of deaf have ended" in server.stderr.read()
        finally:
            process.kill()
            server.kill()


def told(stream, count):
    """Return the first sentences that a page is told of what it asked for."""
    texts, kind = [], ""
    for line in stream.iter_lines():
        kind = line.removeprefix("event: ") if line.startswith("event: ") else kind
        if line.startswith("data: ") and kind == "told":
            texts.append(json.loads(line.removeprefix("data: "))["text"])
            if len(texts) == count:
                return texts
    return texts


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://127.0.0.1"},
        {"origin": "https://evil.example", "token": True},
        {"token": True},
        {"origin": "http://127.0.0.1", CONTROL_HEADER: "guess"},
        {"origin": "http://127.0.0.1", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors",
         "token": True},
    ],
)  # fmt: skip
def test_other_pages_change_nothing(client, root, headers):
    if headers.pop("token", False):
        headers |= token(client)
    answer = send(client, "/api/mark", {"label": "healthy"}, headers)
    assert answer.status_code == 403
    assert not (root / "bad" / "marks.jsonl").exists()


def test_other_methods_paths_and_sizes_are_refused(client):
    headers = {**ORIGIN, **token(client)}
    assert client.put("/api/mark", headers=headers).status_code == 405
    assert client.post("/api/runs", headers=headers).status_code == 405
    assert client.post("/api/mark", content=b"[1", headers=headers).status_code == 400
    assert client.post("/api/mark", content=b"[1]", headers=headers).status_code == 400
    deep = b"[" * MAX_BODY_BYTES
    assert client.post("/api/mark", content=deep, headers=headers).status_code == 400
    big = b"x" * (MAX_BODY_BYTES + 1)
    assert client.post("/api/mark", content=big, headers=headers).status_code == 413
    assert send(client, "/api/mark", {"key": "../bad", "label": "healthy"}).status_code == 404


def test_without_control_no_page_has_a_token(root):
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        until(lambda: client.get("/api/runs").json()["lamps"]["bad"])
        assert page_data(client)["control"] is None
        assert client.post("/api/mark", json={"key": "bad"}, headers=ORIGIN).status_code == 405
