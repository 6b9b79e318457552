"""Exit codes, signals, streams and other sitecustomize modules pass through the verb."""

import os
import signal
import subprocess
import sys
import time

import pytest
from recorded_runs import command, environment, plain, run, series
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.capture.command import check
from rlvitals.cli import main

SILENT = "import sys\nprint('out'); print('err', file=sys.stderr); sys.exit({code})"


@pytest.mark.parametrize("code", [0, 3])
def test_exit_code_and_streams_are_the_command_s(code, tmp_path):
    done = run(tmp_path, SILENT.format(code=code))
    assert (done.returncode, done.stdout) == (code, "out\n")
    assert done.stderr.splitlines()[1] == "err"
    assert "nothing was recorded" in done.stderr
    remedies = {
        0: ("diagnose FOLDER", "report_to=", "--instead"),
        3: ("ended with exit code 3 before it called a tracker", "own message", "--instead"),
    }
    for remedy in remedies[code]:
        assert remedy in done.stderr


def test_no_folder_is_left_where_nothing_was_recorded(tmp_path):
    done = run(tmp_path, "print('loading'); 1 / 0", flags=("-o", "runs/a"))
    assert "exit code 1 before it called a tracker" in done.stderr
    assert not (tmp_path / "runs").exists()


PRINTED = """
import subprocess, sys
print("device: cpu")
for step in range(30):
    sys.stdout.write(f"step={step} ")
    print(f"reward={step * 2.0}")
    print(f"\\r{step} of 30", end="", file=sys.stderr)
subprocess.run([sys.executable, "-c", "print('step=30 reward=60.0')"], check=True)
"""


def test_a_training_that_only_prints_is_recorded_as_printed(tmp_path):
    done = run(tmp_path, PRINTED)
    assert done.stdout == plain(tmp_path, PRINTED).stdout
    assert "rlvitals: no tracker was called: rec holds what was printed" in done.stderr
    assert series(tmp_path / "rec") == {"reward": [(step, step * 2.0) for step in range(31)]}
    failed = run(tmp_path, f"{PRINTED}\n1 / 0", flags=("-o", "failed"))
    assert "FAILED failed: ZeroDivisionError" in failed.stderr


@pytest.mark.parametrize(
    ("ending", "state", "exit_code"),
    [
        ("", "ended", 0),
        pytest.param("sys.exit(3)", "failed", 3, marks=pytest.mark.soak),
        ("import os; os.kill(os.getpid(), 9)", "failed", -9),
        pytest.param("sys.exit(130)", "open", None, marks=pytest.mark.soak),
    ],
)
def test_what_is_only_printed_says_how_its_command_ended(tmp_path, ending, state, exit_code):
    run(tmp_path, f"{PRINTED}\nsys.stdout.flush()\n{ending}")
    trace = rlvitals.trace(tmp_path / "rec")
    assert f": {state}, steps 0 to 30>" in repr(trace)
    assert trace.lifecycle.exit_code == exit_code


def test_output_beyond_a_limit_is_not_recorded_and_the_file_says_so(tmp_path):
    script = f"""
from pathlib import Path
from rlvitals.capture import printed
printed.follow(Path({str(tmp_path)!r}), max_bytes=1000)
for step in range(100):
    print(f"{{step:99}}")
"""
    assert plain(tmp_path, script).returncode == 0
    recorded = (tmp_path / "console.log").read_bytes()
    assert [int(line) for line in recorded.splitlines()[:-1]] == list(range(10))
    assert recorded.endswith(b"\nrlvitals: the output beyond this line is not recorded\n")


@pytest.mark.soak
def test_what_a_recorded_training_prints_is_not_kept_beside(tmp_path):
    script = "import wandb\nprint('step=1 reward=3')\nwandb.init()\nprint('step=2 reward=3')\n"
    script += "wandb.log({'reward': 1.0})\nwandb.finish()"
    for more in ("", "\nimport subprocess, sys\nsubprocess.run([sys.executable, 'other.py'])"):
        (tmp_path / "other.py").write_text("print('step=1 reward=3')")
        run(tmp_path, script + more, flags=("--instead", "-o", f"rec{len(more)}"))
        assert not (tmp_path / f"rec{len(more)}" / "console.log").exists()
        assert series(tmp_path / f"rec{len(more)}") == {"reward": [(0, 1.0)]}


def test_a_wrong_settings_file_leaves_the_exit_code_and_is_said(tmp_path):
    (tmp_path / "rlvitals.toml").write_text("[thresholds]\nnonsense = 3\n")
    script = "import sys, wandb\nwandb.init()\nwandb.log({'reward': 1.0})\nsys.exit(5)"
    done = run(tmp_path, script, flags=("--instead", "-o", "rec"))
    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        "rlvitals: recording into rec; to watch: rlvitals follow rec",
        "rlvitals: rec: no rule judges by 'nonsense'",
    ]


def test_the_folder_is_said_before_the_command_runs(tmp_path):
    done = run(tmp_path, "import os; os.write(2, b'started\\n')", flags=())
    lines = done.stderr.splitlines()
    assert lines[0].startswith("rlvitals: recording into runs/")
    assert lines[1] == "started"


def test_input_reaches_the_command(tmp_path):
    words = command("sh", "-c", "read line; echo $line")
    done = subprocess.run(
        words, input="typed\n", capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment(),
    )  # fmt: skip
    assert done.stdout == "typed\n"


def test_a_signal_that_ends_the_command_ends_the_verb(tmp_path):
    done = run(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL


def test_a_signal_to_the_verb_reaches_the_command(tmp_path):
    script = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "pathlib.Path('ready').touch()\ntime.sleep(60)"
    )
    (tmp_path / "train.py").write_text(script)
    verb = subprocess.Popen(
        command(sys.executable, "train.py"), cwd=tmp_path, env=environment(),
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not (tmp_path / "ready").exists():
        time.sleep(0.05)
    verb.terminate()
    assert verb.wait(HANG_SECONDS) == 7


def test_a_sitecustomize_that_was_there_runs_too(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("print('theirs')")
    script = "import sitecustomize, sys\nprint(sitecustomize.__file__, *sys.path)"
    path = os.pathsep.join((str(site), environment()["PYTHONPATH"]))
    done = run(tmp_path, script, PYTHONPATH=path)
    *theirs, where = done.stdout.splitlines()
    assert set(theirs) == {"theirs"}
    assert where.startswith(str(site / "sitecustomize.py"))
    assert "capture/site" not in where


def test_a_python_without_rlvitals_loads_ours(tmp_path):
    script = "import rlvitals, sys\nprint(rlvitals.__file__, rlvitals.capture.__name__)"
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run(
        command("/usr/bin/env", sys.executable, "-s", "train.py"),
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("rlvitals.capture\n"), done.stderr


@pytest.mark.parametrize("flags", [["-I"], ["-uS"], ["-W", "ignore", "-E"]])
def test_a_python_that_would_not_record_is_refused(flags, capsys):
    assert main(["run", "--", "python3.11", *flags, "train.py"]) == 2
    assert "does not load what records" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [["-WdefaultIES"], ["-uX", "EIS"], ["-m", "SEI", "-I"], ["-cEI"], ["t.py", "-I"], ["-u", "-"]],
)
def test_a_python_that_records_is_not_refused(flags):
    check(["/usr/bin/python3", *flags])
    check(["bash", "-E", "train.sh"])


def test_flags_of_the_script_are_its_own(capsys, tmp_path):
    assert main(["run", "-o", str(tmp_path / "r"), "--", "python-not-here", "-I"]) == 2
    assert "cannot be started" in capsys.readouterr().err
    assert main(["run", "-o", str(tmp_path / "r"), "--", "not-here.py"]) == 2
    assert "try: rlvitals run -- python not-here.py" in capsys.readouterr().err
    assert main(["run", "--"]) == 2
    assert "which command?" in capsys.readouterr().err
