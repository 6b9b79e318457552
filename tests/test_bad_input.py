"""Whatever lies at a path, `rlvitals diagnose` answers or refuses by name; it never lies."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
import tfrecords as tf
from effort import cases, sampled
from waiting import HANG_CPU_SECONDS

from rlvitals.cli import main
from rlvitals.readers.discovery.sources import Run, find, read

ROWS = 60
HEAD = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,train/value_loss,train/loss"
STEPS = 2048 * np.arange(1, ROWS + 1)
RETURNS = np.linspace(20, 450, ROWS) + 3 * np.sin(np.arange(ROWS))
LOSSES = 40 + 5 * np.cos(np.arange(ROWS))
ANSWERS = (0, 1, 4)
EVENTS = "events.out.tfevents.1700000000.host.1.0"


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run the program in this process; nothing may be raised or warned."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = main([str(a) for a in argv])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def refused(call):
    """Diagnose what cannot be read: exit code 3, and a message with what, where and try."""

    def run(path, *words):
        code, out, err = call("diagnose", path)
        assert (code, out) == (3, ""), out
        what, *rest = err.splitlines()
        assert what.startswith("error: ")
        assert rest[0].startswith("  at:  ")
        assert str(path) in rest[0]
        assert rest[-1].startswith("  try: ")
        for word in words:
            assert word in err
        return err

    return run


def row(i, **cells):
    named = dict(
        zip(HEAD.split(","), (STEPS[i], RETURNS[i], 0.01, LOSSES[i], LOSSES[i]), strict=True)
    )
    return ",".join(str(v) for v in (named | cells).values())


ALL = tuple(row(i) for i in range(ROWS))


def csv(folder, rows=ALL, head=HEAD):
    folder.mkdir(exist_ok=True)
    path = folder / "progress.csv"
    path.write_bytes(
        "".join(f"{line}\n" for line in (head, *rows)).encode("utf-8", "surrogateescape")
    )
    return path


def points(call, path):
    code, out, _ = call("metrics", path, "--json")
    assert code == 0
    return json.loads(out)["series"]


# what is no log


def test_an_empty_folder(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "it is empty")


def test_an_empty_file(refused, tmp_path):
    (tmp_path / "progress.csv").touch()
    refused(tmp_path / "progress.csv", "the file is empty")


@pytest.mark.parametrize("name", ["progress.csv", "progress.json", "trainer_state.json", "x.jsonl"])
def test_binary_noise(refused, tmp_path, name):
    (tmp_path / name).write_bytes(np.random.default_rng(1).bytes(50_000))
    refused(tmp_path / name, "not a training log")


def test_binary_noise_as_an_event_file(call, tmp_path):
    (tmp_path / EVENTS).write_bytes(np.random.default_rng(1).bytes(50_000))
    code, out, err = call("diagnose", tmp_path / EVENTS)
    assert code in (3, 4)
    assert "0 rows" in out or "error: " in err


@pytest.mark.parametrize(
    ("asked", "guess"),
    [("rnu_7", "run_7"), ("run_7/progres.csv", "progress.csv"), ("zzz", "one of run_7 in")],
)
def test_a_path_that_does_not_exist_names_the_nearest(refused, tmp_path, asked, guess):
    csv(tmp_path / "run_7")
    refused(tmp_path / asked, "this path does not exist", guess)


def test_a_missing_folder_is_named_by_every_command(refused, call, tmp_path):
    (tmp_path / "runs").mkdir()
    csv(tmp_path / "runs" / "ppo_1")
    csv(tmp_path / "runs" / "sac_1")
    where = f"(there is no {tmp_path / 'ruins'})"
    refused(tmp_path / "ruins" / "x" / "y", "this path does not exist", where, "did you mean runs?")
    commands = ("diagnose", "runs", "report", "status", "checkpoints", "samples", "serve", "verify")
    for command in commands:
        code, _, errors = call(command, tmp_path / "runs" / "walk")
        assert code == 3
        assert "this path does not exist" in errors, command
        assert f"one of sac_1, ppo_1 in {tmp_path / 'runs'}" in errors, command
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty" / "x", "this path does not exist", "empty is empty")


def test_a_name_too_long_and_one_no_file_can_have(refused, call):
    refused("a" * 300, "too long")
    assert call("diagnose", "b" * 5000)[0] == 3
    assert call("diagnose", "a\0b")[0] == 3


def test_a_loop_of_links(refused, call, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop", "symbolic links")
    folder = tmp_path / "run"
    csv(folder)
    (folder / "again").symlink_to(folder)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    code, out, _ = call("diagnose", folder)
    assert code == 0
    assert "60 rows" in out


def test_a_device_and_a_pipe_do_not_hang(refused, tmp_path):
    os.mkfifo(tmp_path / "progress.csv")
    refused(tmp_path / "progress.csv", "not a regular file")
    refused(tmp_path, "not a regular file")
    refused("/dev/zero", "not a regular file")


def test_a_folder_called_progress_csv(refused, tmp_path):
    (tmp_path / "progress.csv").mkdir()
    refused(tmp_path, "it is empty")
    refused(tmp_path / "progress.csv", "it is empty")


def test_no_permission(tmp_path):
    """In a process of its own, which gives up root's right to read everything."""
    path = csv(tmp_path / "run")
    path.chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if folder.stat().st_uid == 0 and folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    code = (
        # Once as root first: the interpreter's own modules may not be readable afterwards.
        "import os, sys; from rlvitals.cli import main; sys.stdout = open(os.devnull, 'w');"
        "main(['diagnose', sys.argv[1]]); main(['diagnose', '/nowhere']);"
        "os.geteuid() or (os.setgid(65534), os.setuid(65534));"
        "sys.exit(main(['diagnose', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "Traceback" not in done.stderr
    assert "Permission denied" in done.stderr
    assert done.returncode == 3


def test_a_file_that_goes_between_finding_and_reading(tmp_path, call, monkeypatch):
    kept, gone = csv(tmp_path / "run"), csv(tmp_path / "gone")
    (other,) = find(gone)
    gone.unlink()
    (run,) = find(kept)
    notes = read(Run("both", tmp_path, (*run.files, *other.files)))[-1].notes
    assert any("gone/progress.csv not read" in note for note in notes)
    monkeypatch.setattr("rlvitals.diagnosis.load.runs", lambda _: (other,))
    assert call("diagnose", tmp_path)[0] == 3


# a log that was cut


def events(count=ROWS):
    rows = (
        tf.event(
            int(STEPS[i]),
            tf.simple("rollout/ep_rew_mean", float(RETURNS[i])),
            tf.simple("train/value_loss", float(LOSSES[i])),
        )
        for i in range(count)
    )
    return tf.VERSION + b"".join(rows)


def state():
    history = [{"step": i + 1, "reward": RETURNS[i] / 500, "loss": LOSSES[i]} for i in range(ROWS)]
    return json.dumps({"global_step": ROWS, "log_history": history, "max_steps": ROWS}).encode()


def lines():
    names = HEAD.split(",")
    return "".join(
        json.dumps(dict(zip(names, map(float, line.split(",")), strict=True))) + "\n"
        for line in ALL
    ).encode()


CUT = {
    "progress.csv": lambda: "".join(f"{line}\n" for line in (HEAD, *ALL)).encode(),
    "progress.json": lines,
    "trainer_state.json": state,
    EVENTS: events,
}


@pytest.mark.parametrize("name", CUT)
def test_every_cut_is_answered_or_refused_and_no_number_is_wrong(call, tmp_path, name):
    data, path = CUT[name](), tmp_path / name
    path.write_bytes(data)
    whole = points(call, path)
    for size in np.random.default_rng(3).choice(len(data), cases(12, 40), replace=False).tolist():
        path.write_bytes(data[:size])
        code, _, err = call("diagnose", path)
        assert code in (*ANSWERS, 3)
        if code == 3:
            assert str(path) in err
            continue
        for metric, series in points(call, path).items():
            for column in ("steps", "values"):
                assert series[column] == whole[metric][column][: len(series[column])]
            assert len(series["steps"]) <= size * ROWS // len(data) + 1, "more than was written"


@pytest.mark.parametrize("kept", sampled(range(1, len(ALL[-1])), 4))
def test_a_last_row_that_is_half_written_is_left_out(call, tmp_path, kept):
    path = csv(tmp_path / "run", ALL[:-1])
    path.write_text(path.read_text() + ALL[-1][:kept])
    series = points(call, path)
    assert series["value/loss"]["steps"][-1] == STEPS[-2]
    assert len(series["outcome/return"]["values"]) == ROWS - 1


# rows and cells


def test_rows_of_the_wrong_width_are_refused_and_counted(call, tmp_path):
    rows = [*ALL[:20], ALL[20] + ",7", ALL[21].rsplit(",", 2)[0], *ALL[22:]]
    path = csv(tmp_path / "run", rows)
    code, out, _ = call("diagnose", path)
    assert code == 0
    assert "2 rows refused" in out
    assert "line 22" in out
    series = points(call, path)["value/loss"]
    np.testing.assert_allclose(series["values"], np.delete(LOSSES, [20, 21]))


@pytest.mark.parametrize(
    "cell", ["nan(ind)", "-nan(ind)", "nan", "NaN", "Infinity", "-inf", "1e400"]
)
def test_a_loss_that_stops_being_a_number_fails_the_run(call, tmp_path, cell):
    rows = [row(i, **{"train/value_loss": cell}) if i > 40 else ALL[i] for i in range(ROWS)]
    code, out, _ = call("diagnose", csv(tmp_path / "run", rows))
    assert code == 1
    assert out.startswith(" FAILED ")
    assert "[not-a-number]" in out


@pytest.mark.parametrize("cell", ["None", "null", "", "abc", "1;5", "0x10", "１２"])
def test_a_cell_that_holds_no_number_is_no_number(call, tmp_path, cell):
    rows = [row(i, **{"train/value_loss": cell}) if i > 40 else ALL[i] for i in range(ROWS)]
    path = csv(tmp_path / "run", rows)
    code, _, _ = call("diagnose", path)
    assert code in ANSWERS
    series = points(call, path)
    known = [v for v in series["value/loss"]["values"] if v is not None]
    np.testing.assert_allclose(known[:41], LOSSES[:41])
    assert all(v == 12 for v in known[41:] if cell == "１２")
    assert len(series["outcome/return"]["values"]) == ROWS


@pytest.mark.parametrize("metric", sampled(HEAD.split(",")[1:], 3))
@pytest.mark.parametrize("cell", ["1e308", "-1e308", "5e-324", "nan", "inf", "-inf"])
def test_a_column_of_extremes_is_judged_without_a_word_of_python_s(call, tmp_path, metric, cell):
    places = (range(ROWS), range(30, ROWS), range(0, ROWS, 2))
    for rows in cases(places[1:2], places):
        made = [row(i, **{metric: cell}) if i in rows else ALL[i] for i in range(ROWS)]
        path = csv(tmp_path / "run", made)
        for shown in ((), ("--json",), ("--markdown",)):
            code, out, err = call("diagnose", path, *shown)
            assert code in ANSWERS
            assert (out, err) != ("", "")
            if shown == ("--json",):
                json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


# steps


def test_a_resumed_run_is_judged_on_the_later_attempt(call, tmp_path):
    again = [row(i, **{"rollout/ep_rew_mean": 7.0}) for i in range(25, ROWS)]
    path = csv(tmp_path / "run", [*ALL[:40], *again])
    code, out, _ = call("diagnose", path)
    assert code == 1
    assert f"resumed at step {STEPS[25]:,}" in out
    series = points(call, path)["outcome/return"]
    assert series["steps"] == STEPS.tolist()
    np.testing.assert_allclose(series["values"], [*RETURNS[:25], *[7.0] * 35])


def test_steps_that_only_go_back_are_put_in_order_and_it_is_said(call, tmp_path):
    path = csv(tmp_path / "run", ALL[::-1])
    assert "steps go back in 59 places" in call("diagnose", path)[1]
    np.testing.assert_allclose(points(call, path)["outcome/return"]["values"], RETURNS)


def test_every_row_twice_counts_once(call, tmp_path):
    path = csv(tmp_path / "run", [line for line in ALL for _ in range(2)])
    assert call("diagnose", path)[0] == 0
    assert points(call, path)["outcome/return"]["steps"] == list(STEPS)


@pytest.mark.parametrize(
    "step", ["1e308", "-1e308", "9223372036854775807", "1e19", "nan", "-5", "1.5"]
)
def test_a_step_that_is_none_loses_no_other_row(call, tmp_path, step):
    rows = [*ALL[:30], row(30, **{"time/total_timesteps": step}), *ALL[31:]]
    path = csv(tmp_path / "run", rows)
    assert call("diagnose", path)[0] in ANSWERS
    series = points(call, path)["value/loss"]
    at = dict(zip(series["steps"], series["values"], strict=True))
    for i in (*range(30), *range(31, ROWS)):
        assert at[STEPS[i]] == pytest.approx(LOSSES[i])


# bytes


def test_text_that_is_not_utf_8(call, tmp_path):
    path = csv(tmp_path / "run")
    data = path.read_bytes().replace(b"train/loss", b"r\xe9compense")
    path.write_bytes(data)
    assert call("diagnose", path)[0] == 0
    assert len(points(call, path)["outcome/return"]["values"]) == ROWS
    path.write_bytes(data.decode("latin1").encode("utf-16"))
    assert len(points(call, path)["outcome/return"]["values"]) == ROWS


@pytest.mark.parametrize("end", ["\r\n", "\n\n", "\n\n\n"])
def test_other_ends_of_line(call, tmp_path, end):
    path = csv(tmp_path / "run")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", end.encode()))
    np.testing.assert_allclose(points(call, path)["outcome/return"]["values"], RETURNS)


def test_a_hole_of_zeros_as_a_crash_of_the_disk_leaves(call, tmp_path):
    path = csv(tmp_path / "run")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]) + bytes(4096) + b"\n" + b"".join(lines[20:]))
    code, out, _ = call("diagnose", path)
    assert code == 0
    assert "refused" in out
    np.testing.assert_allclose(points(call, path)["outcome/return"]["values"], RETURNS)


def _measured(path):
    """Diagnose in a process of its own: exit code, stdout, CPU seconds, peak megabytes."""
    # Linux: the peak that getrusage tells is at least that of the process which started this one.
    code = (
        "import re, sys, time; from pathlib import Path; from rlvitals.cli import main;"
        "code = main(['diagnose', sys.argv[1]]); status = Path('/proc/self/status').read_text();"
        "print(time.process_time(), int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) // 1024);"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    assert "Traceback" not in done.stderr, done.stderr
    *answer, measured = done.stdout.splitlines()
    cpu_seconds, peak = measured.split()
    return done.returncode, "\n".join(answer), float(cpu_seconds), int(peak)


@pytest.mark.soak
def test_a_line_of_100_mb_costs_little_and_hides_nothing(tmp_path):
    path = csv(tmp_path / "run")
    head, *rest = path.read_bytes().splitlines(keepends=True)
    with path.open("wb") as file:
        file.write(head)
        file.writelines(rest[:30])
        file.write(b"9" * 100_000_000 + b"\n")
        file.writelines(rest[30:])
    code, out, cpu_seconds, peak = _measured(path)
    assert code == 0
    assert "60 rows" in out
    assert "line over 16 MiB skipped" in out
    assert cpu_seconds < HANG_CPU_SECONDS
    assert peak < 400


@pytest.mark.soak
def test_a_table_of_50_mb(tmp_path):
    path = tmp_path / "progress.csv"
    with path.open("w") as file:
        file.write(HEAD + "\n")
        for i in range(700_000):
            file.write(
                f"{2048 * (i + 1)},{20 + i / 2000 + i % 7:.6f},0.0{100 + i % 13},4{i % 9}.25,1\n"
            )
            if file.tell() > 50_000_000:
                break
    code, out, cpu_seconds, peak = _measured(path)
    assert code in ANSWERS
    assert "rows" in out
    assert cpu_seconds < 2 * HANG_CPU_SECONDS
    assert peak < 2500


def test_nothing_of_a_hostile_name_reaches_the_terminal(call, tmp_path):
    hostile = "\x1b[31mevil\x07,😀/emoji,\u202ertl"
    path = csv(tmp_path / "a\x1b[2J\u202e", [f"{line},1,2,3" for line in ALL], f"{HEAD},{hostile}")
    for shown in ((), ("--json",), ("--markdown",)):
        code, out, _ = call("diagnose", path.parent, *shown)
        assert code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(out)
    _, out, _ = call("metrics", path.parent)
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    err = call("diagnose", tmp_path / "\x1b[2J")[2]
    assert "\x1b" not in err


@pytest.mark.parametrize("said", ["target_kl=abc", "target_kl=-1", "total_steps=0", "n_actions=0"])
def test_a_setting_that_cannot_be_is_refused(call, tmp_path, said):
    code, _, err = call("diagnose", csv(tmp_path / "run"), "--set", said)
    assert code == 2
    assert said.partition("=")[0] in err


def test_memory_is_measured_in_kilobytes_here():
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 10_000
