"""A run that is recorded to a bucket by one process and read by others, through the program."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from bucket_checks import Folder, Killed, fetch, upload_all
from effort import sampled

import rlvitals
from rlvitals.bucket import mirror_process, run_index, spool_files
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.cli import main
from rlvitals.errors import VitalsError
from rlvitals.storage import holds
from rlvitals.storage.events import Events
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking import spool
from rlvitals.tracking.sinks.native import Native

TRAINING = """
import sys, time, rlvitals
run = rlvitals.start(sys.argv[1], settings={"lr": 1e-3}, tags=["sweep"])
for step in range(400):
    run.log(step, {"reward": float(step), "loss": 1.0 / (step + 1)})
run.log_rollouts(1, [{"prompt": "p", "completion": "c", "reward": 1.0}])
run.flush()
print(run.folder, flush=True)
if sys.argv[2] == "finish":
    run.finish()
else:
    time.sleep(600)
"""


@pytest.fixture
def call(capsys):
    def run(*argv):
        capsys.readouterr()
        code = main([str(a) for a in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def test_a_killed_training_is_in_the_bucket_and_every_command_reads_it(
    any_cloud, call, tmp_path, monkeypatch
):
    """The training is killed as it trains; its last rows arrive by the process beside it."""
    url = f"{any_cloud}/walk"
    command = [sys.executable, "-c", TRAINING, url, "sleep"]
    training = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    folder = spool.spool_folder(url)
    assert training.stdout.readline().strip() == str(folder)
    os.kill(training.pid, signal.SIGKILL)
    training.wait()
    training.stdout.close()
    wait_for(lambda: spool.read_state(folder).get("done"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    document = json.loads(call("diagnose", url, "--json")[1])
    assert "ended-early" in {finding["rule"] for finding in document["findings"]}
    series = rlvitals.read(url)[0].series["reward"]
    assert series.steps.tolist() == list(range(400))
    assert "1 of 1 rollouts" in call("samples", url)[1]
    assert call("compare", url, url)[0] in (0, 4)
    assert call("triage", any_cloud)[0] in (0, 1, 4)
    cost = json.loads(call("status", url, "--json")[1])["upload"]
    assert cost["writes"] >= 3  # the attempt, a segment, the manifest
    assert cost["sent"] > folder.joinpath("blocks").stat().st_size > 0
    assert "bucket " in call("status", folder)[1]
    assert call("follow", url, "--once")[0] in (0, 1, 4)
    _, out, _ = call("runs", any_cloud, "--search", "sweep", "--json")
    (entry,) = json.loads(out)
    assert entry["path"] == "walk"
    assert entry["step"] == 399
    assert entry["values"]["reward"] == 399.0
    for words, count in (("lr<1e-2 tag:sweep", 1), ("lr>1e-2", 0), ("status:stopped", 1)):
        found = call("runs", any_cloud, "--search", *words.split(), "--json")[1]
        assert len(json.loads(found)) == count, words
    assert call("runs", any_cloud, "--search", "nothing:x")[0] == 2


@pytest.mark.soak
def test_serve_and_follow_show_rows_of_a_bucket_as_they_arrive(cloud, tmp_path, monkeypatch):
    """Both run as processes on the URL; a row that is uploaded later appears in both."""
    folder = Folder(tmp_path / "run")
    folder.log(30)
    upload_all(folder.path, ObjectStore(f"{cloud}/walk"))
    run_index.RunEntry(f"{cloud}/walk", folder.path).update(has_ended=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    program = [sys.executable, "-m", "rlvitals"]
    server = subprocess.Popen(
        [*program, "serve", cloud, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    log = (tmp_path / "follow.txt").open("w")
    follow = [*program, "follow", f"{cloud}/walk", "--until-end"]
    following = subprocess.Popen(follow, stdout=log, stderr=log)
    try:
        address = server.stdout.readline().split()[-1].rstrip("/")

        def step():
            # It binds its port before it listens.
            with suppress(URLError), urlopen(f"{address}/api/runs") as answer:  # noqa: S310
                rows = json.load(answer)["rows"]
                return rows[0]["step"] if rows else None

        wait_for(lambda: step() == 29)
        folder.log(30)
        folder.writer.close()
        Events(folder.path / "events.jsonl").append("finish", 59, attempt=1, status="finished")
        upload_all(folder.path, ObjectStore(f"{cloud}/walk"), closing=True)
        wait_for(lambda: step() == 59)
        wait_for(lambda: "finished, at step 59" in (tmp_path / "follow.txt").read_text())
        assert following.wait(60) in (0, 1, 4)
    finally:
        for process in (server, following):
            process.terminate()
            process.wait()
        server.stdout.close()
        log.close()


def finish_in_a_process(url):
    """Record a run to its end in a process of its own; return its spool folder."""
    command = [sys.executable, "-c", TRAINING, url, "finish"]
    subprocess.run(command, check=True, capture_output=True)
    return spool.spool_folder(url)


@pytest.mark.soak
def test_the_spool_of_a_finished_run_is_deleted_once_the_bucket_has_all(cloud):
    """Its rows are read from the bucket; what a user put there stays."""
    url = f"{cloud}/walk"
    spool.spool_folder(url).mkdir(parents=True)
    (spool.spool_folder(url) / "mine.txt").write_text("a user's own")
    folder = finish_in_a_process(url)
    wait_for(lambda: not (folder / "run.json").exists())
    wait_for(lambda: not [*folder.glob("blocks/*"), *folder.glob("rollouts/*")])
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert left <= {"mine.txt", ".run.lock", ".bucket.upload"}
    assert (folder / "mine.txt").exists()
    series = rlvitals.read(url)[0].series["reward"]
    assert series.steps.tolist() == list(range(400))
    finish_in_a_process(url)  # the same URL again: another attempt, no row of the first is lost
    wait_for(lambda: not (folder / "run.json").exists())
    assert len(rlvitals.read(url)[0].series["reward"].steps) == 800


@pytest.fixture
def finished(cloud, tmp_path):
    """Return the folder of a finished and uploaded run, its store and its uploader."""
    folder, store = finish_folder(tmp_path / "run"), ObjectStore(f"{cloud}/x")
    return folder, store, upload_all(folder.path, store, closing=True)


def finish_folder(path):
    folder = Folder(path)
    folder.log(30)
    folder.writer.close()
    Events(path / "events.jsonl").append("finish", 30, attempt=1, status="finished")
    return folder


@pytest.mark.parametrize(
    "obstacle",
    sampled(
        [
            *("hold", "segment", "manifest", "new rows", "stopped", "open"),
            *("checkpoint", "unsealed", "held checkpoint", "lost part", "own file", "set aside"),
        ],
        3,
    ),
)
def test_spool_files_that_the_bucket_does_not_confirm_stay(finished, obstacle):
    folder, store, uploader = finished
    if obstacle == "hold":
        holds.add(folder.path)
    elif obstacle == "segment":
        store.delete([entry.name for entry in store.list("segments/")])
    elif obstacle == "manifest":
        store.delete([entry.name for entry in store.list("manifests/")])
    elif obstacle == "new rows":
        with (folder.path / "events.jsonl").open("a") as file:
            file.write("{}\n")
    elif obstacle == "unsealed":
        (folder.path / "checkpoint-5").mkdir()
    elif obstacle in CHECKPOINT_OBSTACLES:
        save_checkpoints(folder.path, 5)
        if obstacle != "checkpoint":  # which the bucket lacks
            mirror_checkpoints(folder.path, store)
        CHECKPOINT_OBSTACLES[obstacle](folder.path / "checkpoint-5", store)
    elif obstacle == "stopped":
        (folder.path / "events.jsonl").write_text("")
    else:
        uploader.upload(closing=False)
    before = sorted(folder.path.rglob("*"))
    assert spool_files.remove(folder.path, store) == 0
    assert sorted(folder.path.rglob("*")) == before


CHECKPOINT_OBSTACLES = {
    "checkpoint": lambda *_: None,
    "held checkpoint": lambda path, _: holds.add(path),
    "lost part": lambda _, store: store.delete(["checkpoint-5/model.bin"]),
    "own file": lambda path, _: (path / "mine.txt").write_text("a user's own"),
    "set aside": lambda path, _: (path.parent / "checkpoint-4.other").mkdir(),
}


def mirror_checkpoints(folder, store):
    job = mirror_process.Mirror(folder, store.url, 0.0)
    job.save_checkpoints(wait=True)
    assert job.error == ""


def save_checkpoints(folder, *steps):
    for step in steps:
        with Checkpoints(folder, keep=9, tell=lambda _: None).save(step) as path:
            (path / "model.bin").write_bytes(bytes([step]) * 300)


def test_checkpoints_leave_the_spool_once_the_bucket_has_them(tmp_path, monkeypatch, call):
    """Each removal and renaming is the last before a kill, in turn; then all is mirrored again."""
    folder, store = finish_folder(tmp_path / "run"), ObjectStore(f"memory://{tmp_path.name}/x")
    save_checkpoints(folder.path, 10, 20, 30)
    upload_all(folder.path, store, closing=True)
    for moment in range(60):
        copy = tmp_path / f"half-{moment}"
        shutil.copytree(folder.path, copy)
        mirror_checkpoints(copy, store)
        calls = [moment]

        def last(real, calls=calls):
            def run(*args, **kwargs):
                if not calls[0]:
                    raise Killed
                calls[0] -= 1
                return real(*args, **kwargs)

            return run

        is_cut = False
        with monkeypatch.context() as patch:
            for owner, name in ((Path, "unlink"), (Path, "rename"), (shutil, "rmtree")):
                patch.setattr(owner, name, last(getattr(owner, name)))
            try:
                assert spool_files.remove(copy, store) > 900
            except Killed:
                is_cut = True
        if (copy / "run.json").exists():
            mirror_process.mirror(copy, store.url, None, print)
        remote = ObjectStore(store.url)
        for step in (10, 20, 30):
            assert remote.read(f"checkpoint-{step}/model.bin") == bytes([step]) * 300
        assert fetch(remote, tmp_path / f"copy-{moment}") == {(1, 0): list(range(30))}
        if not is_cut:
            assert moment > 10
            assert not [path for path in copy.rglob("*") if "checkpoint" in path.name]
            code, out, _ = call("restore", store.url, "-o", tmp_path / "restored")
            assert code == 0
            assert "its rows are not restored" in out
            assert "manifests/" not in out  # an upload's own objects are nothing foreign
            model = tmp_path / "restored" / "checkpoint-30" / "model.bin"
            assert model.read_bytes() == bytes([30]) * 300
            return
    pytest.fail("more files are removed than are cut")


@pytest.mark.soak
def test_a_spool_that_is_deleted_by_half_loses_and_doubles_nothing(finished, tmp_path, monkeypatch):
    """Each removal is the last before a kill, in turn; the folder is then uploaded again."""
    folder, store, _ = finished
    for moment in range(20):
        copy = tmp_path / f"half-{moment}"
        shutil.copytree(folder.path, copy)
        calls = [moment]

        def unlink(path, missing_ok=False, calls=calls, real=Path.unlink):
            if not calls[0]:
                raise Killed
            calls[0] -= 1
            real(path, missing_ok=missing_ok)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", unlink)
            try:
                assert spool_files.remove(copy, store) > 0
            except Killed:
                is_cut = True
            else:
                is_cut = False
        if (copy / "run.json").exists():
            upload_all(copy, store, closing=True)
        assert fetch(store, tmp_path / f"copy-{moment}") == {(1, 0): list(range(30))}
        if not is_cut:
            assert moment > 4
            return
    pytest.fail("more files are removed than are cut")


def test_the_end_of_a_run_waits_for_its_upload(cloud, tmp_path, monkeypatch):
    url = f"{cloud}/walk"
    monkeypatch.setattr(spool, "MAX_FINISH_SECONDS", 120.0)
    run = rlvitals.start(tmp_path / "run", mirror=url)
    run.log(1, {"reward": 2.0})
    run.finish()
    assert spool.read_state(run.folder)["done"]
    assert spool.read_state(run.folder)["unsent"] == 0
    assert run_index.read(ObjectStore(cloud))["walk"]["status"] == "finished"


def test_a_bucket_that_is_not_there_is_named_at_the_end(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = rlvitals.start("nonsense://bucket/x")
    run.log(1, {"reward": 2.0})
    run.finish()
    error = capfd.readouterr().err
    assert "not at nonsense://bucket/x" in error
    assert f"rlvitals mirror {run.folder}" in error
    assert len(rlvitals.read(run.folder)[0].series["reward"].steps) == 1


def test_a_full_spool_takes_no_rows_until_the_bucket_has_some(tmp_path, monkeypatch):
    from rlvitals.tracking.sinks.sink import Opening

    folder = Folder(tmp_path / "run")
    opening = Opening(folder.path, "id", "x", "", "", {}, folder.attempt, 0, False, {})
    sink = spool.BoundedSink(Native(opening, Budget()), folder.path, limit=2_000)
    monkeypatch.setattr(spool, "ROOM_SECONDS", 0.0)
    sink.flush()
    folder.log(500)
    with pytest.raises(OSError, match="spool folder is full"):
        sink.flush()
    state = {"uploaded": (folder.path / "blocks" / "1-0.rlv").stat().st_size}
    (folder.path / spool.UPLOAD_STATE_FILE).write_text(json.dumps(state))
    sink.flush()
    sink.close("finished")


def test_many_runs_write_one_shard_of_the_index(any_cloud, tmp_path, monkeypatch):
    monkeypatch.setattr(run_index, "SHARD_DIGITS", 0)
    for number in range(3):
        folder = Folder(tmp_path / str(number))
        folder.log(number + 1)
        run_index.RunEntry(f"{any_cloud}/run-{number}", folder.path).update(has_ended=True)
    entries = run_index.read(ObjectStore(any_cloud))
    assert {name: entry["step"] for name, entry in entries.items()} == {
        f"run-{number}": number for number in range(3)
    }
    assert len(ObjectStore(any_cloud).list(run_index.INDEX_FOLDER)) == 1


@pytest.mark.soak
def test_runs_of_a_root_without_an_index_are_listed_by_their_manifests(
    cloud, call, tmp_path, monkeypatch
):
    for number in range(3):
        folder = Folder(tmp_path / str(number))
        folder.log(5)
        upload_all(folder.path, ObjectStore(f"{cloud}/run-{number}"))
    ObjectStore(cloud).write("notes/a.txt", b"no run")
    code, out, err = call("runs", cloud, "--sort", "name", "--json")
    listed = json.loads(out)
    assert (code, [entry["path"] for entry in listed]) == (0, ["run-0", "run-1", "run-2"])
    assert listed[0]["name"] == "x"
    assert (listed[0]["attempts"], listed[0]["step"]) == (1, None)
    assert "by their manifests, without steps and status\n" in err
    assert "run-2 (x)" in call("runs", cloud)[1]
    monkeypatch.setattr(run_index, "MAX_LISTED_RUNS", 2)
    _, out, err = call("runs", cloud, "--json")
    assert "of the first 2 of 4 names" in err
    assert [entry["path"] for entry in json.loads(out)] == ["run-0"]
    (manifest,) = (entry.name for entry in ObjectStore(f"{cloud}/run-0").list("manifests/"))
    ObjectStore(f"{cloud}/run-0").write(manifest, b"damaged")
    listed = json.loads(call("runs", cloud, "--json")[1])
    assert [entry["status"] for entry in listed] == ["unreadable"]
    code, _, err = call("runs", f"{cloud}/nothing")
    assert code == 3
    assert "no index of runs" in err


def test_mirror_by_hand_uploads_what_a_lost_machine_left(any_cloud, call, tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        run.log(1, {"reward": 2.0})
    assert call("mirror", run.folder, f"{any_cloud}/x")[0] == 0
    assert call("diagnose", f"{any_cloud}/x")[0] in (0, 4)
    assert call("mirror", tmp_path / "nothing", f"{any_cloud}/x")[0] == 2
    with pytest.raises(VitalsError, match="nothing is there"):
        rlvitals.read(f"{any_cloud}/nothing")
