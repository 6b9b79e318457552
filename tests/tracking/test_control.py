"""What someone outside asks of a running loop."""

import os
import resource
import subprocess
import sys

import pytest
from recording_checks import happened
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.cli import main


def test_asking_to_save_and_to_stop(tmp_path, capsys):
    run = rlvitals.start(tmp_path)
    assert not run.requests()
    run.log(12, {"x": 1.0})
    assert main(["ask", str(tmp_path), "save"]) == 0
    assert main(["ask", str(tmp_path), "save"]) == 0
    printed = capsys.readouterr().out
    assert "is asked to save a checkpoint" in printed
    assert "goes on: `rlvitals ask RUN kill`" in printed
    run.flush()
    assert run.requests() == rlvitals.lab.Requests(save=True)
    assert run.requests() == rlvitals.lab.Requests()
    assert main(["ask", str(tmp_path), "stop"]) == 0
    run.flush()
    assert run.requests() == rlvitals.lab.Requests(stop=True)
    assert run.requests().stop, "until the loop ends"
    run.finish()
    asked = happened(tmp_path, "asked")
    assert [(event.step, event.facts["what"]) for event in asked] == [
        (12, "save"), (12, "save"), (12, "stop"),
    ]  # fmt: skip


def test_asking_for_a_lower_learning_rate(tmp_path, capsys):
    with rlvitals.start(tmp_path) as run:
        for factor in ("0.5", "0.2"):
            assert main(["ask", str(tmp_path), "lower-rate", "--factor", factor]) == 0
        run.flush()
        assert run.requests() == rlvitals.lab.Requests(rate_factor=0.1)
        assert not run.requests()
        assert main(["ask", str(tmp_path), "lower-rate", "--factor", "2"]) == 2
        assert "a factor of 2 does not lower the rate" in capsys.readouterr().err
        run.flush()
        assert not run.requests()


TRAINING = """
import signal, sys, time, rlvitals
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
run = rlvitals.start(sys.argv[1], flush_seconds=0.01)
run.log(0, {"x": 1.0})
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux")
@pytest.mark.parametrize(("kind", "ending"), [("plain", "SIGTERM"), ("deaf", "SIGKILL")])
def test_a_process_is_killed_and_its_run_says_so(tmp_path, capsys, kind, ending):
    argv = [sys.executable, "-c", TRAINING, str(tmp_path / "run"), kind]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 2048:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]  # as a server that is busy
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout.readline() == "ready\n"
        grace = "1s" if kind == "deaf" else "15m"
        try:
            assert main(["ask", str(tmp_path / "run"), "kill", "--grace", grace]) == 0
            assert training.wait(HANG_SECONDS) != 0
        finally:
            training.kill()
            for descriptor in many:
                os.close(descriptor)
    assert f"process {training.pid} of run ended after {ending}" in capsys.readouterr().out
    assert [event.facts["what"] for event in happened(tmp_path / "run", "asked")] == ["kill"]
    assert rlvitals.diagnose(tmp_path / "run").verdict.word.value == "failed"
    assert main(["ask", str(tmp_path / "run"), "kill"]) != 0


def test_what_was_asked_of_an_earlier_attempt_is_done_with(tmp_path):
    first = rlvitals.start(tmp_path)
    main(["ask", str(tmp_path), "stop"])
    first.finish()
    with rlvitals.start(tmp_path) as second:
        second.flush()
        assert not second.requests()


def test_asking_a_run_that_has_ended(tmp_path, capsys):
    rlvitals.start(tmp_path).finish()
    assert main(["ask", str(tmp_path), "stop"]) == 2
    assert "no process is left to ask: the run has ended (finished)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["nowhere", "save"], ["nowhere", "jump"]])
def test_asking_wrongly(tmp_path, capsys, words):
    assert main(["ask", str(tmp_path / words[0]), words[1]]) in {2, 3}
    assert capsys.readouterr().err.startswith("error: ")


def test_damage_in_the_file_of_requests_harms_nothing(tmp_path):
    with rlvitals.start(tmp_path) as run:
        (tmp_path / "requests.jsonl").write_bytes(b'{"event":\n\xff\xfe\n[]\n{"event":"dance"}\n')
        run.flush()
        assert not run.requests()
        main(["ask", str(tmp_path), "save"])
        run.flush()
        assert run.requests().save
