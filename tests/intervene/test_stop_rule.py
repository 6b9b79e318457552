"""When a run is asked to stop, and that it then does."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from recording_checks import happened
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.cli import follow
from rlvitals.diagnosis.replay import prefixes
from rlvitals.following.changes import Judged
from rlvitals.following.loop import Watch
from rlvitals.intervene.stop_rule import StopRule
from rlvitals.settings import Settings

RUNS = Path(__file__).parents[1] / "runs"


def grow(name, parts=6):
    """Return the diagnoses of a run as it grew."""
    file = RUNS / name / "run.csv"
    trace = rlvitals.trace(file if file.exists() else RUNS / name)
    return [rlvitals.diagnose(prefix) for prefix in prefixes(trace, parts)[:-1]]


def first_stop(diagnoses):
    rule = StopRule()
    return next((n for n, each in enumerate(diagnoses) if rule.update(each)), None)


def test_a_broken_run_is_stopped_at_the_third_judgement_at_the_earliest():
    diagnoses = grow("ppo-cartpole-lr-x300")
    number = first_stop(diagnoses)
    assert number is not None
    assert number >= 2
    rule = StopRule()
    repeated = [rule.update(diagnoses[-1]) for _ in range(5)]
    assert repeated == [""] * 5, "the log did not grow"


@pytest.mark.parametrize("name", ["ppo-cartpole-healthy", "rlhf-healthy"])
def test_a_healthy_run_is_not(name):
    assert first_stop(grow(name)) is None


def test_an_error_that_passes_starts_anew():
    broken, healthy = grow("ppo-cartpole-lr-x300"), grow("ppo-cartpole-healthy")
    rule = StopRule()
    reasons = [rule.update(each) for each in (*broken[-3:-1], healthy[-2], broken[-1])]
    assert reasons == [""] * 4


def outcome_alone(path, levels):
    """Return the diagnoses of a growing run that logs its return alone, of 800 episodes."""
    share = np.arange(800) / 800
    returns = np.interp(share, *zip(*levels, strict=True))
    returns += 2.0 * np.random.default_rng(0).standard_normal(800)
    rows = [f"{30 * n},{value:.3f}" for n, value in enumerate(returns)]
    path.write_text("step,return\n" + "\n".join(rows) + "\n")
    return [rlvitals.diagnose(prefix) for prefix in prefixes(rlvitals.trace(path))[:-1]]


def test_a_task_that_changes_leaves_as_long_to_learn_again_as_it_took(tmp_path):
    learns = [(0, 2), (0.3, 23), (0.5, 23)]
    again = outcome_alone(tmp_path / "again.csv", [*learns, (0.501, 3), (0.65, 3), (1, 20)])
    assert any(f.severity is rlvitals.Severity.ERROR for d in again for _, f in d.findings)
    assert first_stop(again) is None
    lost = outcome_alone(tmp_path / "lost.csv", [*learns, (0.501, 3), (1, 3)])
    stop = first_stop(lost)
    assert stop is not None
    assert lost[stop].trace.last_step >= 0.75 * 800 * 30


def test_follow_asks_the_run_once_and_the_recorder_tells_its_loop(tmp_path, capsys):
    with rlvitals.start(tmp_path / "run") as run:
        run.log(1, {"loss": 1.0})
        run.flush()
        watch = Watch({tmp_path / "run": follow.make_judge(Settings())})
        list(watch.look(patient=True))
        name = watch.runs[0].name
        diagnoses = [
            replace(d, trace=replace(d.trace, name=name)) for d in grow("ppo-cartpole-lr-x300")
        ]
        changes = [Judged(name, 0.0, each, turned=False, first=False) for each in diagnoses * 2]
        assert list(follow._ask_stops(changes, watch)) == changes
        deadline = time.monotonic() + HANG_SECONDS
        while not run.requests().stop and time.monotonic() < deadline:
            time.sleep(0.05)
        assert run.requests().stop
    (asked,) = happened(tmp_path / "run", "asked")
    assert asked.facts["what"] == "stop"
    assert "entropy" in asked.facts["reason"] or "learning" in asked.facts["reason"]
    assert "run is asked to stop" in capsys.readouterr().err


def find_companion(folder):
    """Return the process beside a run: its command line is empty for a moment after `exec`."""
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        for child in psutil.Process().children():
            if str(folder) in child.cmdline():
                return child
        time.sleep(0.01)
    raise AssertionError(f"no process beside {folder}")


@pytest.mark.soak
def test_a_companion_ends_with_its_run(tmp_path):
    """A real process beside a real run."""
    with rlvitals.start(tmp_path / "run", stop_on="error") as run:
        process = find_companion(tmp_path / "run")
        flags = [str(tmp_path / "run"), "--until-end", "--stop-on", "error"]
        assert process.cmdline()[-4:] == flags
        assert process.nice() >= psutil.Process().nice()
        for step in range(50):
            run.log(step, {"loss": 1.0 / (step + 1)})
    psutil.wait_procs([process], timeout=HANG_SECONDS)
    assert not process.is_running()


def test_no_companion_unless_asked_for(tmp_path):
    children = set(psutil.Process().children())
    rlvitals.start(tmp_path / "run").finish()
    (tmp_path / "rlvitals.toml").write_text('[recording]\nalerts = true\nstop_on = "error"\n')
    rlvitals.start(tmp_path / "second").finish()  # a file that came with the runs
    assert set(psutil.Process().children()) <= children
    with pytest.raises(rlvitals.UsageError, match="stop_on cannot be 'eror'"):
        rlvitals.start(tmp_path / "other", stop_on="eror")


def test_a_companion_that_cannot_run_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    with rlvitals.start(tmp_path / "run", alerts=True) as run:
        deadline = time.monotonic() + HANG_SECONDS
        notes = ""
        while "no alerts" not in notes and time.monotonic() < deadline:
            time.sleep(0.1)
            notes = json.dumps([*map(str, run._notes.counts)])
        assert "no alerts file" in notes
