"""`rlvitals follow` as a person or a program uses it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from small_logs import write
from waiting import HANG_SECONDS

import rlvitals

KL = ("--set", "target_kl=0.02")


def follow(*argv, **how):
    command = [sys.executable, "-m", "rlvitals", "follow", *map(str, argv)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


def test_once(call, healthy, failing, poor, tmp_path):
    assert call("follow", "--once", healthy)[0] == 0
    code, out, err = call("follow", "--once", failing, *KL)
    assert (code, err) == (1, "")
    assert "warning[kl-above-target]" in out
    assert "note[" not in out
    assert "note[" in call("follow", "--once", "--notes", failing, *KL)[1]
    assert call("follow", "--once", failing, *KL, "--fail-on", "never")[0] == 0
    without = ("--ignore", "kl-above-target,clip-fraction-high,no-learning")
    once = call("follow", "--once", failing, *KL, *without)[0]
    assert once == call("diagnose", failing, *KL, *without)[0] != 1
    assert call("follow", "--once", poor)[0] == 4
    code, out, _ = call("follow", "--once", tmp_path, *KL)
    assert code == 1
    for name in ("healthy", "failing", "poor"):
        assert f" {name} " in out


def test_it_says_what_diagnose_says(call, failing):
    _, out, _ = call("follow", "--once", "--json", failing, *KL)
    events = [json.loads(line) for line in out.splitlines()]
    diagnosis = json.loads(call("diagnose", "--json", failing, *KL)[1])
    (judged,) = [event for event in events if event["change"] == "judged"]
    assert judged["verdict"] == diagnosis["verdict"]["word"]
    fired = {
        event["rule"]: event["finding"]["severity"]
        for event in events
        if event["change"] == "fired"
    }
    assert fired == judged["findings"]
    assert "kl-above-target" in fired
    assert [event["change"] for event in events][:2] == ["found", "points"]
    assert events[1]["series"]["train/approx_kl"] == {
        "points": 60, "first_step": 2048, "last_step": 122880
    }  # fmt: skip


def test_known_findings_fail_nothing(call, failing, tmp_path):
    baseline = tmp_path / "known.json"
    call("diagnose", failing, *KL, "--write-baseline", baseline)
    assert call("follow", "--once", failing, *KL, "--baseline", baseline)[0] == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--once", "empty"], 3, "no training log in this folder"),
        (["--once", "nowhere"], 3, "this path does not exist"),
        (["--once", "--until-end", "empty"], 2, "not allowed with"),
        (["empty", "--only", "kl-spikes"], 2, "no rule is called 'kl-spikes'"),
    ],
)
def test_what_cannot_be_followed(call, tmp_path, argv, code, said):
    (tmp_path / "empty").mkdir()
    exit_code, out, err = call("follow", *argv)
    assert (exit_code, out) == (code, "")
    assert said in err


def test_a_run_is_followed_from_its_first_row_until_its_budget_is_done(tmp_path):
    """A real process: it waits for a log, tells new points by the line, and ends by itself."""
    folder = tmp_path / "runs"
    folder.mkdir()
    with follow(folder, "--until-end", "--json") as process:
        state = {"log_history": [], "max_steps": 30}
        for n in range(1, 31):
            state["log_history"].append({"step": n, "loss": 9 / n, "reward": float(n)})
            if n in {15, 30}:
                target = folder / "held"
                target.write_text(json.dumps(state))
                target.rename(folder / "trainer_state.json")
                line = {"change": ""}
                while line["change"] != "points":
                    line = json.loads(process.stdout.readline())
        steps = line["series"]["reward"]["steps"]
        events = [json.loads(line) for line in process.stdout]
        assert process.wait(HANG_SECONDS) == 0, process.stderr.read()
    assert steps == list(range(16, 31)), "only what is new"
    assert [event["how"] for event in events if event["change"] == "ended"] == ["budget spent"]


def test_it_waits_for_a_run_that_is_not_there_yet(tmp_path):
    with follow(tmp_path / "later" / "run", "--until-end", "--finished") as process:
        assert "later/run yet: waiting for it" in process.stderr.readline()
        write(tmp_path / "later" / "run")
        out, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert "learning" in out


@pytest.mark.skipif(os.name != "posix", reason="another kind of Ctrl-C")
def test_ctrl_c_ends_it_without_a_word(tmp_path):
    write(tmp_path / "ppo")
    with follow(tmp_path) as process:
        assert "learning" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_person_at_a_terminal_sees_a_line_that_lives(tmp_path):
    import pty

    write(tmp_path / "ppo")
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "90", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rlvitals", "follow", tmp_path], stdout=theirs, env=env
    )
    os.close(theirs)
    output = b""
    while b"1 run: quiet" not in output:  # nobody has seen it grow
        output += os.read(ours, 4096)
    assert b"learning" in output
    write(tmp_path / "ppo", rows=61)
    while b"1 run: growing" not in output:
        output += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    remainder = b""
    with suppress(OSError):  # the other end is closed: everything is read
        while more := os.read(ours, 4096):
            remainder += more
    assert process.wait(HANG_SECONDS) == 130
    assert remainder.endswith(b"\r\x1b[K"), "the line is taken away"
    os.close(ours)


def test_it_says_that_it_waits_after_the_end_and_until_end_exits(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        for step in range(40):
            run.log(step, {"reward": float(step)})
    process = follow(tmp_path / "run")
    assert process.stderr.readline().startswith("every run has ended: waiting for new rows")
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_SECONDS) == 130
    process.communicate()
    process = follow(tmp_path / "run", "--until-end")
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert ("finished, at step 39" in out, err) == (True, "")
