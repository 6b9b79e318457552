"""The same bytes get the same answer: whatever the files' times, the clock and the folder.

Whether a run goes on is told by evidence or by a person, never by the age of its log.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from effort import sampled

import rlvitals
from rlvitals.cli import main
from rlvitals.diagnosis import load
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.metrics.canonicalize import Given
from rlvitals.rules.going_on import liveness
from rlvitals.tracking import clock
from rlvitals.types import Budget, Lifecycle
from rlvitals.views import diagnosis_json, json_view
from rlvitals.views.terminal import diagnosis as as_text

ROOT = Path(__file__).parent
EXAMPLES = ROOT.parent / "examples"
SOURCE = Path(rlvitals.__file__).parent
HOUR, DAY = 3600.0, 86_400.0
AGES = {"now": 0.0, "an hour ago": HOUR, "a year ago": 365 * DAY, "in the future": -DAY}
FOLDERS = sorted(
    folder
    for parent in (EXAMPLES, ROOT / "runs", ROOT / "traps", ROOT / "traces")
    for folder in parent.iterdir()
    if folder.is_dir() and any(folder.glob("*.[cjt]s[vo]*"))
)


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def aged(folder, age, now=None):
    """Set the times of all files of a folder."""
    moment = (time.time() if now is None else now) - age
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (moment, moment))
    return folder


def told(capsys, *words):
    """Return exit code and output of the program, called in this process."""
    code = main([str(word) for word in words])
    return code, capsys.readouterr().out


def traces(folder, now):
    try:
        return [json_view.trace(load.load(run, Given(), now=now)) for run in load.runs(folder)]
    except UnreadableLog as error:
        return [error.problem]


@pytest.mark.parametrize(
    "folder", sampled(FOLDERS, 6), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_no_trace_depends_on_file_times_or_the_clock(folder, tmp_path):
    """Judging is pure (`test_architecture`): of equal traces the answers are equal."""
    copy = shutil.copytree(folder, tmp_path / folder.name)
    now = time.time()
    clocks = (0.0, HOUR, -DAY, 365 * DAY)
    answers = [
        traces(aged(copy, age, now), now + later)
        for age, later in zip(AGES.values(), clocks, strict=True)
    ]
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)


COMMANDS = (
    ("diagnose", "RUN"),
    ("diagnose", "RUN", "--json"),
    ("diagnose", "RUN", "--markdown", "--replay"),
    ("status", "RUN", "-v"),
    ("status", "RUN", "--json"),
    ("report", "RUN", "--markdown"),
    ("follow", "RUN", "--once", "--notes", "--now", "2026-01-31"),
)


def written(path, share=1.0, last=()):
    """Write a part of the healthy example as one bare table; `last`: cells of its last row."""
    lines = (EXAMPLES / "healthy" / "progress.csv").read_text().splitlines()
    lines = lines[: 1 + round(share * (len(lines) - 1))]
    cells = lines[-1].split(",")
    for i, key in enumerate(lines[0].split(",")):
        cells[i] = dict(last).get(key, cells[i])
    path.mkdir(parents=True)
    (path / "progress.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    return path


def monitored(path, began=1.7e9, rows=60, of=200):
    """Write a log whose rows have wall times, one a minute, and whose budget is known."""
    path.mkdir(parents=True)
    head = f'#{{"t_start": {began}, "env_id": "CartPole-v1"}}\nr,l,t\n'
    lines = (f"{20 + 3 * i}.0,100,{60 * i}.5\n" for i in range(1, rows + 1))
    (path / "0.monitor.csv").write_text(head + "".join(lines))
    (path / "rlvitals.toml").write_text(f"[settings]\ntotal_steps = {100 * of}\n")
    return path


CASES = {
    "finished": lambda path: shutil.copytree(EXAMPLES / "failing", path),
    "half": lambda path: written(path, 0.5),
    "archive": monitored,
}


@pytest.mark.parametrize("case", sampled(CASES, 3))
def test_every_command_says_the_same_at_once_and_a_year_later(case, tmp_path, capsys, monkeypatch):
    first = CASES[case](tmp_path / "here" / "run")
    clone = shutil.copytree(first, tmp_path / "there" / "run")
    now = time.time()
    for words in COMMANDS:
        answers = []
        for place, age, later in (
            (first, 0.0, 0.0), (first, 365 * DAY, HOUR), (clone, -DAY, 400 * DAY),
        ):  # fmt: skip
            monkeypatch.chdir(aged(place, age, now).parent)
            monkeypatch.setattr(clock.time, "time", lambda later=later: now + later)
            answers.append(told(capsys, *("run" if word == "RUN" else word for word in words)))
            monkeypatch.undo()
        assert answers[0][1]
        assert all(answer == answers[0] for answer in answers), words


def test_a_finished_log_has_one_diagnosis(tmp_path, capsys):
    """It was "2 notes, exit 0" while its file was young, and "1 warning, exit 1" afterwards."""
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(ROOT / "traces" / "setting-out-of-range" / "quiet.csv", run / "progress.csv")
    said = ("--set", "gamma=0.0", "--set", "env_id=CartPole-v1")
    answers = {name: told(capsys, "diagnose", aged(run, age), *said) for name, age in AGES.items()}
    assert len(set(answers.values())) == 1, answers
    code, out = answers["now"]
    assert code == 1
    assert "warning[setting-out-of-range]" in out
    assert out.count("not known whether it goes on") == 1


BROKEN = dict.fromkeys(("train/loss", "train/value_loss", "train/policy_gradient_loss"), "nan")


@pytest.mark.parametrize("share", [0.49, 0.61])
@pytest.mark.parametrize("budget", ["--set=total_steps=61440", "--set=gamma=0.99"])
def test_a_crash_by_nan_is_the_same_failure_at_once_and_a_year_later(
    share, budget, tmp_path, capsys
):
    """It was HUNG for a day, and learning or converged with exit code 0 afterwards."""
    run = written(tmp_path / "run", share, BROKEN.items())
    answers = [told(capsys, "diagnose", aged(run, age), budget) for age in AGES.values()]
    assert len(set(answers)) == 1, answers
    code, out = answers[0]
    assert code == 1
    assert out.startswith(" FAILED  all 3 losses are NaN in the last row, at step ")
    assert "HUNG" not in out


@pytest.mark.parametrize(
    ("cycle", "budget", "failed"),
    [
        (Lifecycle(), 61_440, True),
        (Lifecycle(live=True), 61_440, False),  # the next update may mend it
        (Lifecycle(), 30_720, False),  # all its steps are done
        (Lifecycle(ended=True, exit_code=0), 61_440, True),
    ],
)
def test_one_row_of_nan_fails_where_no_next_row_can_mend_it(cycle, budget, failed, tmp_path):
    run = rlvitals.trace(written(tmp_path / "run", 0.5, BROKEN.items()))
    found = rlvitals.diagnose(
        type(run)(run.series, run.measured, budget=Budget(budget, "set"), lifecycle=cycle)
    )
    assert (found.verdict.word is rlvitals.Word.FAILED) == failed


def test_losses_that_are_nan_in_rows_of_another_kind_are_no_crash(tmp_path):
    """Tables of some programs hold NaN wherever a row has no such number."""
    run = written(tmp_path / "run", 0.5, BROKEN.items())
    lines = (run / "progress.csv").read_text().splitlines()
    cells = lines[20].split(",")
    for i, key in enumerate(lines[0].split(",")):
        cells[i] = BROKEN.get(key, cells[i])
    (run / "progress.csv").write_text("\n".join([*lines[:20], ",".join(cells), *lines[21:]]))
    found = rlvitals.diagnose(run, settings={"total_steps": 61_440})
    assert found.verdict.word is not rlvitals.Word.FAILED


def test_an_archive_is_not_silent_for_356_days(tmp_path, capsys):
    run = monitored(tmp_path / "run")
    for later in (HOUR, 356 * DAY):
        now = f"--now={1.7e9 + 3600 + later}"
        out = told(capsys, "diagnose", run, now)[1]
        assert "no-new-rows]" not in out
        assert "days" not in out
        assert "not known whether it goes on" in out
        assert "last row 2023-11-14 23:13:20 UTC" in told(capsys, "status", run, now)[1]
    live = told(capsys, "diagnose", run, "--live", f"--now={1.7e9 + 3600 + 3 * HOUR}")
    assert live[1].startswith(" HUNG  no new row for 3 h, at 30% of the budget")
    assert live[0] == 1
    assert "not known whether it goes on" not in told(capsys, "diagnose", run, "--finished")[1]


def test_what_is_known_by_a_flag(tmp_path, capsys):
    run = written(tmp_path / "run", 0.5)
    unknown = json.loads(told(capsys, "diagnose", run, "--json")[1])["goes_on"]
    assert unknown["live"] is None
    for flag, live in (("--live", True), ("--finished", False)):
        found = json.loads(told(capsys, "diagnose", run, "--json", flag)[1])["goes_on"]
        assert found == {"live": live, "why": f"{flag} says so"}
        state = json.loads(told(capsys, "status", run, "--json", flag)[1])["state"]
        assert state == ("running" if live else "finished")
        assert rlvitals.diagnose(run, live=live).trace.lifecycle.live is live
        assert rlvitals.trace(run, live=live).lifecycle.live is live
    assert json.loads(told(capsys, "status", run, "--json")[1])["state"] == "unknown"
    assert rlvitals.diagnose(rlvitals.trace(run), live=False).trace.lifecycle.over
    assert main(["diagnose", str(run), "--live", "--finished"]) == 2


def test_a_flag_overrules_the_settings_and_nothing_overrules_a_recorded_end(
    tmp_path, capsys, monkeypatch
):
    run = written(tmp_path / "run", 0.5)
    monkeypatch.setenv("RLVITALS_DIAGNOSE_LIVE", "true")
    assert rlvitals.diagnose(run).trace.lifecycle.live is True
    found = json.loads(told(capsys, "diagnose", run, "--json", "--finished")[1])["goes_on"]
    assert found["live"] is False
    (run / "rlvitals.toml").write_text("[diagnose]\nfinished = true\n")
    with pytest.raises(UsageError, match="both live and finished"):
        rlvitals.diagnose(run)
    over = rlvitals.Trace({}, {}, lifecycle=Lifecycle(ended=True))
    assert rlvitals.diagnose(over, live=True).trace.lifecycle.live is None


RECORDED = """
import os, sys, rlvitals
run = rlvitals.start(folder=sys.argv[1], durable=True, settings={"total_steps": 400})
for i in range(1, 31):
    run.log(i, {"outcome/return": float(i)})
if sys.argv[2] == "finish": run.finish()
if sys.argv[2] == "kill": os.kill(os.getpid(), 9)
print("there", flush=True); sys.stdin.read()
"""


def recorded(folder, how):
    """Record a run in a process of its own; return the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDED, str(folder), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if how == "kill":
        process.communicate()
    else:
        process.stdout.readline()
    return process


def test_what_is_known_by_the_process_record(tmp_path, capsys):
    process = recorded(tmp_path / "live", "stay")
    try:
        for age in AGES.values():
            cycle = rlvitals.trace(aged(tmp_path / "live", age)).lifecycle
            assert (cycle.live, cycle.live_by) == (True, "its process is there")
        assert told(capsys, "status", tmp_path / "live")[1].startswith(" RUNNING ")
    finally:
        process.kill()
        process.communicate()
    for age in AGES.values():
        code, out = told(capsys, "diagnose", aged(tmp_path / "live", age))
        assert code == 1
        assert out.startswith(" FAILED  killed or lost: no end was recorded")


def test_what_is_known_by_a_recorded_end(tmp_path):
    recorded(tmp_path / "run", "finish").communicate()
    found = rlvitals.trace(tmp_path / "run")
    assert liveness(found).live is False
    assert liveness(found).why == "finished"
    assert found.lifecycle.silence is None


def test_an_archive_from_another_machine_is_told_by_the_date_of_its_last_heartbeat(
    tmp_path, capsys
):
    recorded(tmp_path / "run", "kill")
    (beat,) = (tmp_path / "run" / "life").glob("*.beat")
    first, about = beat.read_bytes().splitlines()[:2]
    writer = {**json.loads(about), "host": "far", "boot": "another", "namespace": "another"}
    beat.write_bytes(first + b"\n" + json.dumps(writer).encode() + b"\n")
    sign = float(first.split()[0])
    answers = {
        told(capsys, "diagnose", aged(tmp_path / "run", age), f"--now={sign + later}")
        for age in AGES.values()
        for later in (301.0, 2 * HOUR, 365 * DAY)
    }
    ((code, out),) = answers
    assert code == 1
    said = " ".join(out.split())
    assert f"no end was recorded; last heartbeat from far at {clock.date(sign)}" in said
    assert "days" not in out
    live = told(capsys, "diagnose", tmp_path / "run", "--live", f"--now={sign + HOUR}")
    assert "FAILED" not in live[1]
    fresh = json.loads(told(capsys, "diagnose", tmp_path / "run", "--json", f"--now={sign + 9}")[1])
    assert fresh["goes_on"]["live"] is True


@pytest.mark.parametrize(
    ("budget", "live"), [(30_720, False), (30_720 + 1023, False), (30_720 + 1024, None)]
)
def test_a_budget_that_is_reached_within_one_logging_interval_is_an_end(budget, live, tmp_path):
    run = written(tmp_path / "run", 0.5)
    found = liveness(rlvitals.trace(run, settings={"total_steps": budget}))
    assert found.live is live


def test_a_long_interval_is_no_end(tmp_path):
    run = written(tmp_path / "run", 3 / 60)
    assert liveness(rlvitals.trace(run, settings={"total_steps": 4000})).live is None


def test_growth_that_is_watched_is_evidence_and_its_age_is_not(tmp_path):
    run = written(tmp_path / "run", 0.5)
    (one,) = load.runs(run)
    logs = rlvitals.read(run)
    now = 2e9
    assert load.build_trace(one, logs, Given(), now).lifecycle.live is None
    grown = load.build_trace(one, logs, Given(), now, now - 5.0).lifecycle
    assert (grown.live, grown.live_by) == (True, "it grew while it was watched")
    assert grown.silence == 5.0
    still = load.build_trace(one, logs, Given(), now, now - 2 * HOUR).lifecycle
    assert (still.live, still.silence) == (None, 2 * HOUR)
    over = load.build_trace(one, logs, Given(live=False), now, now - 5.0).lifecycle
    assert (over.live, over.silence) == (False, None)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1700000000", 1.7e9),
        ("2023-11-14T22:13:20", 1.7e9),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9),
        ("2023-11-14 22:13:20", 1.7e9),
    ],
)
def test_a_moment_is_an_epoch_or_a_date(text, moment):
    assert clock.now(text) == moment


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "-1", "1e300", "2023-13-01"])
def test_what_is_no_moment_is_refused(text, tmp_path, capsys):
    run = written(tmp_path / "run", 0.5)
    assert main(["diagnose", str(run), f"--now={text}"]) == 2
    assert "is not a time" in capsys.readouterr().err


# Who reads a file's time or the clock, and why that decides no answer about a run.
MAY_READ_A_TIME = {
    "agents/workspace.py": "whether a run has changed since its diagnosis was made",
    "alerts/": "sends at the hours of its own settings",
    "cli/prune.py": "how old a run is",
    "cli/watch.py": "which console file is the newest",
    "cli/runs.py": "whether the settings file has changed since the index was made",
    "doctor/similar_folders.py": "a doctor looks at the files of this machine, now",
    "doctor/context.py": "a doctor looks at the files of this machine, now",
    "faults/record.py": "a recording's own clock",
    "integrations/": "hooks record",
    "readers/formats/sqlite.py": "whether a database has changed while it is read",
    "tracking/": "records when things happen",
    "bucket/": "records when things happen; whether a file has changed since its upload",
    "cli/judging.py": "whether the settings have changed since the verdicts of an index",
    "checkpoints/": "records when things happen; clears what is left over",
    "rollouts/rollout_index.py": "whether a file has changed since its index was made",
    "server/channel.py": "which start of the server a message is of",
    "server/run_files.py": "whether a run has changed since the last look",
    "views/triage_table.py": "which runs --since selects where their logs hold no times",
    "storage/": "records when things happen; keeps indexes and clears what is left over",
    "trainers/": "trains",
    "wandb/": "records",
    "following/file_tail.py": "whether a file has changed since the last look",
    "following/folder_tree.py": "whether a folder has changed since the last look",
    "hosted/trackio_dataset.py": "whether a copied table is newer than the database made of it",
}
TIMES = {"st_mtime", "st_mtime_ns", "st_ctime", "getmtime", "utcnow", "time_ns"}


def reads_a_time(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr in TIMES or (owner, node.attr) in {
            ("time", "time"), ("clock", "time"), ("datetime", "now"), ("date", "today"),
        }:  # fmt: skip
            yield node.lineno


def test_nothing_that_judges_reads_a_file_s_time_or_a_clock_of_its_own():
    readers = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := list(reads_a_time(path)))
    }
    own = {
        name: lines for name, lines in readers.items() if not name.startswith((*MAY_READ_A_TIME,))
    }
    assert own == {}
    assert all(
        any(name.startswith(known) for name in readers)
        for known in ("tracking/clock.py", "following/")
    )


def test_the_text_and_the_field_are_there_once(tmp_path):
    found = rlvitals.diagnose(written(tmp_path / "run", 0.5))
    text = as_text(found)
    assert text.count("not known whether it goes on, judged as it stands") == 1
    assert diagnosis_json.diagnosis(found).count('"goes_on"') == 1
    over = as_text(rlvitals.diagnose(tmp_path / "run", live=False))
    assert "not known whether it goes on" not in over


@pytest.mark.soak
@pytest.mark.parametrize(
    "log",
    [
        "tier-1/dqn-CartPole-v1/learning-rate-x1e-4-s2.csv.zst",
        "tier-1/sac-Pendulum-v1/observation-noise-s100.csv.zst",
    ],
)
def test_a_processor_that_adds_in_another_order_gives_the_same_answer(log):
    command = [sys.executable, "-m", "rlvitals", "diagnose", str(ROOT.parent / "faults" / log)]
    answers = [
        subprocess.run(
            [*command, "--json", "--finished", "--fail-on", "never"],
            capture_output=True, check=True, env={**os.environ, **variables},
        ).stdout
        for variables in ({}, {"OPENBLAS_CORETYPE": "Nehalem"})
    ]  # fmt: skip
    assert answers[0] == answers[1]
