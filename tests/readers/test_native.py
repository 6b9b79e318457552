"""Our own run folders, as they are diagnosed: attempts, ranks, settings, how they end."""

import json
import shutil

import numpy as np
import pytest

import rlvitals
from rlvitals.errors import UnreadableLog
from rlvitals.metrics.frameworks import TABLES, lookup
from rlvitals.readers import native as reader
from rlvitals.readers.discovery import sources
from rlvitals.storage import frames, run_folder
from rlvitals.storage.blocks import Writer
from rlvitals.storage.compact import compact
from rlvitals.storage.run_folder import About, RunFolder
from rlvitals.types import Ending

SB3 = ("rollout/ep_rew_mean", "train/approx_kl")


def log(run, steps, *, rank=0, launch="", keys=SB3, close=True):
    """Begin an attempt and log a row at each step."""
    run, number, path = run.begin(rank, launch=launch)
    writer = Writer(path)
    steps = np.array(steps)
    writer.scalars(keys, steps, 1.7e9 + steps, np.array([steps / 10 + rank, steps / 100]))
    if close:
        writer.close()
    else:
        writer.flush()
    return number


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", About(name="x", settings={"a": {"lr": 0.1}}))


def read(run):
    (found,) = rlvitals.read(run.path)
    return found


def test_attempts_are_one_after_another_and_a_seam_is_marked(run):
    log(run, [10, 20, 30])
    log(run, [20, 30, 40])
    log(run, [50])
    found = read(run)
    assert found.series[SB3[0]].steps.tolist() == [10, 20, 30, 20, 30, 40, 50]
    assert "attempt 3 goes on at step 50" in found.notes
    trace = rlvitals.trace(run.path)
    assert trace.lifecycle.seams == (20,)
    assert any("resumed at step 20" in note for note in trace.notes)


def test_the_lowest_rank_is_the_run_and_the_others_are_kept_beside_it(run):
    for rank in (0, 1, 2):
        log(run, [10, 20], rank=rank, launch="a")
    found = read(run)
    assert found.series[SB3[0]].values.tolist() == [1.0, 2.0]
    assert found.series[f"rank/2/{SB3[0]}"].values.tolist() == [3.0, 4.0]
    assert any("ranks 1 to 2" in note for note in found.notes)
    trace = rlvitals.trace(run.path)
    assert len(trace["outcome/return"]) == 2
    assert not [key for key in trace.unmapped if key.startswith("rank/")]


def test_settings_are_those_of_now(run):
    run.update(seed=3, tags=("t",))
    _, _, path = run.begin()
    writer = Writer(path)
    writer.settings(5, 1.0, {"a": {"lr": 0.05}, "net": [64, 64]})
    writer.close()
    found, cursor = reader.read(run.path / "run.json", None)
    assert found.settings["a/lr"] == 0.05
    assert found.settings["net"] == "[64, 64]"
    assert (found.settings["seed"], found.settings["rlvitals/tags"]) == (3, "t")
    later, _ = reader.read(run.path / "run.json", cursor)
    assert later.settings == found.settings


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"status": "finished"}, Ending(0, reason="finished")),
        ({"status": "failed", "traceback": "E: x"}, Ending(None, "E: x", reason="failed")),
        ({"exit_code": 0}, Ending(0)),
        ({"exit_code": 137}, Ending(137)),
        ({"status": "stopped"}, Ending(None, reason="stopped")),
    ],
)
def test_the_end_is_the_newest_attempt_s(run, facts, expected):
    log(run, [1])
    run.events.append("finish", attempt=1, status="failed")
    log(run, [2])
    assert read(run).ending is None
    run.events.append("finish", attempt=2, **facts)
    run.events.append("finish", attempt=2, rank=1, status="finished")
    assert read(run).ending == expected


def test_what_the_recorder_noted_is_said_once(run):
    log(run, [1])
    for count in (1, 2, 4):
        run.events.append("note", text="a value was no number", count=count)
    notes = read(run).notes
    assert [n for n in notes if "no number" in n] == [
        "while recording: a value was no number (4 times)"
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_damage_is_named_by_its_place(run, packed):
    log(run, range(100))
    if packed:
        compact(run.path)
    (path,) = (run.path / "blocks").iterdir()
    data = bytearray(path.read_bytes())
    data[-40] ^= 1  # in the last column, or in what follows it
    path.write_bytes(data)
    (note,) = [note for note in read(run).notes if "damaged" in note or "no whole" in note]
    assert f"blocks/{path.name}" in note


def test_what_sinks_wrote_beside_is_not_read_twice(run):
    log(run, range(10))
    for name in ("metrics/a.csv", "tensorboard/rows.csv"):
        (run.path / name).parent.mkdir()
        (run.path / name).write_text("step,loss\n1,2\n2,3\n3,4\n")
    run.events.append("heartbeat", 3, loss=1.0)
    run.events.append("heartbeat", 4, loss=1.0)
    (found,) = sources.find(run.path)
    assert [file.name for file, _ in found.files] == ["run.json"]
    (run.path / "progress.csv").write_text("step,loss\n1,2\n2,3\n3,4\n")
    (found,) = sources.find(run.path)
    assert [file.name for file, _ in found.files] == ["progress.csv", "run.json"]


def test_runs_below_a_folder_are_told_apart(tmp_path):
    for name in ("a", "b/seed-1"):
        log(RunFolder.create(tmp_path / name, About()), [1, 2, 3])
    assert [run.name for run in sources.find(tmp_path)] == ["a", "b/seed-1"]


def test_blocks_are_read_without_their_run_json(run):
    log(run, [1, 2])
    log(run, [3, 4])
    (run.path / "run.json").write_text("{")
    assert read(run).series[SB3[0]].steps.tolist() == [1, 2, 3, 4]
    (run.path / "run.json").unlink()
    assert read(run).series[SB3[0]].steps.tolist() == [1, 2, 3, 4]
    (alone,) = rlvitals.read(run.path / "blocks" / "2-0.rlv")
    assert alone.series[SB3[0]].steps.tolist() == [3, 4]


def test_a_moved_run_is_the_same(run, tmp_path):
    log(run, [1, 2])
    shutil.move(run.path, tmp_path / "elsewhere")
    (found,) = rlvitals.read(tmp_path / "elsewhere")
    assert found.series[SB3[0]].steps.tolist() == [1, 2]


def test_a_newer_format_is_refused_by_name_and_an_older_one_read(run, monkeypatch):
    monkeypatch.setattr(frames, "BLOCK_FORMAT", 0)
    log(run, [1, 2])
    said = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**said, "format": 0}))
    monkeypatch.undo()
    assert len(read(run).series[SB3[0]]) == 2
    monkeypatch.setattr(frames, "BLOCK_FORMAT", 2)
    log(run, [3])
    monkeypatch.undo()
    with pytest.raises(UnreadableLog, match="blocks of format 2"):
        rlvitals.read(run.path)
    (run.path / "run.json").write_text(json.dumps({**said, "format": run_folder.RUN_FORMAT + 1}))
    with pytest.raises(UnreadableLog, match="a run folder of format 2"):
        rlvitals.read(run.path)


def test_the_framework_that_a_run_names_picks_its_table():
    keys = ["kl", "loss", "grad_norm", "reward"]
    assert lookup.choose("rlvitals", keys, TABLES, "trl-grpo").framework == "trl-grpo"
    assert lookup.choose("rlvitals", keys, TABLES, "trl").framework.startswith("trl-")
    assert lookup.choose("rlvitals", ["rollout/ep_rew_mean"], TABLES).framework == "sb3"
    assert lookup.choose("rlvitals", ["rollout/ep_rew_mean"], TABLES, "trl").framework == "sb3"
    assert lookup.choose("rlvitals", ["no such key"], TABLES, "sb3") is None


def test_other_counts_that_rows_stand_at_are_no_unknown_metrics(tmp_path):
    with rlvitals.start(tmp_path / "run") as recorded:
        for step in range(20):
            recorded.log(step, {SB3[0]: 1.0 * step}, episode=step // 2, tokens=8 * step)
    trace = rlvitals.trace(tmp_path / "run")
    assert trace.unmapped == ()
