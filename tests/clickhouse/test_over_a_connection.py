"""The index in ClickHouse over HTTP: the commands, a password, and a server that dies."""

import json
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import random_indexes

from rlvitals.cli import main
from rlvitals.errors import UsageError
from rlvitals.storage.index import Index

pytest.importorskip("chdb", reason="the engine of ClickHouse: pip install 'rlvitals[soak]'")
pytestmark = pytest.mark.soak

from rlvitals.clickhouse import fill  # noqa: E402 - after the skip
from rlvitals.clickhouse.connection import Connection  # noqa: E402
from rlvitals.clickhouse.run_store import RunStore  # noqa: E402

RUN = {"name": "n", "project": "", "group": "", "notes": "", "tags": ("sweep",), "seed": 1,
       "settings": {"lr": 0.5, "it's": "a\tb\\"}, "verdict": "learning"}  # fmt: skip
ROWS = 400


class Server:
    """The engine's process."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.start()

    def start(self):
        program = Path(__file__).with_name("engine_server.py")
        command = [sys.executable, program, str(self.folder), str(self.port)]
        self.process = subprocess.Popen(command)
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        pytest.fail("the server does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server(tmp_path / "engine")
    yield server
    server.kill()


@pytest.fixture
def url(server):
    return f"clickhouse://me@127.0.0.1:{server.port}/lab"


@pytest.fixture
def root(tmp_path):
    points = {key: [(10 * n, n / 7) for n in range(ROWS)] for key in ("loss", "it's")}
    names = ("a", "b'", "c\\")
    random_indexes.write(tmp_path / "runs", {name: {**RUN, "attempts": [points]} for name in names})
    return tmp_path / "runs"


def test_the_commands_ask_a_server(url, root, capsys):
    assert main(["index", str(root), "--to", url]) == 0
    assert capsys.readouterr().out == "3 runs written, 2,400 points, 0 rollouts, 0 runs removed\n"
    for words in (["lr<1", "tag:sweep"], ["lr>1"]):
        assert main(["runs", "--index", url, "--search", *words, "--json"]) == 0
        by_server = json.loads(capsys.readouterr().out)
        assert main(["runs", str(root), "--quick", "--search", *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == by_server
    assert main(["triage", "--index", url, "--json"]) in {0, 1, 4}
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 3
    assert main(["sql", url, "select run, count() from points group by run", "--csv"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == ["a,800", "b',800", "c\\,800"]
    assert main(["sql", url, "drop table points"]) == 2
    assert "readonly" in capsys.readouterr().err
    with Index(root) as index, RunStore(url) as store:
        for path in ("a", "b'", "c\\"):
            assert store.last(path) == index.last(path)
            points = store.points(path, "it's", 50)
            expected = index.points(path, "it's", 50)
            assert points.values.tolist() == expected.values.tolist()


def test_a_wrong_password_and_a_server_that_is_not_there_are_named(server, url, monkeypatch):
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "wrong")
    with pytest.raises(UsageError, match="Authentication failed") as raised:
        Connection(url)
    assert "wrong" not in str(raised.value)
    server.kill()
    with pytest.raises(UsageError, match="ClickHouse: ") as raised:
        Connection(url)
    assert raised.value.where == url.replace("me@", "")


@pytest.mark.parametrize("inserts", [0, 2, 5])
def test_a_server_that_dies_during_a_fill_loses_and_doubles_nothing(
    server, url, root, inserts, monkeypatch
):
    monkeypatch.setattr(fill, "MAX_BATCH_POINTS", 300)
    left, real = [inserts], Connection.insert

    def insert(connection, *args):
        if not left[0]:
            server.kill()
        left[0] -= 1
        real(connection, *args)

    with Index(root) as index:
        index.refresh()
        with RunStore.create(url, str(root)) as store, monkeypatch.context() as patch:
            patch.setattr(Connection, "insert", insert)
            with pytest.raises(UsageError, match="ClickHouse: "):
                fill.Filler(index, store).fill()
        server.start()
        with RunStore.create(url, str(root)) as store:
            fill.Filler(index, store).fill()
            query = "SELECT run, count(), uniqExact(key, ordinal) FROM points FINAL GROUP BY run"
            assert {row[1:] for row in store.connection.query(query)} == {(2 * ROWS, 2 * ROWS)}
            assert store.search() == index.search()
            assert store.last("a") == index.last("a")
