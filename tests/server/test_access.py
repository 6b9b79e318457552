"""The server answers its own pages and its own machine, from below the served folder alone."""

import json
import os
import shutil
import socket
from urllib.parse import urlsplit

import pytest
from served import build, record, until
from starlette.testclient import TestClient

from rlvitals.cli import main, serve
from rlvitals.errors import UsageError
from rlvitals.server import access, app
from rlvitals.server.access import MAX_BURST, SECURITY_HEADERS

PRIVATE_TEXT = "not-for-you"
TOKEN = "t0ken"  # noqa: S105
EVIL = "<img src=x onerror=alert(1)>\"'&"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "runs"
    record(folder / "good")
    (tmp_path / "secret.csv").write_text(f"step,loss\n1,2\n# {PRIVATE_TEXT}\n")
    return folder


@pytest.fixture
def client(root):
    with TestClient(build(root), base_url="http://127.0.0.1") as opened:
        until(lambda: opened.get("/api/runs").json()["lamps"]["good"])
        yield opened


@pytest.mark.parametrize(
    "path",
    [
        "/run/../secret.csv",
        "/run/%2e%2e/secret.csv",
        "/run/..%2fsecret.csv",
        "/run/%2fetc%2fpasswd",
        "/run/good/../../secret.csv",
        "/assets/../access.py",
        "/assets/%2e%2e/access.py",
        "/api/series?key=../secret.csv&metric=optimiser/loss",
        "/api/charts?key=/etc/passwd&name=x",
        "/api/run?key=%00",
    ],
)
def test_no_path_leads_out_of_the_folder(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert PRIVATE_TEXT not in answer.text
    assert "root:" not in answer.text


def test_a_link_out_of_the_folder_is_not_followed(root, tmp_path):
    outside = tmp_path / "outside"
    record(outside / "run", collapse=30)
    (root / "linked").mkdir()
    (root / "linked" / "progress.csv").symlink_to(tmp_path / "secret.csv")
    shutil.copytree(outside / "run", root / "half")
    shutil.rmtree(root / "half" / "blocks")
    (root / "half" / "blocks").symlink_to(outside / "run" / "blocks")
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        found = until(
            lambda: (
                (rows := client.get("/api/runs").json()["rows"])
                and not any(row["lamp"] == "pending" for row in rows)
                and {row["key"]: row for row in rows}
            )
        )
        assert found["half"]["verdict"] == "unreadable"
        assert "link" in found["half"]["reason"]
        assert found["half"]["spark"] == []
        for key in ("half", "linked"):
            page = client.get(f"/run/{key}")
            assert page.status_code in {404, 422}
            assert PRIVATE_TEXT not in page.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8265", "127.0.0.1.evil.example", "", "[::1", "a b"]
)
def test_a_rebound_name_is_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8265", "[::1]:8265", "LOCALHOST"])
def test_this_machine_s_names_are_answered(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_sites_cannot_ask(client, headers):
    assert client.get("/api/runs", headers=headers).status_code == 403


def test_own_pages_and_links_can_ask(client):
    own = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert client.get("/api/runs", headers=own).status_code == 200
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch", "options"])
def test_nothing_can_be_changed(client, method):
    assert getattr(client, method)("/api/runs").status_code == 405


def test_large_requests_are_refused(client):
    assert client.get(f"/api/runs?search={'x' * 9000}").status_code == 413
    assert client.request("GET", "/api/runs", content=b"x").status_code == 413


def test_one_address_cannot_ask_without_end(client, monkeypatch):
    monkeypatch.setattr(access, "MAX_RATE", 0.0)  # whatever the speed of this machine
    answers = [client.get("/assets/icon.svg").status_code for _ in range(int(MAX_BURST) + 1)]
    assert answers[-1] == 429


def test_every_answer_has_the_policy(client):
    for path in ("/", "/run/good", "/nothing", "/api/runs", "/assets/serve.js"):
        headers = client.get(path).headers
        for name, value in SECURITY_HEADERS.items():
            assert headers[name] == value
    assert "unsafe-eval" not in SECURITY_HEADERS["content-security-policy"]
    assert "script-src 'self';" in SECURITY_HEADERS["content-security-policy"]


def test_elsewhere_a_token_is_needed_once(root):
    application = build(root, hosts=("box.lan",), token=TOKEN)
    with TestClient(application, base_url="http://box.lan", follow_redirects=False) as client:
        assert client.get("/").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        assert client.get("/api/events").status_code == 401
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/", headers={"host": "10.0.0.7:8265"}).status_code == 401
        answer = client.get("/api/runs?token=t0ken&limit=1")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/api/runs?limit=1"
        cookie = answer.headers["set-cookie"].lower()
        assert cookie.startswith("rlvitals_token_80=")  # a browser sends it to every port
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/api/runs").status_code == 200
        away = client.get("//evil.example/?token=t0ken").headers.get("location", "/")
        assert not away.startswith("//")


def test_names_are_text_everywhere(tmp_path):
    folder = tmp_path / "runs"
    record(folder / EVIL.replace("/", ""))
    run = next(folder.iterdir())
    file = run / "run.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps(about | {"name": EVIL, "tags": [EVIL], "notes": EVIL}))
    with TestClient(build(folder), base_url="http://127.0.0.1") as client:
        until(lambda: client.get("/api/runs").json()["rows"])
        for path in ("/", f"/run/{run.name}"):
            assert "<img src=x" not in client.get(path).text


def test_no_settings_are_taken_from_below_the_folder(root):
    (root / "rlvitals.toml").write_text('[diagnose]\nonly = ["no-such-rule"]\n')
    (root / "good" / "rlvitals.toml").write_text("this is no TOML")
    with TestClient(build(root), base_url="http://127.0.0.1") as client:
        row = until(
            lambda: (
                (rows := client.get("/api/runs").json()["rows"])
                and rows[0]["lamp"] != "pending"
                and rows[0]
            )
        )
        assert row["verdict"] == "learning"


def test_the_command_refuses_what_it_cannot_serve(tmp_path, capsys):
    assert main(["serve", str(tmp_path / "none")]) == 3
    assert "does not exist" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "70000"]) == 2
    assert "port" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--host", "203.0.113.7", "--port", "0"]) == 2
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_port_that_is_taken_is_no_error_unless_it_was_asked_for(root, capsys):
    with serve._bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with serve._bind_free("127.0.0.1", port) as free:
            assert free.getsockname()[1] not in {0, port}
        assert main(["serve", str(root), "--port", str(port)]) == 2
        assert f"port {port} cannot be used" in capsys.readouterr().err
    with pytest.raises(UsageError, match="port 8265 cannot be used"):
        serve._bind_free("203.0.113.7")


@pytest.mark.parametrize(("flags", "has_token"), [([], False), (["--control"], True)])
def test_who_can_change_runs_needs_the_printed_address(root, capsys, monkeypatch, flags, has_token):
    served = []

    def keep(server, sockets):
        sockets[0].close()
        served.append(server.config.app)

    monkeypatch.setattr(app.Server, "run", keep)
    assert main(["serve", str(root), "--port", "0", *flags]) == 0
    printed = capsys.readouterr()
    address = printed.out.split()[-1]
    assert ("?token=" in address) == has_token
    assert not printed.err  # nobody else on the network can reach it
    base = "http://127.0.0.1"
    with TestClient(served[0], base_url=base, follow_redirects=False) as client:
        assert client.get("/").status_code == (401 if has_token else 200)
        if has_token:
            assert client.post("/api/mark", json={}).status_code in {401, 403}
            assert client.get(f"/?token={address.partition('token=')[2]}").status_code == 303
            assert client.get("/").status_code == 200


def test_browsers_can_connect_once_the_address_is_printed(tmp_path, monkeypatch):
    opened = []

    def open_page(url):
        opened.append(socket.create_connection(("127.0.0.1", urlsplit(url).port)))

    monkeypatch.setattr("webbrowser.open", open_page)
    monkeypatch.setattr(app.Server, "run", lambda _, listeners: listeners[0].close())
    assert main(["serve", str(tmp_path), "--port", "0", "--open"]) == 0
    opened[0].close()
