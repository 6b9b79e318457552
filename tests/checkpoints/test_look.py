"""What lies in a run's folder, in what state, and which checkpoint a resume takes: as it does."""

import json
import os
import shutil
from dataclasses import dataclass, field

import pytest
import torch
from safetensors.torch import save_file

from rlvitals.checkpoints import huggingface_folder, inspect_run, naming, retention
from rlvitals.checkpoints.inspect_run import CheckpointState
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.retention import Best, Entry, Policy
from rlvitals.cli import main


def made(folder, **options):
    return Checkpoints(folder, tell=lambda _: None, **options)


def save(checkpoints, step, **options):
    with checkpoints.save(step, **options) as folder:
        (folder / "model.bin").write_bytes(f"model {step} ".encode() * 100)
        (folder / "optimizer.bin").write_bytes(f"optimizer {step} ".encode() * 200)


def trainers(folder, *steps, first=1.0):
    """What a Hugging Face trainer writes, with what such files really hold."""
    for step in steps:
        path = folder / f"checkpoint-{step}"
        path.mkdir(parents=True)
        rows = [{"step": at, "loss": first / at} for at in range(1, step + 1)]
        state = {"global_step": step, "max_steps": 500, "save_steps": 50, "log_history": rows}
        (path / "trainer_state.json").write_text(json.dumps(state))
        save_file({"weight": torch.ones(100)}, path / "adapter_model.safetensors")
        (path / "adapter_config.json").write_text("{}")
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            torch.save({"state": torch.zeros(50)}, path / name)
    return folder


def states(found):
    return {one.folder.name: one.state for one in found.seen}


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def as_restored(folder, **options):
    """The folder that a resume takes; on a copy, for it sets aside what it refuses."""
    copy = folder.with_name(f"{folder.name}.copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    found = made(copy, **options).restore()
    return None if found is None else found.folder.name


def test_a_run_without_checkpoints(tmp_path):
    found = inspect_run.inspect(tmp_path)
    assert found.taken is None
    assert found.seen == ()
    assert "starts afresh" in found.why


def test_what_other_programs_saved_is_named(tmp_path):
    inner = tmp_path / "checkpoints"
    inner.mkdir()
    (inner / "epoch=1-step=20.ckpt").write_bytes(b"x")
    (tmp_path / "rl_model_1000_steps.zip").write_bytes(b"x")
    (tmp_path / "checkpoint_000010").mkdir()
    (tmp_path / "model.zip").write_bytes(b"x")
    found = inspect_run.inspect(tmp_path)
    assert found.taken is None
    assert found.others == (
        "checkpoint_000010",
        "checkpoints/epoch=1-step=20.ckpt",
        "rl_model_1000_steps.zip",
    )
    assert "another program saved 3 checkpoints" in found.why


def test_sealed_until_every_byte_was_read(tmp_path):
    one = made(tmp_path)
    save(one, 50)
    save(one, 100)
    assert set(states(inspect_run.inspect(tmp_path)).values()) == {CheckpointState.SEALED}
    assert set(states(inspect_run.inspect(tmp_path, verify=True)).values()) == {
        CheckpointState.WHOLE
    }
    some = inspect_run.inspect(tmp_path, most=inspect_run.MAX_QUICK_READ_BYTES)
    assert states(some) == {
        "checkpoint-50": CheckpointState.SEALED,
        "checkpoint-100": CheckpointState.WHOLE,
    }
    assert some.taken.step == 100


@pytest.mark.parametrize("how", ["flipped", "cut", "gone", "manifest", "another step's"])
def test_what_is_damaged_is_told_and_the_older_one_taken_as_a_resume_does(tmp_path, how):
    folder = tmp_path / "run"
    one = made(folder)
    save(one, 50)
    save(one, 100)
    bad = folder / "checkpoint-100"
    if how == "flipped":
        flip(bad / "optimizer.bin")
    elif how == "cut":
        os.truncate(bad / "optimizer.bin", 10)
    elif how == "gone":
        (bad / "optimizer.bin").unlink()
    elif how == "manifest":
        flip(bad / naming.MANIFEST_FILE)
    else:
        shutil.copy(folder / "checkpoint-50" / "model.bin", bad / "model.bin")
    found = inspect_run.inspect(folder, verify=True)
    assert states(found) == {
        "checkpoint-50": CheckpointState.WHOLE,
        "checkpoint-100": CheckpointState.DAMAGED,
    }
    assert found.taken.folder.name == as_restored(folder) == "checkpoint-50"
    assert "checkpoint-100 is damaged" in found.why
    assert [one.why for one in found.some(CheckpointState.DAMAGED)] != [""]


def test_another_run_s_a_stale_one_one_set_aside_and_one_unfinished(tmp_path):
    @dataclass
    class Run:
        folder: object
        id: str
        attempt: int = 1
        world_size: int = 1
        settings: dict = field(default_factory=dict)

        def note(self, _):
            pass

    folder = tmp_path / "run"
    from rlvitals.storage.run_folder import About, RunFolder

    RunFolder.create(folder, About(id="ours"))
    ours = made(Run(folder, "ours"))
    for step in (50, 100, 150):
        save(ours, step)
    save(made(Run(folder, "theirs")), 175)
    flip(folder / "checkpoint-150" / "model.bin")
    again = made(Run(folder, "ours", attempt=2))
    assert again.restore().step == 100
    save(again, 110)
    save(again, 120)
    shutil.copytree(folder / "checkpoint-120", folder / "checkpoint-900")
    naming.unfinished_path(folder, 130).mkdir()
    found = inspect_run.inspect(folder)
    told = states(found)
    assert told["checkpoint-175"] is CheckpointState.FOREIGN
    assert told["checkpoint-150.corrupt"] is CheckpointState.ASIDE
    assert told["checkpoint-900"] is CheckpointState.DAMAGED  # its manifest is of another step
    assert CheckpointState.WRITING in told.values()
    assert "hash differs" in found.some(CheckpointState.ASIDE)[0].why
    assert found.taken.step == 120
    third = made(Run(folder, "ours", attempt=3))
    assert third.restore().step == 120


def test_a_step_that_the_run_went_back_behind_is_stale(tmp_path):
    one = made(tmp_path)
    for step in (50, 100, 150):
        save(one, step)
    second = made(tmp_path)
    flip(tmp_path / "checkpoint-150" / "model.bin")
    assert second.restore().step == 100
    shutil.move(tmp_path / "checkpoint-150.corrupt", tmp_path / "checkpoint-150")
    flip(tmp_path / "checkpoint-150" / "model.bin")  # as it was: whole, of another course
    save(second, 110)
    found = inspect_run.inspect(tmp_path, verify=True)
    assert states(found)["checkpoint-150"] is CheckpointState.STALE
    assert found.taken.step == 110


def test_why_each_is_kept_is_what_retention_went_by(tmp_path):
    one = made(tmp_path, keep=2, keep_best=Best("loss", "min"), keep_every=100,
               health=lambda step: "healthy" if step <= 150 else "loss-spike")  # fmt: skip
    for step, loss in (
        (50, 3.0),
        (75, 0.5),
        (100, 2.0),
        (150, 2.5),
        (175, 9.0),
        (200, 8.0),
        (225, 7.0),
    ):
        save(one, step, metrics={"loss": loss})
    found = inspect_run.inspect(tmp_path)
    assert {seen.step: seen.kept for seen in found.seen} == {
        75: ("best loss",),
        100: ("every 100",),
        150: ("last healthy",),
        200: ("last 2", "every 100"),
        225: ("newest",),
    }
    assert found.seen[-1].health == "loss-spike"


def test_nothing_goes_that_has_a_reason_and_nothing_stays_without():
    entries = [
        Entry(step, step, {"r": step % 7}, "", pinned=step == 30) for step in range(10, 200, 10)
    ]
    policy = Policy(3, Best("r"), 50, healthy=True)
    gone = {one.sequence for one in retention.select_surplus(entries, policy)}
    kept = set(retention.keep_reasons(entries, policy))
    assert gone | kept == {one.sequence for one in entries}
    assert not gone & kept
    assert retention.policy_from_dict(retention.policy_to_dict(policy)) == policy
    assert retention.policy_from_dict({"keep": "many", "best": 3}) == Policy()


def test_a_trainer_s_checkpoints_are_unsealed_and_what_they_lack_is_said(tmp_path):
    trainers(tmp_path, 50, 100, 150)
    (tmp_path / "checkpoint-100" / "optimizer.pt").unlink()
    os.truncate(tmp_path / "checkpoint-150" / "adapter_model.safetensors", 100)
    found = inspect_run.inspect(tmp_path)
    assert set(states(found).values()) == {CheckpointState.UNSEALED}
    assert [one.complete for one in found.seen] == [True, False, False]
    assert "no optimizer.pt" in found.seen[1].why
    assert "adapter_model.safetensors is damaged" in found.seen[2].why
    assert found.taken is None


def test_seal_seals_the_complete_and_a_resume_takes_the_newest_of_them(tmp_path, capsys):
    folder = trainers(tmp_path / "run", 50, 100, 150)
    (folder / "checkpoint-150" / "rng_state.pth").unlink()
    assert main(["checkpoints", str(folder)]) == 1
    assert "--seal" in capsys.readouterr().out
    assert main(["checkpoints", str(folder), "--seal"]) == 0
    out = capsys.readouterr()
    assert "checkpoint-150 is not sealed: it holds no rng_state.pth" in out.err
    assert "A resume takes checkpoint-100" in out.out
    assert as_restored(folder) == "checkpoint-100"
    assert not (folder / "checkpoint-150" / naming.MANIFEST_FILE).exists()


def test_an_older_one_is_not_sealed_after_a_newer_one_it_would_pass_for_the_newest(tmp_path):
    said = []
    trainers(tmp_path, 100)
    huggingface_folder.adopt(tmp_path, tell=said.append)
    trainers(tmp_path, 50)
    huggingface_folder.adopt(tmp_path, tell=said.append)
    assert any("checkpoint-50 is not sealed: checkpoint-100 is newer" in text for text in said)
    assert inspect_run.inspect(tmp_path).taken.step == 100


def test_the_command_s_exit_codes_and_json(tmp_path, capsys):
    folder = tmp_path / "run"
    one = made(folder)
    save(one, 50)
    save(one, 100)
    assert main(["checkpoints", str(folder)]) == 0
    assert main(["checkpoints", str(folder / "checkpoint-50"), "--verify"]) == 0
    flip(folder / "checkpoint-100" / "model.bin")
    assert main(["checkpoints", str(folder)]) == 0  # as long as it was sealed
    capsys.readouterr()
    assert main(["checkpoints", str(folder), "--verify", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["resume"]) == (1, "checkpoint-50")
    assert [row["state"] for row in told["checkpoints"]] == ["whole", "damaged"]
    assert "hash differs" in told["checkpoints"][1]["why"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["checkpoints", str(empty)]) == 1
    assert main(["checkpoints", str(tmp_path / "nowhere")]) == 3
    assert "does not exist" in capsys.readouterr().err


def test_looking_changes_nothing(tmp_path):
    folder = trainers(tmp_path / "run", 50)
    one = made(folder)
    save(one, 100)
    flip(folder / "checkpoint-100" / "model.bin")
    naming.unfinished_path(folder, 130).mkdir()
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}
    inspect_run.inspect(folder, verify=True)
    main(["status", str(folder)])
    main(["doctor", str(folder)])
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before


def test_a_damaged_older_one_is_no_reason_why_the_newest_is_taken(tmp_path):
    folder = tmp_path / "run"
    one = made(folder)
    save(one, 50)
    save(one, 100)
    flip(folder / "checkpoint-50" / "optimizer.bin")
    found = inspect_run.inspect(folder, verify=True)
    assert states(found)["checkpoint-50"] is CheckpointState.DAMAGED
    assert found.why == "the newest whole"
