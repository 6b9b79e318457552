"""The doctor: each thing that goes wrong is found, with evidence and a command that parses."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import doctor
from rlvitals.checkpoints.progress import Keeper
from rlvitals.checkpoints.progress_file import PROGRESS_FILE
from rlvitals.cli import COMMAND_GROUPS, main
from rlvitals.cli.program import parser
from rlvitals.doctor import machine, similar_folders
from rlvitals.doctor.context import gather_context
from rlvitals.doctor.examine import examine


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty folder: what lies in the working folder is looked at too."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def trainer(folder, *steps, first=2.0, **said):
    for step in steps:
        path = folder / f"checkpoint-{step}"
        path.mkdir(parents=True)
        rows = [
            {"step": step_number, "loss": first / step_number} for step_number in range(1, step + 1)
        ]
        state = {"global_step": step, "max_steps": 500, **said, "log_history": rows}
        (path / "trainer_state.json").write_text(json.dumps(state))
    return folder


def recorded(folder, *, steps=150, every=50, resume=True, kill=False):
    settings = {"total_steps": 400, "api_key": "sk-not-to-be-stored", "betas": (0.9, 0.99)}
    run = rlvitals.start(folder=str(folder), settings=settings)
    checkpoints = rlvitals.Checkpoints(run, every=every, tell=lambda _: None)
    resumed = checkpoints.restore() if resume else None
    for step in range(1 if resumed is None else resumed.step + 1, steps + 1):
        run.log(step, {"outcome/return": float(step)})
        if checkpoints.due(step):
            with checkpoints.save(step) as path:
                (path / "model.bin").write_bytes(os.urandom(1000))
    if not kill:
        run.finish()
    return folder


def examined(capsys, path, *argv):
    """The exit code, the troubles by check, what is fine; every hint parses."""
    code = main(["doctor", str(path), "--json", *argv])
    document = json.loads(capsys.readouterr().out)
    main(["doctor", str(path)])
    text = capsys.readouterr().out
    for trouble in document["troubles"]:
        assert trouble["evidence"] or trouble["said"]
        assert trouble["try"]
        for hint in trouble["try"]:
            if hint.startswith("rlvitals "):
                parser(COMMAND_GROUPS).parse_args(shlex.split(hint)[1:])
    graver = [trouble for trouble in document["troubles"] if trouble["severity"] != "note"]
    assert code == (1 if graver else 0)
    assert ("Nothing is wrong" in text) == (not graver)
    by_check = {}
    for trouble in document["troubles"]:
        by_check.setdefault(trouble["check"], []).append(trouble)
    return by_check


def test_a_run_that_is_well(tmp_path, capsys):
    troubles = examined(capsys, recorded(tmp_path / "run"))
    assert troubles == {}
    main(["doctor", str(tmp_path / "run")])
    out = capsys.readouterr().out
    assert out.startswith("Nothing is wrong")
    assert all(check.name in out for check in doctor.CHECKS)


def test_a_path_that_is_not_there(tmp_path, capsys):
    troubles = examined(capsys, tmp_path / "no" / "where" / "run")
    assert "there is nothing at this path" in troubles["logs"][0]["said"]
    assert str(tmp_path) in troubles["logs"][0]["evidence"][0]


@pytest.mark.parametrize(
    ("asked", "there", "differs"),
    [
        (
            "qwen2-5-3b-prm-large-train-v2-2025",
            "qwen2-5-3b-prm-large-train-v2-nsr-2025",
            "-nsr besides",
        ),
        ("qwen2-5-3b-prm-large-train-v2-nsr-2025", "qwen2-5-3b-prm-large-train-v2-2025", "no -nsr"),
        ("grpo-qwen-large-nsr-2026", "grpo-qwen-large-nsr-2025", "2025 in place of 2026"),
        ("grpo-qwen-large-nsr-2025", "grpo-qwen-large-psr-2025", "psr in place of nsr"),
        ("grpo_qwen_large_2025", "grpo-qwen-large-2025", "joined otherwise"),
        ("cartpole-sed1", "cartpole-seed1", "seed1 in place of sed1"),
    ],
)
@pytest.mark.parametrize("empty", [True, False])
def test_an_output_folder_that_does_not_match(  # noqa: PLR0917 - pytest hands them over by name
    tmp_path, capsys, asked, there, differs, empty
):
    root = tmp_path / "grpo-start-ckpts"
    trainer(root / there, 50, 100)
    (root / "unrelated-thing").mkdir()
    trainer(root / "elsewhere", 10)
    if empty:
        (root / asked).mkdir()
    (trouble,) = examined(capsys, root / asked)["folder-name"]
    assert there in trouble["evidence"][0]
    assert differs in trouble["evidence"][0]
    assert "2 checkpoints, the last of step 100" in trouble["evidence"][0]
    assert not any("elsewhere" in text or "unrelated" in text for text in trouble["evidence"])
    assert f"rlvitals status {root / there}" in trouble["try"]


def test_a_run_that_began_anew_beside_its_old_folder(tmp_path, capsys):
    trainer(tmp_path / "qwen-nsr-2025", 50)
    recorded(tmp_path / "qwen-nsr-2026", steps=20)
    (trouble,) = examined(capsys, tmp_path / "qwen-nsr-2026")["folder-name"]
    assert trouble["severity"] == "note"
    assert "qwen-nsr-2025" in trouble["evidence"][0]


def test_likeness_of_names():
    assert similar_folders.name_likeness("run-2025", "run-2025") == 1
    assert (
        similar_folders.name_likeness("qwen-large-v2-2025", "qwen-large-v2-nsr-2025")
        >= similar_folders.MIN_LIKENESS
    )
    assert similar_folders.name_likeness("native", "here") < similar_folders.MIN_LIKENESS
    assert similar_folders.name_likeness("ppo", "dqn") < similar_folders.MIN_LIKENESS


def test_no_log_appears(tmp_path, capsys):
    folder = tmp_path / "a-run-that-nobody-started"
    folder.mkdir()
    assert "it is empty" in examined(capsys, folder)["logs"][0]["evidence"]
    (folder / "notes.txt").write_text("hello")
    (trouble,) = examined(capsys, folder)["logs"]
    assert "1 .txt; notes.txt is being written" in trouble["evidence"][0]
    assert "trainer_state.json" in trouble["evidence"][1]
    assert (
        "no process on this machine was started with a-run-that-nobody-started"
        in trouble["evidence"]
    )
    os.utime(folder / "notes.txt", (time.time() - 7200,) * 2)
    assert "notes.txt came last, 2 h ago" in examined(capsys, folder)["logs"][0]["evidence"][0]
    (trouble,) = examined(capsys, folder / "notes.txt")["logs"]
    assert trouble["said"] == "this file is not a readable log"


def test_the_process_that_should_log_is_found(tmp_path, capsys):
    folder = tmp_path / "a-run-of-mine"
    folder.mkdir()
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()", f"--output-dir={folder}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        evidence = examined(capsys, folder)["logs"][0]["evidence"]
        process.stdin.close()
    assert f"process {process.pid} was started with a-run-of-mine: it is there" in evidence


def test_tensorboard_files_in_another_place(tmp_path, capsys, here):
    from torch.utils.tensorboard import SummaryWriter

    folder = tmp_path / "output"
    folder.mkdir()
    with SummaryWriter(str(here / "runs" / "Nov21_host")) as writer:
        writer.add_scalar("train/loss", 1.0, 1)
    (trouble,) = examined(capsys, folder)["logs"]
    assert any("Nov21_host" in text for text in trouble["evidence"])
    assert f"rlvitals diagnose {here / 'runs' / 'Nov21_host'}" in trouble["try"]


def test_nothing_to_resume_from(tmp_path, capsys):
    (trouble,) = examined(capsys, recorded(tmp_path / "run", steps=20))["resume"]
    assert trouble["severity"] == "note"
    folder = tmp_path / "hf"
    rows = [{"step": step, "loss": 1.0 / step} for step in range(1, 21)]
    folder.mkdir()
    state = {"global_step": 20, "save_steps": 50, "log_history": rows}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    (trouble,) = examined(capsys, folder)["resume"]
    assert "the first comes at step 50; the run is at 20" in trouble["evidence"]


def test_a_checkpoint_with_one_flipped_bit(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    path = folder / "checkpoint-150" / "model.bin"
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    (trouble,) = examined(capsys, folder)["resume"]
    assert trouble["said"] == "a checkpoint is damaged: checkpoint-100 is taken"
    assert "model.bin is not what was sealed" in trouble["evidence"][0]


def test_checkpoints_that_nobody_sealed_or_that_lack_a_file(tmp_path, capsys):
    folder = trainer(tmp_path / "run", 50, 100)
    (trouble,) = examined(capsys, folder)["resume"]
    assert trouble["severity"] == "error"
    assert "no optimizer.pt" in trouble["evidence"][0]


def test_the_resume_flag_was_never_passed_says_the_manifest(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    recorded(folder, steps=160, every=80, resume=False)
    (trouble,) = examined(capsys, folder)["resume"]
    assert "began anew at its start" in trouble["said"]
    assert "attempt 2, which never asked for a checkpoint" in trouble["evidence"][0]


def test_a_run_that_resumed_rightly_is_not_said_to_have_begun_anew(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    recorded(folder, steps=300)
    assert "resume" not in examined(capsys, folder)


def test_the_resume_flag_was_never_passed_says_the_trainer_s_state(tmp_path, capsys):
    folder = trainer(tmp_path / "run", 100, 150)
    trainer(folder, 50, first=2.5)  # of a second start
    troubles = examined(capsys, folder)["resume"]
    anew = [trouble for trouble in troubles if "began anew" in trouble["said"]]
    assert "checkpoint-50 and checkpoint-100 come from two starts" in anew[0]["evidence"][0]
    shutil.rmtree(folder)
    trainer(folder, 50, 100, 150)
    troubles = examined(capsys, folder)["resume"]
    assert not [trouble for trouble in troubles if "began anew" in trouble["said"]]


def test_other_settings_and_another_number_of_processes(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    record["settings"]["learning_rate"] = 1.0
    record["attempts"][-1]["world_size"] = 4
    del record["checksum"]  # else it is damaged, and its copy is used
    (folder / "run.json").write_text(json.dumps(record, indent=1))
    (trouble,) = examined(capsys, folder)["resume"]
    assert "not bit for bit" in trouble["said"]
    assert any("1 process, 4 go on" in text for text in trouble["evidence"])
    assert "the settings are others" in trouble["evidence"]


def test_a_damaged_progress_file(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    keeper = Keeper(folder, 400)
    keeper.update(150)
    keeper.finish()
    assert "progress" not in examined(capsys, folder)
    (folder / PROGRESS_FILE).write_bytes(b"")
    (trouble,) = examined(capsys, folder)["progress"]
    assert "the copy before it is used" in trouble["said"]
    assert (folder / PROGRESS_FILE).read_bytes() == b""


def test_a_run_that_says_running_and_is_gone(tmp_path, capsys):
    folder = tmp_path / "run"
    code = (
        "import os, rlvitals; from rlvitals.checkpoints.progress import Keeper\n"
        f"run = rlvitals.start(folder={str(folder)!r}, durable=True)\n"
        "run.log(1, {'outcome/return': 1.0}); Keeper(run.folder, 400).update(1)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (trouble,) = examined(capsys, folder)["progress"]
    assert trouble["said"] == "it says running, yet its process is gone"
    assert "killed or lost" in trouble["evidence"][0]


def test_a_progress_file_that_nobody_writes_to_any_more(tmp_path, capsys):
    folder = tmp_path / "run"
    Keeper(folder, 400).update(3)
    progress = json.loads((folder / PROGRESS_FILE).read_text())
    progress["last_update"] = "2020-01-01T00:00:00+00:00"
    (folder / PROGRESS_FILE).write_text(json.dumps(progress))
    (trouble,) = examined(capsys, folder)["progress"]
    assert "its last sign is" in trouble["said"]


TWO = """
import sys, rlvitals
run = rlvitals.start(folder=sys.argv[1], durable=True)
for step in range(20):
    run.log(step, {"outcome/return": float(step)})
print("up", flush=True)
sys.stdin.read()
"""


def test_two_processes_on_one_folder(tmp_path, capsys):
    folder = tmp_path / "run"
    argv = [sys.executable, "-c", TWO, str(folder)]
    processes = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()
    (trouble,) = examined(capsys, folder)["processes"]
    assert len(trouble["evidence"]) == 2
    assert all(str(process.pid) in " ".join(trouble["evidence"]) for process in processes)
    for process in processes:
        process.communicate()
    assert "processes" not in examined(capsys, folder)


def test_two_processes_that_write_event_files(tmp_path, capsys):
    host, own = socket.gethostname(), os.getpid()
    for i, pid in enumerate((own, os.getppid())):
        (tmp_path / f"events.out.tfevents.170000000{i}.{host}.{pid}.{i}").write_bytes(b"")
    assert len(examined(capsys, tmp_path)["processes"][0]["evidence"]) == 2
    for file in tmp_path.glob("events*"):
        os.utime(file, (time.time() - 3600,) * 2)
    assert "processes" not in examined(capsys, tmp_path)


@dataclass
class Disk:
    """What a file system says of itself."""

    f_bavail: int
    f_frsize: int
    f_blocks: int
    f_files: int
    f_favail: int


@pytest.mark.parametrize(
    ("disk", "said"),
    [
        (Disk(0, 4096, 10**9, 100, 50), "the next checkpoint does not fit"),
        (Disk(10**4, 4096, 10**9, 100, 50), "the disk is nearly full: 0.04 GB free"),
        (Disk(10**8, 4096, 10**9, 100, 0), "the disk takes no more files"),
        (Disk(10**8, 4096, 10**9, 0, 0), None),  # a file system that counts no files
    ],
)
def test_a_disk_that_is_full(tmp_path, monkeypatch, disk, said):
    folder = recorded(tmp_path / "run")
    monkeypatch.setattr(machine.os, "statvfs", lambda _: disk)
    messages = [
        trouble.said for trouble in machine.check_disk(gather_context(folder, (), "", time.time()))
    ]
    assert (messages == []) if said is None else any(said in text for text in messages)


AS_NOBODY = (
    # Once as root first: the interpreter's own modules may not be readable afterwards.
    "import os, sys; from rlvitals.cli import main; main(['doctor', sys.argv[1], '--json']);"
    "os.geteuid() or (os.setgid(65534), os.setuid(65534)); print('NOW');"
    "sys.exit(main(['doctor', sys.argv[1], '--json']))"
)


def test_a_folder_that_may_not_be_written(tmp_path):
    """In a process of its own, which gives up root's right to write everywhere."""
    folder = recorded(tmp_path / "run")
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        for above in (tmp_path, *tmp_path.parents):
            if above == tmp_path or above.name.startswith(("pytest-", "popen-")):
                above.chmod(0o755)
    folder.chmod(0o500)
    process = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    folder.chmod(0o700)
    assert process.returncode == 1, process.stderr
    document = json.loads(process.stdout.partition("NOW")[2])
    (trouble,) = [trouble for trouble in document["troubles"] if trouble["check"] == "rights"]
    assert "may not be written" in trouble["evidence"][0]


def test_rights_that_are_missing_are_told_whoever_asks(tmp_path, monkeypatch):
    folder = recorded(tmp_path / "run")
    monkeypatch.setattr(machine.os, "access", lambda _, mode: not mode & os.W_OK)
    (trouble,) = machine.check_rights(gather_context(folder, (), "", time.time()))
    assert "may not be written" in trouble.evidence[0]


def test_offline_runs_that_were_never_sent(tmp_path, capsys, here):
    folder = recorded(tmp_path / "run")
    run_folder = here / "wandb" / "offline-run-20251227_123456-abc"
    run_folder.mkdir(parents=True)
    (run_folder / "run-abc.wandb").write_bytes(b"")
    (found,) = examined(capsys, folder)["offline"]
    assert found["severity"] == "note"
    assert f"wandb sync {run_folder}" in found["try"]
    (run_folder / "run-abc.wandb.synced").write_bytes(b"")
    assert "offline" not in examined(capsys, folder)


def test_one_of_its_checkpoints_stands_for_the_run(tmp_path, capsys):
    folder = recorded(tmp_path / "run")
    assert examined(capsys, folder / "checkpoint-100") == {}


def test_a_hostile_folder_breaks_nothing(tmp_path, capsys):
    folder = tmp_path / "run"
    trainer(folder, 50)
    (folder / "checkpoint-60").write_text("a file")
    (folder / "checkpoint-70").mkdir()
    (folder / "checkpoint-70" / "manifest.json").write_text("[" * 10_000)
    (folder / "checkpoint-80").mkdir()
    (folder / "checkpoint-80" / "manifest.json").write_text('{"format": 99}')
    (folder / "checkpoint-90").mkdir()
    (folder / "checkpoint-90" / "trainer_state.json").write_text('{"log_history": {"0": 1}}')
    (folder / PROGRESS_FILE).mkdir()
    (folder / "loop").symlink_to(folder)
    (folder / "run.json").write_text("{")
    examined(capsys, folder)
    main(["checkpoints", str(folder), "--verify"])
    main(["status", str(folder)])


def test_every_check_is_told_apart_and_asked():
    names = [check.name for check in doctor.CHECKS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Z].*\?", check.asks) for check in doctor.CHECKS)
    assert examine(gather_context(Path("nowhere-at-all"), (), "", 0.0)).fine


def test_a_sink_that_fails_is_trouble_with_the_logs(tmp_path):
    folder = tmp_path / "run"
    run = rlvitals.start(folder, sinks=["csv"])
    run.log(0, {"loss": 1.0})
    deadline = time.monotonic() + HANG_SECONDS
    while not (folder / "metrics").exists() and time.monotonic() < deadline:
        time.sleep(0.01)  # the sink's own thread opens it
    (folder / "metrics").rename(tmp_path / "moved")  # at once: the thread may be making a file
    (folder / "metrics").write_text("a file where the sink's folder was")
    for step in range(1, 4):
        run.log(step, {"loss": 1.0, f"other_{step}": 2.0})
    run.finish()
    examination = examine(
        gather_context(folder, (rlvitals.diagnose(folder).trace,), "", time.time())
    )
    assert "logs" not in [check.name for check in examination.fine]
    (trouble,) = [trouble for check, trouble in examination.troubles if check.name == "logs"]
    assert trouble.said == "the sink csv does not get all that is logged"
    assert any(
        "NotADirectoryError" in line or "FileExistsError" in line for line in trouble.evidence
    )


def test_logs_are_fine_beside_sinks_that_work(tmp_path):
    folder = tmp_path / "run"
    run = rlvitals.start(folder, sinks=["csv"])
    run.log(0, {"loss": 1.0})
    run.finish()
    examination = examine(
        gather_context(folder, (rlvitals.diagnose(folder).trace,), "", time.time())
    )
    assert "logs" in [check.name for check in examination.fine]
