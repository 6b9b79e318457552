"""The index of many runs, and the commands over run folders."""

import json
import os
import shutil
import sqlite3

import pytest
from native_runs import record

import rlvitals
from rlvitals.cli import main
from rlvitals.diagnosis import batch
from rlvitals.errors import UsageError
from rlvitals.server import fleet_line
from rlvitals.storage.blocks import Writer, try_lock
from rlvitals.storage.index import INDEX_FILE, Index


@pytest.fixture
def root(tmp_path):
    record(
        tmp_path / "a",
        settings={"ppo": {"lr": 1e-3}, "env": "CartPole"},
        tags=("sweep",),
        project="control",
        seed=1,
    )
    record(tmp_path / "deep" / "b", settings={"lr": 3e-4}, notes="the long one", attempts=2)
    record(tmp_path / "c", close=False)
    return tmp_path  # fmt: skip


def paths(index, words=""):
    return {one.path for one in index.search(words)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"a", "deep/b", "c"}),
        ("lr<=3e-4", {"deep/b"}),
        ("lr>1e-4", {"a", "deep/b"}),
        ("ppo/lr=0.001", {"a"}),
        ("env=CartPole", {"a"}),
        ("env!=CartPole", set()),
        ("seed=1", {"a"}),
        ("tag:sweep", {"a"}),
        ("tag:swe", set()),
        ("swee", {"a"}),
        ("LONG", {"deep/b"}),
        ("project:control", {"a"}),
        ("status:finished", {"a", "deep/b"}),
        ("status:stopped", {"c"}),
        ("verdict:learning", {"c"}),
        ("status:finished lr<1", {"a", "deep/b"}),
        ("status:finished no-such", set()),
        ("'; DROP TABLE runs", set()),
    ],
)
def test_search(root, words, expected):
    with Index(root) as index:
        index.refresh()
        index.note({"c": "learning"})
        assert paths(index, words) == expected


def test_the_job_of_a_scheduler_is_listed_and_found(root, capsys):
    job = {"scheduler": "Slurm", "id": "41", "array_index": "3", "node": "n7", "restarts": "2"}
    record(root / "d", more={"job": job}, tags=("night",))
    assert main(["runs", str(root), "--quick", "--search", "job/id=41"]) == 0
    out = capsys.readouterr().out
    assert "Slurm job 41_3 on n7, restart 2" in " ".join(out.split())
    assert "1 of 4 runs fit" in out
    assert main(["runs", str(root), "--quick", "--search", "job/restarts<2"]) == 0
    assert "0 of 4 runs fit" in capsys.readouterr().out
    assert main(["runs", str(root), "--quick", "--search", "tag:sweep"]) == 0
    assert "job" not in capsys.readouterr().out
    with Index(root) as index:
        (entry,) = index.search("job/id=41")
    assert entry.job == "Slurm job 41_3 on n7, restart 2"
    assert fleet_line.from_index(entry).job == entry.job


def test_settings_that_arrive_after_the_start_are_searched(tmp_path):
    """Those of a captured tracker do: the run begins before its configuration is known."""
    with rlvitals.start(tmp_path / "a", settings={"net": {"width": 64}, "lr": 1.0}) as run:
        run.update_settings({"net": {"depth": 2}, "lr": 1e-3})
    with Index(tmp_path) as index:
        index.refresh()
        for words, count in (("lr<1e-2", 1), ("lr=1", 0), ("net/depth=2 net/width=64", 1)):
            assert len(index.search(words)) == count, words


def test_settings_that_are_called_like_a_job_are_none(root):
    record(root / "d", settings={"Job/scheduler": "x", "Job/id": 3, "job": {"id": 3}})
    with Index(root) as index:
        index.refresh()
        assert {entry.job for entry in index.search()} == {""}


def test_groups_are_a_column_where_a_run_has_one(root, capsys):
    assert main(["runs", str(root), "--quick"]) == 0
    assert "group" not in capsys.readouterr().out
    record(root / "d", group="night")
    assert main(["runs", str(root), "--quick"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[-1] == "group"
    assert [line.split()[-1] for line in lines if line.startswith("d ")] == ["night"]


@pytest.mark.parametrize("words", ["lr<x", "colour:red"])
def test_a_question_that_makes_no_sense(root, words):
    with Index(root) as index, pytest.raises(UsageError):
        index.search(words)


def test_the_index_follows_the_folders(root):
    with Index(root) as index:
        index.refresh()
        index.note({"a": "learning"})
        assert {one.path: one.step for one in index.search()} == {"a": 50, "deep/b": 90, "c": 50}
        assert {one.attempts for one in index.search("deep/b")} == {2}
    shutil.rmtree(root / "c")
    record(root / "d")
    writer = Writer(root / "d" / "blocks" / "1-0.rlv")
    with Index(root) as index:
        index.refresh()
        assert paths(index) == {"a", "deep/b", "d"}
        assert paths(index, "status:running") == {"d"}
        assert paths(index, "verdict:learning") == {"a"}
    writer.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all, and long enough", None])
def test_an_index_that_is_spoilt_is_made_again(root, content):
    if content is None:
        db = sqlite3.connect(root / INDEX_FILE)
        db.execute("PRAGMA user_version = 99")
        db.commit()
        db.close()
    else:
        (root / INDEX_FILE).write_bytes(content)
    with Index(root) as index:
        index.refresh()
        assert paths(index) == {"a", "deep/b", "c"}
        index.rebuild()
        assert paths(index) == {"a", "deep/b", "c"}


def test_a_folder_that_cannot_be_read_is_shown_with_its_problem(root):
    said = json.loads((root / "a" / "run.json").read_text())
    (root / "a" / "run.json").write_text(json.dumps({**said, "format": 9}))
    with Index(root) as index:
        index.refresh()
        (one,) = index.search("path-of-a") or [i for i in index.search() if i.path == "a"]
    assert "newer" in one.problem


def test_runs_are_listed_and_searched(root, capsys):
    assert main(["runs", str(root)]) == 0
    assert "deep/b" in capsys.readouterr().out
    assert main(["runs", str(root), "--search", "tag:sweep", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["path"], one["status"], one["tags"]) == ("a", "finished", ["sweep"])
    assert main(["runs", str(root), "--search", "tag:sweep"]) == 0
    assert "1 of 3 runs fit" in capsys.readouterr().out
    assert main(["runs", str(root), "--diagnose", "--rebuild", "--json"]) == 0
    assert all(one["verdict"] for one in json.loads(capsys.readouterr().out))
    assert main(["runs", str(root / "deep" / "b" / "blocks")]) == 3


def listed(root, capsys, *more):
    assert main(["runs", str(root), "--json", *more]) == 0
    return {one["path"]: one["verdict"] for one in json.loads(capsys.readouterr().out)}


def rising(folder, rows, **more):
    with rlvitals.start(folder, **more) as run:
        for i in range(rows):
            run.log(1000 * i, {"outcome/return": 20.0 + i + i % 3})


def test_every_run_has_its_verdict_and_is_found_by_it(tmp_path, capsys):
    rising(tmp_path / "up", 200)
    rising(tmp_path / "short", 2)
    assert listed(tmp_path, capsys) == {"up": "learning", "short": "unknown"}
    assert set(listed(tmp_path, capsys, "--search", "verdict:learning")) == {"up"}


def test_only_what_changed_is_judged_again(tmp_path, capsys, monkeypatch):
    asked = []
    diagnose = batch.diagnose

    def counted(runs, *args):
        asked.append([run.name for run, _ in runs])
        return diagnose(runs, *args)

    monkeypatch.setattr(batch, "diagnose", counted)
    for name in ("a", "b"):
        rising(tmp_path / name, 2)
    listed(tmp_path, capsys, "--quick")
    listed(tmp_path, capsys)
    listed(tmp_path, capsys)
    rising(tmp_path / "b", 200)
    assert listed(tmp_path, capsys) == {"a": "unknown", "b": "learning"}
    (tmp_path / "rlvitals.toml").write_text('[metrics]\n"my/score" = "outcome/return"\n')
    listed(tmp_path, capsys)
    assert [sorted(names) for names in asked] == [["a", "b"], [], ["b"], ["a", "b"]]
    assert listed(tmp_path, capsys, "--diagnose").keys() == {"a", "b"}
    assert len(asked[-1]) == 2


def test_wrong_settings_of_one_run_keep_no_other_from_its_verdict(tmp_path, capsys):
    for name in ("a", "b"):
        rising(tmp_path / name, 2)
    (tmp_path / "b" / "rlvitals.toml").write_text("[diagnose]\nno_such = 1\n")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert {one["path"]: one["verdict"] for one in json.loads(out)} == {"a": "unknown", "b": ""}
    assert "b is not judged" in err
    assert "no_such" in err


def test_a_large_run_is_said_to_read_faster_once_packed(tmp_path, capsys, monkeypatch):
    record(tmp_path / "one")
    assert main(["runs", str(tmp_path)]) == 0
    assert "packed" not in capsys.readouterr().out
    monkeypatch.setattr("rlvitals.cli.runs.MIN_PACK_BYTES", 100)
    assert main(["runs", str(tmp_path)]) == 0
    assert f"1 run is large and read faster once packed: rlvitals compact {tmp_path}" in (
        capsys.readouterr().out
    )
    assert main(["compact", str(tmp_path)]) == 0
    assert main(["runs", str(tmp_path)]) == 0
    assert "once packed" not in capsys.readouterr().out


def test_a_run_that_died_without_a_word_is_no_longer_running(tmp_path):
    record(tmp_path / "one", close=False)

    def seen():
        with Index(tmp_path) as index:
            index.refresh()
            return [one.status for one in index.search()]

    with (tmp_path / "one" / "blocks" / "1-0.rlv").open("r+b") as file:
        assert try_lock(file.fileno())  # as the process that writes it does
        assert seen() == ["running"]
    assert seen() == ["stopped"]


def test_verify_names_the_place_and_says_so_by_its_code(root, capsys):
    assert main(["verify", str(root)]) == 0
    assert capsys.readouterr().out.count(": whole: ") == 3
    path = root / "a" / "blocks" / "1-0.rlv"
    data = bytearray(path.read_bytes())
    data[data.index(b"RLVB", 400) + 40] ^= 1
    path.write_bytes(data + data[:40])
    assert main(["verify", str(root / "a")]) == 1
    out = capsys.readouterr().out
    assert "1 of 3 files damaged" in out
    assert "blocks/1-0.rlv: " in out
    assert "does not match its checksum" in out
    assert "the last 40 bytes are no whole block: not flushed when its process ended" in out
    os.utime(path, (1, 1))
    assert main(["compact", str(root / "a")]) == 1
    assert "1-0.rlv left: it is damaged: " in capsys.readouterr().out


def test_compact_packs_what_is_finished(root, capsys):
    os.utime(root / "c" / "blocks" / "1-0.rlv", (1, 1))
    assert main(["compact", str(root)]) == 0
    assert capsys.readouterr().out.count("files packed") == 3
    assert main(["compact", str(root)]) == 0
    assert capsys.readouterr().out.count("nothing to pack") == 3


def test_export_writes_a_table_or_a_run(root, capsys):
    table, run = root / "x.csv", root / "imported"
    assert main(["export", str(root / "a"), str(table), "--keys", "kl, loss"]) == 0
    assert table.read_text().splitlines()[0] == "step,time,loss,kl"
    assert main(["export", str(root / "a"), str(table)]) == 2
    assert "a file is there already" in capsys.readouterr().err
    assert main(["export", str(root / "a"), str(table), "--force"]) == 0
    assert main(["export", str(table), str(run)]) == 0
    assert "rlvitals diagnose" in capsys.readouterr().out
    assert main(["diagnose", str(run), "--fail-on", "never"]) == 0
    assert main(["export", str(root / "a"), str(table), "--force", "--keys", "los"]) == 2
    assert "did you mean loss?" in capsys.readouterr().err
