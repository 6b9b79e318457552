"""A job of Slurm or Kubernetes: what is recorded of it, and that a requeued one resumes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from rlvitals.cli import main
from rlvitals.storage.run_query import job_text
from rlvitals.tracking import environment

TRAIN = Path(__file__).resolve().parents[2] / "examples" / "slurm" / "train.py"
SLURM = {
    "SLURM_JOB_ID": "4242", "SLURM_ARRAY_JOB_ID": "4240", "SLURM_ARRAY_TASK_ID": "2",
    "SLURMD_NODENAME": "node7",
}  # fmt: skip


def test_the_job_is_read_from_the_environment():
    assert environment.job({}) == {}
    assert environment.job({**SLURM, "SLURM_RESTART_COUNT": "1"}) == {
        "scheduler": "Slurm", "id": "4240", "array_index": "2", "node": "node7", "restarts": "1",
    }  # fmt: skip
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "train-2-x", "NODE_NAME": "b"}
    assert environment.job({**pod, "JOB_COMPLETION_INDEX": "2", "JOB_NAME": "train"}) == {
        "scheduler": "Kubernetes", "id": "train", "array_index": "2", "node": "b",
    }  # fmt: skip
    assert environment.job(pod)["id"] == "train-2-x"


def test_the_job_of_ray_is_recorded_alone_and_beside_the_scheduler_s(monkeypatch):
    alone = environment.job({"RAY_JOB_ID": "02000000"})
    assert alone == {"scheduler": "Ray", "id": "02000000"}
    assert job_text(alone) == "Ray job 02000000"
    both = environment.job({**SLURM, "RAY_JOB_ID": "02000000"})
    assert job_text(both) == "Slurm job 4240_2 on node7, Ray job 02000000"
    monkeypatch.setenv("RAY_JOB_ID", "02000000")
    assert environment.environment()["RAY_JOB_ID"] == "02000000"


def test_the_job_is_recorded_before_the_facts_that_take_time(tmp_path):
    """A trial may end before git has answered."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nexec sleep 60\n")
    git.chmod(0o755)
    code = "import rlvitals\nwith rlvitals.start('run') as run:\n    run.log(1, {'return': 1.0})\n"
    variables = {**SLURM, "PATH": f"{git.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "RLVITALS_RECORDING_FACTS": "true", **variables},
        check=True,
        timeout=120,
    )
    more = json.loads((tmp_path / "run" / "run.json").read_text())["more"]
    assert more["job"] == {"scheduler": "Slurm", "id": "4240", "array_index": "2", "node": "node7"}
    assert "facts not recorded in time" in (tmp_path / "run" / "events.jsonl").read_text()


def train(folder, **variables):
    return subprocess.Popen(
        [sys.executable, TRAIN, folder],
        env={**os.environ, "STEPS": "400", "RLVITALS_RECORDING_FACTS": "true", **variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_requeued_job_resumes_from_its_newest_checkpoint(tmp_path, capsys):
    complete = train(tmp_path / "complete").communicate(timeout=120)[0]
    run = tmp_path / "run"
    process = train(run, **SLURM)
    deadline = time.monotonic() + 60
    while not list(run.glob("**/checkpoint-*/*.json")):
        assert time.monotonic() < deadline, "no checkpoint was sealed"
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    first = process.communicate(timeout=60)[0]
    assert process.returncode == 143
    step = int(re.search(r"to step (\d+)", first)[1])
    assert 50 <= step < 400
    assert main(["status", str(run)]) == 0
    printed = capsys.readouterr().out
    assert " STOPPED " in printed
    assert "nothing is left" not in printed
    assert "preempted · Slurm job 4240_2 on node7" in printed

    process = train(run, **SLURM, SLURM_RESTART_COUNT="1")
    second = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert f"from step {step}\n" in second
    assert second.splitlines()[-1] == complete.splitlines()[-1]  # as if it had not been stopped
    assert main(["status", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"] == "Slurm job 4240_2 on node7, restart 1"
