"""The index: columns, places in bytes, the cache, and series for each step."""

import json
import shutil

import numpy as np
import pytest
from dialect_files import lines

import rlvitals
from rlvitals.diagnosis import load
from rlvitals.readers import select
from rlvitals.readers.discovery import sources
from rlvitals.rollouts import records, rollout_columns, rollout_index, series
from rlvitals.rollouts.rollout_columns import is_looping


def row(step, number, score, **more):
    return {
        "input": f"q{number}",
        "output": f"a {step}",
        "gts": "",
        "score": score,
        "step": step,
    } | more


def write_run(folder, steps=3):
    for step in range(steps):
        lines(
            folder / f"{step}.jsonl",
            row(step, 0, 0.0, data_source="easy"),
            row(step, 0, 1.0, data_source="easy"),
            row(step, 1, 0.0, data_source="hard"),
            row(step, 1, 0.0, data_source="hard"),
        )
    return folder


def test_rows_lie_where_the_index_says(tmp_path):
    rollouts = rollout_index.read(write_run(tmp_path / "rollouts"))
    assert len(rollouts) == 12
    for n, step in enumerate(rollouts.rows["step"].tolist()):
        sample = rollouts.read_sample(n)
        assert (sample.step, sample.text) == (step, f"a {step}")
    assert rollouts.column("task")[:4] == ["easy", "easy", "hard", "hard"]


def test_the_index_is_read_again_only_where_a_file_changed(tmp_path, cache, monkeypatch):
    folder = write_run(tmp_path / "rollouts")
    first = rollout_index.read(folder)
    assert len(list(cache.rglob("*.npz"))) == 1
    with monkeypatch.context() as patch:
        patch.setattr(rollout_index, "scan", None)  # what is not called cannot fail
        second = rollout_index.read(folder)
    assert second.rows.tobytes() == first.rows.tobytes()
    assert second.texts == first.texts
    with (folder / "2.jsonl").open("a") as file:
        file.write(json.dumps(row(2, 5, 1.0)) + "\n")
    assert len(rollout_index.read(folder)) == 13


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive", b"\x80\x04pickle"])
def test_a_damaged_index_is_built_again(tmp_path, cache, damage):
    folder = write_run(tmp_path / "rollouts")
    rollout_index.read(folder)
    (stored,) = cache.rglob("*.npz")
    stored.write_bytes(damage)
    assert len(rollout_index.read(folder)) == 12


def test_a_cache_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(rollout_index.read(write_run(tmp_path / "rollouts"))) == 12


def test_a_line_cut_short_and_lines_of_something_else(tmp_path):
    path = lines(tmp_path / "7.jsonl", row(7, 0, 1.0), {"step": 7, "note": "no rollout"})
    with path.open("a") as file:
        file.write('{"input": "q", "outp')
    rollouts = rollout_index.read(path)
    assert len(rollouts) == 1
    assert rollouts.notes == ("7.jsonl: 1 record not of verl",)


def test_series_of_each_step(tmp_path):
    log = series.to_log(rollout_index.read(write_run(tmp_path / "rollouts")))
    values = {key: column.values.tolist() for key, column in log.series.items()}
    assert values["rollout/reward_mean"] == [0.25] * 3
    assert values["rollout/dead_group_share"] == [0.5] * 3
    assert values["rollout/dead_groups/easy"] == [0.0] * 3
    assert values["rollout/dead_groups/hard"] == [1.0] * 3
    assert not {"rollout/turns_mean", "rollout/error_share", "rollout/unscored_share"} & set(values)
    assert log.series["rollout/reward_mean"].steps.tolist() == [0, 1, 2]
    assert "rollout/tool_calls_mean" not in values  # no rollout has a tool


def test_a_step_without_a_number_has_no_point(tmp_path):
    path = lines(
        tmp_path / "a" / "7.jsonl", row(7, 0, None, acc=1.0), row(7, 0, None), row(7, 1, 0.5)
    )
    log = series.to_log(rollout_index.read(path))
    assert log.series["rollout/reward_mean"].values.tolist() == [0.5]
    assert log.series["rollout/unscored_share"].values.tolist() == [pytest.approx(2 / 3)]
    assert log.series["rollout/part/acc"].values.tolist() == [1.0]
    assert "rollout/dead_group_share" not in log.series  # one group is one rollout


def test_evaluations_are_not_counted(tmp_path):
    folder = tmp_path / "validation"
    lines(folder / "7.jsonl", row(7, 0, 1.0))
    assert series.to_log(rollout_index.read(folder)).series == {}


def test_frames_are_read_to_the_last_complete_one(tmp_path):
    frames = [records.zstd.compress(f'{{"n": {n}}}\n{{"n": {n + 1}}}\n'.encode()) for n in (0, 2)]
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"".join(frames) + frames[0][:-3])
    read = list(records.read_records(path, "frames"))
    assert [record["n"] for _, record in read] == [0, 1, 2, 3]
    assert all(records.read_record(path, "frames", location) == record for location, record in read)


def test_memory_is_bounded_by_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(rollout_columns, "PENDING_ROWS", 5)
    rollouts = rollout_index.read(write_run(tmp_path / "rollouts"))
    assert rollouts.rows["step"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert np.isnan(rollouts.rows["advantage"]).all()


def test_texts_beyond_the_limit_share_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(rollout_columns, "MAX_TEXTS", 2)
    path = lines(tmp_path / "7.jsonl", *(row(7, n, 0.0, data_source=f"t{n}") for n in range(4)))
    assert rollout_index.read(path).column("task") == ["t0", "(others)", "(others)", "(others)"]


PROSE = " ".join(f"word{n * n} and {n * 7}" for n in range(60))


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("!" * 400, True),
        (PROSE + " I do not know." * 20, True),
        (PROSE + " I do not know." * 20 + " I do n", True),  # cut short
        (PROSE, False),
        ("", False),
        ("0" * 60, False),  # a number
        ("\n".join(f"Step {n}: add {n}" for n in range(80)), False),  # counts on
        (PROSE + PROSE, False),  # said twice
    ],
)
def test_which_texts_loop(text, loops):
    assert is_looping(text) is loops


CALL = {"id": "c", "function": {"name": "calc", "arguments": "6*7"}}


def record(folder, steps, sample):
    """Record a run with a sample or several at each step."""
    with rlvitals.start(folder) as run:
        for step in range(steps):
            run.log(step, {"reward": 0.5 + 0.001 * step, "policy_loss": 0.1})
            run.log_rollouts(step, sample(step))


def test_a_run_s_rollouts_are_series_of_its_trace(tmp_path):
    def sample(step):
        reply = {"role": "assistant", "content": "x", "tool_calls": [CALL] * (step < 5)}
        rows = [
            {"prompt": "q", "messages": [reply], "reward": n, "stop_reason": "stop"} for n in (0, 1)
        ]
        return [*rows, {"prompt": "q", "error": "timeout", "rewards": {"format": 0.5}}]

    record(tmp_path / "run", 10, sample)
    trace = rlvitals.trace(tmp_path / "run")
    assert trace["language/error_share"].values.tolist() == [pytest.approx(1 / 3)] * 10
    assert trace["language/tool_calls"].values.tolist() == [pytest.approx(2 / 3)] * 5 + [0.0] * 5
    assert trace["language/stop_reason/stop"].values.tolist() == [pytest.approx(2 / 3)] * 10
    assert trace["reward/component/format"].values.tolist() == [0.5] * 10
    assert trace["reward/group_zero_std"].values.tolist() == [0.0] * 10
    assert trace["outcome/reward"].values[0] == 0.5  # the training's own, not the samples'
    assert trace.unmapped == ()


@pytest.mark.parametrize("name", ["", "0.jsonl"])
def test_rollouts_alone_are_read_as_a_log(tmp_path, name):
    path = write_run(tmp_path / "run") / name
    (log,) = rlvitals.read(path)
    assert log.source == "rollouts"
    assert log.series["rollout/reward_mean"].values.tolist() == [0.25] * (1 if name else 3)
    assert "outcome/reward" in rlvitals.trace(path)


def test_no_file_and_no_error_are_no_log(tmp_path):
    assert sources.read(sources.Run("run", tmp_path, ())) == ()


def test_a_sandbox_that_fails_is_named_by_the_rollouts_alone(tmp_path):
    def sample(step):
        failed = {"prompt": "q", "completion": "a", "reward": 0.0, "error": "SandboxError: gone"}
        right = {"prompt": "q", "completion": "a", "reward": 1.0}
        return [failed, failed, right] if step > 20 else [right] * 3

    record(tmp_path / "run", 60, sample)
    findings = {rule.name for rule, _ in rlvitals.diagnose(tmp_path / "run").findings}
    assert "judge-outage" in findings


def test_a_run_without_rollouts_has_none(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        run.log(0, {"reward": 1.0})
    assert rollout_index.of_run(tmp_path / "run") is None
    assert rollout_index.of_run(tmp_path / "nowhere") is None


def test_rollouts_in_a_folder_of_many_logs_are_nobody_s(tmp_path):
    samples = [{"prompt": "q", "completion": "a", "reward": n} for n in (0.0, 1.0)]
    record(tmp_path / "all", 5, lambda _: samples)
    (tmp_path / "all" / "run.json").unlink()
    shutil.rmtree(tmp_path / "all" / "blocks")
    rows = "\n".join(f"{step},{step}" for step in range(30))
    log = tmp_path / "all" / "ppo.csv"
    log.write_text(f"step,return\n{rows}\n")
    own = "reward/group_zero_std"
    assert own in rlvitals.trace(log)  # the only log there
    (tmp_path / "all" / "sac.csv").write_text(f"step,return\n{rows}\n")
    assert own not in rlvitals.trace(log)
    runs = load.runs(tmp_path / "all")
    assert {run.name for run in runs} == {"ppo", "sac"}
    assert [run.name for run in runs if load.rollouts(run) is not None] == []


def test_a_log_that_is_named_is_read_without_the_others_of_its_folder(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        rows = "\n".join(f"{step},{step}" for step in range(30))
        (tmp_path / f"{name}.csv").write_text(f"step,return\n{rows}\n")
    claim, opened = select.claim, []
    monkeypatch.setattr(select, "claim", lambda path: opened.append(path.name) or claim(path))
    rlvitals.trace(tmp_path / "b.csv")
    assert set(opened) == {"b.csv"}
