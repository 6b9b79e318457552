"""All runs of a bucket's root: copied at once, and again only what its index says has changed."""

import json
import shutil

import pytest
from bucket_checks import Folder, copied_rows, upload_all

from rlvitals.bucket import root_copy, run_index
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.cli import main
from rlvitals.storage.events import Events

RUNS = 5


class Recorded:
    """A run of a bucket as its uploading process leaves it."""

    def __init__(self, root, path):
        self.url = f"{root}/{path.name}"
        self.folder = Folder(path)
        self.entry = run_index.RunEntry(self.url, path)

    def upload(self, rows=0, *, has_ended=False):
        if rows:
            self.folder.log(rows)
        if has_ended:
            self.folder.writer.close()
            events = Events(self.folder.path / "events.jsonl")
            events.append("finish", self.folder.rows, attempt=1, status="finished")
        uploader = upload_all(self.folder.path, ObjectStore(self.url), closing=has_ended)
        self.entry.update(has_ended=has_ended, sequence=uploader.manifest.sequence)


@pytest.fixture
def recorded(any_cloud, tmp_path):
    """Five runs of a root: four have ended, one is being written."""
    runs = [Recorded(any_cloud, tmp_path / f"run-{number}") for number in range(RUNS)]
    for number, run in enumerate(runs):
        run.upload(10 + number, has_ended=number > 0)
    return runs


@pytest.fixture
def looks(monkeypatch):
    """The runs that each look copies."""
    names = []

    def open_below(self, name, real=ObjectStore.open_below):
        names.append(name)
        return real(self, name)

    monkeypatch.setattr(ObjectStore, "open_below", open_below)
    return names


def look(url, copy):
    store = ObjectStore(url)
    assert root_copy.copy_root(store, copy, lambda *_: None)
    rows = {folder.name: sum(map(len, copied_rows(folder).values()))
            for folder in sorted(copy.glob("run-*"))}  # fmt: skip
    return rows, store.cost


def test_a_look_asks_for_what_has_not_ended_or_has_changed(any_cloud, recorded, looks, tmp_path):
    copy = tmp_path / "copy"
    rows, _ = look(any_cloud, copy)
    assert rows == {f"run-{number}": 10 + number for number in range(RUNS)}
    assert sorted(looks) == sorted(rows)
    looks.clear()
    recorded[0].folder.log(3)  # its entry is up to a minute older than its rows
    upload_all(recorded[0].folder.path, ObjectStore(recorded[0].url))
    rows, cost = look(any_cloud, copy)
    assert (rows["run-0"], looks) == (13, ["run-0"])
    assert (cost.puts, cost.gets) == (1, 0)  # a listing: no entry is read again
    looks.clear()
    shutil.rmtree(copy / "run-3")
    assert look(any_cloud, copy)[0]["run-3"] == 13
    assert sorted(looks) == ["run-0", "run-3"]


@pytest.mark.soak
def test_what_is_uploaded_after_the_end_of_a_run_is_copied(any_cloud, recorded, looks, tmp_path):
    """The exit codes of its processes, or rows of a machine that was offline."""
    copy, run = tmp_path / "copy", recorded[2]
    look(any_cloud, copy)
    looks.clear()
    crash = run.folder.path / "life" / "1-0.crash"
    crash.parent.mkdir(exist_ok=True)
    crash.write_text("exit 1")
    uploader = upload_all(run.folder.path, ObjectStore(run.url), closing=True)
    run.entry.update(has_ended=True, sequence=uploader.manifest.sequence)
    look(any_cloud, copy)
    assert sorted(looks) == ["run-0", "run-2"]
    assert (copy / "run-2" / "life" / "1-0.crash").read_text() == "exit 1"


@pytest.mark.soak
def test_a_run_whose_rows_are_not_all_there_is_asked_again(any_cloud, recorded, looks, tmp_path):
    copy, run = tmp_path / "copy", recorded[0]
    run.entry.update(has_ended=True, sequence=1)  # one of its machines has ended, the other not
    look(any_cloud, copy)
    run.upload(7)
    run.entry.update(has_ended=True, sequence=1)
    looks.clear()
    assert look(any_cloud, copy)[0]["run-0"] == 17
    assert looks == ["run-0"]


def test_runs_without_an_index_are_found_by_their_manifests(cloud, tmp_path, capsys):
    for place in ("a/run-0", "b/run-0"):
        folder = Folder(tmp_path / place)
        folder.log(20)
        upload_all(folder.path, ObjectStore(f"{cloud}/{place}"))
    assert main(["triage", cloud, "--json"]) in {0, 1, 4}
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert sorted(run["run"] for run in runs) == ["a/run-0", "b/run-0"]


@pytest.mark.soak
@pytest.mark.usefixtures("recorded")
def test_the_index_of_a_bucket_answers_in_sql(any_cloud, capsys):
    query = "select path, step from runs order by path"
    assert main(["sql", any_cloud, query, "--csv"]) == 0
    lines = [f"run-{number},{9 + number}" for number in range(RUNS)]
    assert capsys.readouterr().out.splitlines() == ["path,step", *lines]
    assert main(["index", any_cloud, "--quick"]) == 0
    assert capsys.readouterr().out == "5 runs\n"
