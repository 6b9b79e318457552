"""Where a run stands: any run that can be read, told calmly, again and again, as JSON."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.checkpoints import inspect_run
from rlvitals.checkpoints.progress import Keeper
from rlvitals.checkpoints.progress_file import PROGRESS_FILE
from rlvitals.cli import main
from rlvitals.diagnosis import engine
from rlvitals.diagnosis.status import Change, standing
from rlvitals.types import Budget, Lifecycle, Measured, Series, Trace
from rlvitals.views import status as shown

NOW = 1_800_000_000.0


def series(values, seconds=10.0, step=1):
    n = len(values)
    times = NOW - seconds * (n - 1 - np.arange(n))
    return Series(np.arange(1, n + 1) * step, times, np.asarray(values, float))


def trace(total=500, seconds=10.0, **more):
    series_by_name = {"optimiser/loss": series(np.linspace(3.2, 1.5, 100), seconds)}
    measured = {name: Measured("test", "test", name) for name in series_by_name}
    budget = Budget(total, "test") if total else None
    more.setdefault("lifecycle", Lifecycle(live=True, silence=5.0))
    return Trace(series_by_name, measured, budget=budget, name="run", **more)


def where(run_trace, progress=None):
    return standing("run", engine.diagnose(run_trace), progress, None, NOW)


def trainer_folder(path, *, steps=150, first=3.2, last=1.5):
    folder = path / f"checkpoint-{steps}"
    folder.mkdir(parents=True)
    loss = np.linspace(first, last, steps)
    rows = [
        {"step": i + 1, "loss": float(loss_value), "learning_rate": 1e-5}
        for i, loss_value in enumerate(loss)
    ]
    state = {"global_step": steps, "max_steps": 500, "log_history": rows}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    return path


def told(capsys, *words):
    assert main(["status", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_first_to_last_as_a_person_writes_it():
    loss = Change("optimiser/loss", 3.2, 1.5, series([3.2, 1.5]))
    assert shown.change(loss) == "3.2 -> 1.5 (-53 %)"
    reward = Change("reward/mean", -2.145, -0.845, series([1, 2]))
    assert shown.change(reward) == "-2.145 -> -0.845 (+61 %)"
    assert shown.change(Change("x", 0.0, 2.0, series([1, 2]))) == "0 -> 2"
    assert shown.change(Change("x", -1.0, 2.0, series([1, 2]))) == "-1 -> 2"
    assert shown.change(Change("x", 1e-310, 1e300, series([1, 2]))).count("%") == 0


def test_what_is_left_counts_no_pause():
    run_status = where(trace())
    assert (run_status.step, run_status.total, run_status.fraction) == (100, 500, 0.2)
    assert run_status.eta == pytest.approx(4000)
    assert run_status.trained == pytest.approx(990)
    paused = trace()
    loss = paused.series["optimiser/loss"]
    times = loss.times.copy()
    times[:50] -= 86_400  # a night between two attempts
    paused.series["optimiser/loss"] = Series(loss.steps, times, loss.values)
    assert where(paused).eta == pytest.approx(4000)
    assert where(paused).trained == pytest.approx(980)


def test_time_left_counts_the_waits_of_a_loop_that_logs_each_episode():
    """Eight episodes in a second of rollout, then an update of three: half a second a row."""
    count = 400
    steps = 100 * np.arange(1, count + 1)
    waits = np.where(np.arange(count) % 8 == 0, 3.125, 0.125)
    series = Series(steps, 1.7e9 + waits.cumsum(), np.linspace(0, 100, count))
    budget = Budget(60_000, "total_steps")
    assert where(Trace({"outcome/return": series}, {}, budget=budget)).eta == pytest.approx(
        200 * 0.5, rel=0.02
    )


def test_the_progress_file_knows_better_than_the_log(tmp_path, monkeypatch):
    from rlvitals.checkpoints import progress

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress, "clock", clock)
    keeper = Keeper(tmp_path, 500)
    keeper.update(0)
    clock.now = 300.0
    keeper.update(100, latest_checkpoint="checkpoint-100")
    run_status = where(trace(), progress.read(tmp_path))
    assert run_status.eta == pytest.approx(1200)
    assert run_status.trained == pytest.approx(300)


@pytest.mark.parametrize(
    ("cycle", "state"),
    [
        (Lifecycle(live=True, silence=5.0), "running"),
        (Lifecycle(live=True, silence=5000.0), "running"),
        (Lifecycle(alive=True), "running"),
        (Lifecycle(live=False), "finished"),
        (Lifecycle(last_row=NOW - 5.0), "unknown"),
        (Lifecycle(ended=True, exit_code=0), "finished"),
        (Lifecycle(ended=True, reason="finished"), "finished"),
        (Lifecycle(ended=True, reason="stopped"), "stopped"),
        (Lifecycle(ended=True, reason="interrupted"), "stopped"),
        (Lifecycle(exit_code=1, traceback="Traceback\nValueError: no"), "failed"),
        (Lifecycle(lost="killed for want of memory"), "killed"),
        (Lifecycle(), "unknown"),
    ],
)
def test_how_it_lives(cycle, state):
    assert where(trace(lifecycle=cycle)).state == state


def test_what_the_progress_file_says_of_the_end_counts(tmp_path):
    from rlvitals.checkpoints import progress

    Keeper(tmp_path, 500).finish("stopped")
    run_status = where(trace(lifecycle=Lifecycle()), progress.read(tmp_path))
    assert run_status.state == "stopped"


def test_all_its_steps_done_is_finished_and_nothing_is_left():
    run_status = where(trace(total=100, lifecycle=Lifecycle()))
    assert (run_status.state, run_status.eta) == ("finished", None)


def test_checkpoints_tell_the_speed_by_their_manifests_and_never_by_file_times(tmp_path):
    bare = trace()
    bare.series["optimiser/loss"] = Series(
        bare["optimiser/loss"].steps, np.full(100, np.nan), bare["optimiser/loss"].values
    )
    judged = engine.diagnose(bare)
    sealed = tuple(
        inspect_run.CheckpointStatus(
            tmp_path / f"checkpoint-{step}",
            step,
            inspect_run.CheckpointState.SEALED,
            saved=NOW + step * 6,
        )
        for step in (50, 100, 150)
    )
    run_status = standing(
        "run", judged, None, inspect_run.Inspection(tmp_path, sealed, sealed[-1], ""), NOW
    )
    assert run_status.eta == pytest.approx(400 * 6)
    for step in (50, 100, 150):
        folder = trainer_folder(tmp_path, steps=step) / f"checkpoint-{step}"
        os.utime(folder, (NOW + step * 6, NOW + step * 6))
    copied = standing("run", judged, None, inspect_run.inspect(tmp_path), NOW)
    assert (copied.eta, copied.eta_why) == (None, "the log has no times")


def test_a_trainer_s_folder_is_told_the_answer_first(tmp_path, capsys):
    trainer_folder(tmp_path / "run-nsr-2025")
    out = told(capsys, tmp_path / "run-nsr-2025")
    first, second = out.splitlines()[:2]
    assert "steps 150 of 500 (30 %)" in first
    assert re.match(r"[a-z]+: ", second)
    assert "3.2 -> 1.5 (-53 %)" in out
    assert "checkpoint" in out
    assert max(map(len, out.splitlines())) <= 88


def test_a_run_of_stable_baselines3_and_one_of_several(tmp_path, capsys):
    rows = "\n".join(f"{i * 100},{i / 10},{i * 2.0}" for i in range(1, 40))
    head = "time/total_timesteps,rollout/ep_rew_mean,train/n_updates"
    (tmp_path / "sb3").mkdir()
    (tmp_path / "sb3" / "progress.csv").write_text(f"{head}\n{rows}\n")
    out = told(capsys, tmp_path / "sb3")
    assert "0.1 -> 3.9 (+3,800 %)" in out
    trainer_folder(tmp_path / "hf")
    out = told(capsys, tmp_path)
    lines = out.splitlines()
    assert lines[0].split() == ["run", "state", "step", "left", "verdict"]
    assert [line.split()[0] for line in lines[1:3]] == ["hf", "sb3"]


def recorded(folder):
    run = rlvitals.start(folder=str(folder), settings={"total_steps": 400})
    checkpoints = rlvitals.Checkpoints(run, every=100, tell=lambda _: None)
    keeper = Keeper(folder, 400, total_requests=20_000, chunk_size=5000, total_chunks=4)
    keeper.chunk(1, status="completed", requests=5000, log_file="chunk_1.log")
    keeper.chunk(2, status="running")
    for step in range(1, 201):
        run.log(step, {"outcome/return": float(step), "optimiser/loss": 3.2 - step / 100})
        keeper.update(step)
        if checkpoints.due(step):
            with checkpoints.save(step) as path:
                (path / "model.bin").write_bytes(b"x" * 1000)
            keeper.update(step, latest_checkpoint=f"checkpoint-{step}")
    run.finish()
    return folder


def test_our_own_run_with_chunks_checkpoints_and_everything(tmp_path, capsys):
    folder = recorded(tmp_path / "ours")
    out = told(capsys, folder)
    assert "checkpoint-200: every byte verified" in out
    assert "1 of 4 done" in out
    assert "✓  chunk 1  completed  5,000 requests" in out
    more = told(capsys, folder, "-v")
    assert "total_steps" in more
    assert "attempt" in more


def test_as_json(tmp_path, capsys):
    folder = recorded(tmp_path / "ours")
    document = json.loads(told(capsys, folder, "--json"))
    assert document["format"] == 1
    assert (document["step"], document["total_steps"], document["state"]) == (200, 400, "finished")
    assert (document["checkpoint"], document["checkpoint_state"]) == ("checkpoint-200", "whole")
    loss = document["changes"]["optimiser/loss"]
    assert (loss["first"], loss["last"]) == pytest.approx((3.19, 1.2))
    assert document["progress"]["completed_chunks"] == 1
    both = tmp_path
    trainer_folder(both / "hf")
    assert len(json.loads(told(capsys, both, "--json"))["runs"]) == 2


def test_a_damaged_progress_file_is_said(tmp_path, capsys):
    folder = recorded(tmp_path / "ours")
    (folder / PROGRESS_FILE).write_bytes(b"{")
    assert "is damaged: the copy before it is used" in told(capsys, folder)


def test_what_is_not_there_or_wrong(tmp_path, capsys):
    assert main(["status", str(tmp_path / "nowhere")]) == 3
    for wrong in ("0", "-1", "nan", "x", "inf", "0.1"):
        assert main(["status", str(tmp_path), "-w", wrong]) == 2
    capsys.readouterr()


def test_a_hostile_name_reaches_no_terminal(tmp_path, capsys):
    folder = trainer_folder(tmp_path / "a\x1b[31mred")
    (folder / PROGRESS_FILE).write_text(json.dumps({
        "status": "running", "chunks": [{"chunk_id": 1, "status": "\x1b[2J", "checkpoint": "\x1b"}],
    }))  # fmt: skip
    assert "\x1b" not in told(capsys, folder)


def watching(folder):
    out, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "rlvitals", "status", str(folder), "-w", "0.5"],
        stdout=inside, stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(inside)
    return process, out


def seen(out, words):
    """Read what a terminal gets until `words` are among it."""
    text, end = "", time.monotonic() + HANG_SECONDS
    while words not in text and time.monotonic() < end:
        if select.select([out], [], [], 0.2)[0]:
            text += os.read(out, 65536).decode(errors="replace")
    assert words in text, text
    return text


def test_watching_waits_redraws_and_ends_quietly(tmp_path):
    folder = tmp_path / "run"
    process, out = watching(folder)
    try:
        seen(out, "waiting for a log")
        trainer_folder(folder, steps=100)
        seen(out, "100 of 500 (20 %)")
        trainer_folder(folder, steps=150)
        text = seen(out, "150 of 500 (30 %)")
        assert "\x1b[" in text  # in place: the cursor goes up
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG_SECONDS) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        os.close(out)
