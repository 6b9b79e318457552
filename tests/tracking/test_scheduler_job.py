"""A job of Slurm or Kubernetes: what is recorded of it, and that a requeued one resumes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rlvitals.cli import main
from rlvitals.storage.run_query import job_text
from rlvitals.tracking import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRAIN = EXAMPLES / "slurm" / "train.py"
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


STUBS = {
    # It ends as train.py does at SIGTERM: it saves, then exits with code 143.
    "srun": "trap 'sleep 0.2; echo saved; exit 143' TERM; echo begun; while :; do sleep 0.1; done",
    "scontrol": 'echo "$@"',
}


@pytest.mark.parametrize("stopped", [True, False], ids=["time limit", "done"])
def test_the_script_of_slurm_queues_a_stopped_task_again_once_it_has_saved(stopped, tmp_path):
    for name, text in STUBS.items():
        body = text if stopped or name != "srun" else "echo done"
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    variables = {**os.environ, **SLURM, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    job = subprocess.Popen(
        ["bash", EXAMPLES / "slurm" / "train.sbatch"], env=variables, cwd=tmp_path,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = [job.stdout.readline()]
    if stopped:
        time.sleep(0.3)  # the trap is set after srun has begun
        job.send_signal(signal.SIGTERM)
    printed, _ = job.communicate(timeout=60)
    lines += printed.splitlines(keepends=True)
    assert job.returncode == (143 if stopped else 0)
    expected = ["begun", "saved", "requeue 4240_2"] if stopped else ["done"]
    assert [line.strip() for line in lines] == expected


def test_the_job_of_kubernetes_gives_the_container_what_is_read():
    job = yaml.safe_load((EXAMPLES / "kubernetes" / "job.yaml").read_text())
    assert job["spec"]["completionMode"] == "Indexed"
    template = job["spec"]["template"]["spec"]
    assert template["restartPolicy"] == "Never"  # a failed pod is replaced, and resumes
    (container,) = template["containers"]
    pod = {entry["name"]: "given" for entry in container["env"]}
    pod |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2"}
    assert environment.job(pod) == {
        "scheduler": "Kubernetes", "id": "given", "array_index": "2", "node": "given",
    }  # fmt: skip
    assert "train.py /runs/train-$JOB_COMPLETION_INDEX" in container["command"][-1]
    assert container["volumeMounts"][0]["mountPath"] == "/runs"
