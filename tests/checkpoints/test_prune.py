"""What `rlvitals prune` plans and does, and what it leaves: live runs, holds, checkpoints."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals.checkpoints import inspect_run, run_retention
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.run_retention import TierRule
from rlvitals.cli import main
from rlvitals.storage import holds, thin_file
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder, block_files
from rlvitals.tracking import rollout_log

YEAR = 365 * 86_400.0
START = 1.6e9  # seconds since the epoch
POINTS = 5000
STEPS = (10, 20, 30, 40)


def save(folder, step):
    with Checkpoints(folder, keep=9, tell=lambda _: None).save(step) as path:
        (path / "model.bin").write_bytes(np.random.default_rng(step).bytes(2000))


@pytest.fixture
def old_run(tmp_path):
    """Return a run of 5,000 rows and four checkpoints that ended two years ago."""
    folder = tmp_path / "runs" / "walk"
    run, _, path = RunFolder.create(folder, About(created=START)).begin()
    steps = np.arange(POINTS)
    writer = Writer(path)
    writer.scalars(("reward", "loss"), steps, START + steps, [np.sin(steps), 1 / (steps + 1)])
    writer.close()
    run.update(attempts=(replace(run.about.attempts[0], started=START),))
    for step in STEPS:
        save(folder, step)
    return folder


@pytest.fixture
def call(capsys):
    def run(*argv):
        capsys.readouterr()
        code = main([str(a) for a in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def content(folder):
    """Return every file with its bytes, without the lock, which has none."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.name: path.read_bytes() for path in paths if path.name != ".run.lock"}


def steps_of(folder):
    return [entry.step for entry in inspect_run.inspect(folder).seen if entry.usable]


def test_a_plan_changes_nothing_and_tells_what_would_be_done(old_run, call):
    before = content(old_run)
    code, out, _ = call("prune", old_run.parent, "--plan", "--tier", "90d:16", "--checkpoints", 2)
    assert code == 0
    assert content(old_run) == before
    assert "thin 1-0.packed.rlv" in out
    assert "16 buckets of each metric" in out
    assert out.count("delete checkpoint-") == 2
    document = json.loads(
        call("prune", old_run, "--plan", "--tier", "90d:16", "--checkpoints", 2, "--json")[1]
    )
    assert [step["action"] for step in document["plan"][0]["steps"]] == ["thin", "delete", "delete"]


def test_an_old_run_is_thinned_and_read_with_its_extremes(old_run, call):
    before = rlvitals.read(old_run)[0].series["reward"]
    plan = run_retention.plan(old_run, [TierRule(YEAR, 16)], None, START + 2 * YEAR)
    code, out, _ = call("prune", old_run.parent, "--tier", "90d:64", "--tier", "365d:16")
    assert code == 0
    assert "1 of 1 runs pruned" in out
    (file,) = block_files(old_run)
    assert file.packed.stat().st_size < 1.1 * plan.steps[0].new_size
    after = rlvitals.read(old_run)[0].series["reward"]
    assert 16 < len(after) <= 64
    assert (after.values.min(), after.values.max()) == (before.values.min(), before.values.max())
    assert steps_of(old_run) == [*STEPS]
    assert "thinned" in call("diagnose", old_run)[1]
    trace = json.loads(call("diagnose", old_run, "--json")[1])["trace"]
    assert any("thinned" in note for note in trace["notes"])
    again = content(old_run)
    assert "0 of 1 runs pruned" in call("prune", old_run, "--tier", "365d:16")[1]
    assert content(old_run) == again


def test_a_young_run_and_a_live_one_are_left(old_run, tmp_path, call):
    young = tmp_path / "runs" / "young"
    with rlvitals.start(young) as run:
        for step in range(POINTS):
            run.log(step, {"reward": 1.0}, time=1.0)  # a log that counts from 0 is not old
    live = rlvitals.start(old_run)
    before = content(young)
    code, out, _ = call("prune", tmp_path / "runs", "--tier", "1d:4", "--checkpoints", 1)
    live.finish()
    assert code == 0
    assert "a process records into it" in out
    assert "0 of 2 runs pruned" in out
    assert content(young) == before
    assert steps_of(old_run) == [*STEPS]


def test_nothing_of_a_run_on_hold_is_removed(old_run, call):
    assert call("hold", old_run, "--reason", "audit")[0] == 0
    before = content(old_run)
    code, out, _ = call("prune", old_run, "--tier", "1d:4", "--checkpoints", 1)
    assert code == 0
    assert "on hold: audit" in out
    Checkpoints(old_run, keep=1, tell=lambda _: None)._catalog.prune(
        run_retention.policy_from_dict({"keep": 1})
    )
    assert content(old_run) == before
    assert call("hold", old_run, "--release")[0] == 0
    assert call("hold", old_run, "--release")[0] == 1
    assert "thin" in call("prune", old_run, "--tier", "1d:4", "--checkpoints", 1)[1]
    assert steps_of(old_run) == [40]


def test_a_checkpoint_on_hold_outlives_retention_and_a_save_of_its_step(old_run, call):
    held = old_run / "checkpoint-10"
    assert call("hold", held)[0] == 0
    assert call("prune", old_run, "--checkpoints", 1)[0] == 0
    assert steps_of(old_run) == [10, 40]
    assert "on hold" in call("checkpoints", old_run)[1]
    model = (held / "model.bin").read_bytes()
    with Checkpoints(old_run, keep=1, tell=lambda _: None).save(10) as path:
        (path / "model.bin").write_bytes(b"another")
    aside = old_run / "checkpoint-10.other"
    assert (aside / "model.bin").read_bytes() == model
    assert holds.applies(aside)


def test_a_folder_of_runs_is_held_with_its_runs(old_run, call):
    assert call("hold", old_run.parent)[0] == 0
    assert "kept: on hold" in call("prune", old_run.parent, "--tier", "1d:4")[1]


class Crash(BaseException):
    """What stands for a process that is killed."""


@pytest.mark.parametrize("moment", range(0, 24, 3))
def test_a_kill_at_any_step_loses_nothing_beyond_the_plan(old_run, monkeypatch, moment):
    """Extremes and the newest checkpoint survive; the same command then does the rest."""
    full = rlvitals.read(old_run)[0].series["reward"]
    calls = [moment]

    def die(real):
        def call(*args, **kwargs):
            if calls[0] <= 0:
                raise Crash
            calls[0] -= 1
            return real(*args, **kwargs)

        return call

    tiers, now = [TierRule(YEAR, 8)], START + 2 * YEAR
    with monkeypatch.context() as patch:
        for owner, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (os, "fsync")):
            patch.setattr(owner, name, die(getattr(owner, name)))
        with suppress(Crash):
            run_retention.prune(old_run, tiers, 2, now)
    left = rlvitals.read(old_run)[0].series["reward"]
    assert left.values.max() == full.values.max()
    assert left.values[-1] == full.values[-1]
    assert steps_of(old_run)[-2:] == [30, 40]
    run_retention.prune(old_run, tiers, 2, now)
    assert len(rlvitals.read(old_run)[0].series["reward"]) <= 32
    assert steps_of(old_run) == [30, 40]
    assert not [path for path in old_run.rglob(".*") if path.name.startswith((".1-0", ".check"))]


def test_a_step_that_fails_is_named_and_the_others_are_done(old_run, monkeypatch, call):
    def fail(*_):
        raise thin_file.NotThinnedError("what was written differs from it")

    monkeypatch.setattr(thin_file, "thin", fail)
    code, out, _ = call("prune", old_run, "--tier", "1d:4", "--checkpoints", 1)
    assert code == 1
    assert "differs from it" in out
    assert steps_of(old_run) == [40]


@pytest.mark.parametrize("argument", ["90d", "90d:x", "1h:5", "90d:0"])
def test_a_tier_that_is_none_is_refused(old_run, call, argument):
    assert call("prune", old_run, "--tier", argument)[0] == 2
    assert call("prune", old_run, "--checkpoints", 0)[0] == 2


@pytest.fixture
def sampled(tmp_path, monkeypatch):
    """Return a run with seven files of rollouts, of a step each."""
    monkeypatch.setattr(rollout_log, "MAX_ROLLOUTS_FILE_BYTES", 100)
    folder = tmp_path / "runs" / "sampled"
    with rlvitals.start(folder) as run:
        for step in range(7):
            run.log_rollouts(step, [{"prompt": "p", "completion": f"{step}" * 90, "reward": 1.0}])
            run.flush()
    shutil.rmtree(folder / "life")  # the process that recorded it has not ended
    return folder


def sampled_steps(folder):
    return sorted(int(path.name[7:11]) for path in (folder / "rollouts").glob("*.zst"))


def test_surplus_rollouts_are_deleted_and_the_run_says_so(sampled, call):
    assert sampled_steps(sampled) == [*range(7)]
    before = content(sampled)
    out = call("prune", sampled, "--rollouts", 2, "--plan")[1]
    assert out.count("delete 0001-0-") == 4
    assert content(sampled) == before
    assert call("prune", sampled, "--checkpoints", 1)[0] == 0
    assert content(sampled) == before  # not without the flag
    assert call("prune", sampled, "--rollouts", 2)[0] == 0
    assert sampled_steps(sampled) == [0, 5, 6]
    assert "3 of 3 rollouts" in call("samples", sampled)[1]
    notes = rlvitals.read(sampled)[0].notes
    assert any("rollouts were pruned: 4 files of" in note for note in notes)
    after = content(sampled)
    assert call("prune", sampled, "--rollouts", 2)[0] == 0
    assert content(sampled) == after
    assert call("prune", sampled, "--rollouts", -1)[0] == 2


def test_rollouts_of_a_run_on_hold_and_of_a_live_one_stay(sampled, call):
    assert call("hold", sampled)[0] == 0
    assert "on hold" in call("prune", sampled, "--rollouts", 0)[1]
    assert call("hold", sampled, "--release")[0] == 0
    live = rlvitals.start(sampled)
    assert "a process records" in call("prune", sampled, "--rollouts", 0)[1]
    live.finish()
    assert sampled_steps(sampled) == [*range(7)]


@pytest.mark.parametrize("moment", range(5))
def test_a_kill_while_rollouts_are_deleted_leaves_the_others_and_the_note(
    sampled, monkeypatch, moment
):
    calls, real = [moment], Path.unlink

    def unlink(path, missing_ok=False):
        if path.suffix == ".zst":
            if not calls[0]:
                raise Crash
            calls[0] -= 1
        real(path, missing_ok=missing_ok)

    now = START + 2 * YEAR
    with monkeypatch.context() as patch, suppress(Crash):
        patch.setattr(Path, "unlink", unlink)
        run_retention.prune(sampled, [], None, now, 2)
    assert sampled_steps(sampled) == [0, *range(1 + moment, 7)][:7]
    assert any("were pruned" in note for note in rlvitals.read(sampled)[0].notes)
    run_retention.prune(sampled, [], None, now, 2)
    assert sampled_steps(sampled) == [0, 5, 6]
