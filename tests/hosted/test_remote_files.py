"""Logs behind a URL: fsspec's memory file system, and an SFTP server of this process.

An object store is read by the same code through a back-end of its own, which is not tried here; the
hub's is in `test_hub_client.py`.
"""

import json
import sys
from pathlib import Path

import fsspec
import pytest

sys.path.append(str(Path(__file__).parents[1] / "checkpoints"))

from rlvitals.checkpoints.transfer import fsspec_remote
from rlvitals.hosted import remote_files

HEAD = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl\n"


def rows(first, last):
    return "".join(f"{n * 2048},{5 * n + n % 3},0.01\n" for n in range(first, last + 1))


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    yield files
    files.rm("/", recursive=True)


@pytest.fixture
def counted(monkeypatch):
    """Count the bytes that are read, by file."""
    counts = {}
    real = fsspec_remote.FsspecFiles.read

    def read(self, name, start=0):
        for data in real(self, name, start):
            counts[name] = counts.get(name, 0) + len(data)
            yield data

    monkeypatch.setattr(fsspec_remote.FsspecFiles, "read", read)
    return counts


def words(call, url):
    document = json.loads(call("diagnose", url, "--json")[1])
    documents = document if isinstance(document, list) else [document]
    return {d["trace"]["name"]: (d["verdict"]["word"], d["trace"]["series"]) for d in documents}


def test_logs_are_copied_and_weights_are_not(memory, call, counted):
    memory.pipe("/runs/a/progress.csv", (HEAD + rows(1, 60)).encode())
    memory.pipe("/runs/b/progress.csv", (HEAD + rows(1, 50)).encode())
    memory.pipe("/runs/b/model.safetensors", b"x" * 1000)
    found = words(call, "memory://runs")
    assert {name: word for name, (word, _) in found.items()} == {"a": "learning", "b": "learning"}
    assert "b/model.safetensors" not in counted


def test_what_has_grown_is_appended_and_what_was_replaced_is_fetched_anew(memory, call, counted):
    text = HEAD + rows(1, 5000)
    assert len(text) > remote_files.MAX_REWRITTEN_BYTES
    memory.pipe("/runs/a/progress.csv", text.encode())
    words(call, "memory://runs/a")
    counted.clear()
    words(call, "memory://runs/a")
    assert counted == {}
    memory.pipe("/runs/a/progress.csv", (text + rows(5001, 5010)).encode())
    (_, series), *_ = words(call, "memory://runs/a").values()
    assert series["outcome/return"]["last_step"] == 5010 * 2048
    assert counted == {"progress.csv": len(rows(5001, 5010)) + 64}
    other = HEAD + rows(7001, 13000)
    memory.pipe("/runs/a/progress.csv", other.encode())
    (_, series), *_ = words(call, "memory://runs/a").values()
    assert series["outcome/return"]["points"] == 6000


def test_a_terminal_sees_how_far_it_is(memory, call, monkeypatch):
    for name in ("a", "b"):
        memory.pipe(f"/runs/{name}/progress.csv", (HEAD + rows(1, 60)).encode())
    assert "fetched" not in call("diagnose", "memory://runs")[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    error = call("diagnose", "memory://runs")[2]
    assert "1 of 2 fetched: b/progress.csv" in error
    assert error.endswith("\r\x1b[K"), "the line is taken away"


def test_nothing_there_and_nothing_readable_are_said(memory, call):
    code, _, error = call("diagnose", "memory://nowhere")
    assert code == 3
    assert "nothing is there" in error
    memory.pipe("/weights/model.safetensors", b"x")
    assert "none of 1 files is a log" in call("diagnose", "memory://weights")[2]


@pytest.mark.parametrize("name", ["../progress.csv", "/etc/progress.csv", "a/../../progress.csv"])
def test_a_name_cannot_leave_the_cache(name):
    assert not remote_files.may_be_log(name, 10)
    assert remote_files.may_be_log("a/progress.csv", 10)


def test_over_ssh_by_the_settings_of_ssh(tmp_path, call, monkeypatch):
    server = pytest.importorskip("test_backup_ssh")
    generator = server.port.__wrapped__(tmp_path)
    port = next(generator)
    folder = tmp_path / "served" / "runs"
    folder.mkdir()
    (folder / "progress.csv").write_text(HEAD + rows(1, 60))
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh" / "config").write_text(
        f"Host cluster\n  HostName 127.0.0.1\n  Port {port}\n  User me\n"
    )
    assert remote_files.ssh_options("sftp://cluster/runs") == {
        "host": "127.0.0.1", "username": "me", "port": port,
    }  # fmt: skip
    assert remote_files.ssh_options("sftp://you@cluster:9/runs") == {"host": "127.0.0.1"}
    try:
        found = words(call, f"ssh://me:secret@127.0.0.1:{port}/runs")
        assert [word for word, _ in found.values()] == ["learning"]
    finally:
        next(generator, None)
    assert not any("secret" in str(path) for path in (tmp_path / "cache").rglob("*"))
