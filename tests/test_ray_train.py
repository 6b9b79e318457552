"""Runs that are recorded in Ray's processes: workers of a trainer are ranks, actors are runs."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.storage.index import Index

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlvitals[soak]'")
pytest.importorskip("ray.train", reason="Ray Train is not installed")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("default")]  # Ray's own warnings


@pytest.fixture(scope="module")
def on_ray():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        # As where Slurm starts Ray on two nodes: its workers inherit these.
        patch.setenv("SLURM_PROCID", "1")
        patch.setenv("SLURM_NTASKS", "2")
        ray.shutdown()
        ray.init(num_cpus=3, include_dashboard=False, logging_level="error", log_to_driver=False)
        yield
        ray.shutdown()


def wait_until(is_met):
    deadline = time.monotonic() + HANG_SECONDS
    while not is_met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def train(config):
    """Log as a rank; the first start dies in rank 1, and the trainer starts all again."""
    import ray.train

    import rlvitals

    rank = ray.train.get_context().get_world_rank()
    with rlvitals.start(config["folder"]) as run:
        for step in range(60):
            run.log(step, {"train/loss": 1.0 / (step + 1)})
        marker = Path(config["folder"]).with_suffix(".died")
        if rank == 1 and config["dies"] and not marker.exists():
            other = Path(config["folder"], "blocks", "1-0.rlv")
            wait_until(other.exists)  # it is killed as soon as this one dies
            marker.touch()
            raise RuntimeError("a worker fails")


def fit(trainer, folder, **loop):
    from ray.train import FailureConfig, RunConfig, ScalingConfig

    config = RunConfig(
        name="pretraining",
        storage_path=str(folder / "ray"),
        failure_config=FailureConfig(max_failures=1),
    )
    loop = {"folder": str(folder / "run"), "dies": False, **loop}
    trainer(
        train, train_loop_config=loop, scaling_config=ScalingConfig(num_workers=2),
        run_config=config,
    ).fit()  # fmt: skip
    return json.loads((folder / "run" / "run.json").read_text())


def blocks(folder):
    return sorted(path.name for path in (folder / "run" / "blocks").iterdir())


@pytest.mark.usefixtures("on_ray")
def test_workers_of_a_torch_trainer_are_the_ranks_of_one_run(tmp_path):
    from ray.train.torch import TorchTrainer

    record = fit(TorchTrainer, tmp_path)
    assert [attempt["world_size"] for attempt in record["attempts"]] == [2]
    assert blocks(tmp_path) == ["1-0.rlv", "1-1.rlv"]
    assert record["group"] == "pretraining"
    (run,) = rlvitals.read(tmp_path / "run")
    assert len(run.series["train/loss"].steps) == 60
    assert len(run.series["rank/1/train/loss"].steps) == 60


@pytest.mark.usefixtures("on_ray")
def test_a_trainer_that_sets_no_variables_and_a_restart_of_its_workers(tmp_path):
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    record = fit(DataParallelTrainer, tmp_path, dies=True)
    assert [attempt["world_size"] for attempt in record["attempts"]] == [2, 2]
    assert len({attempt["launch"] for attempt in record["attempts"]}) == 2
    assert blocks(tmp_path) == ["1-0.rlv", "1-1.rlv", "2-0.rlv", "2-1.rlv"]


@pytest.mark.usefixtures("on_ray")
def test_actors_record_runs_of_their_own_and_one_is_killed(tmp_path):
    @ray.remote
    class Learner:
        def train(self, folder):
            import rlvitals

            self.run = rlvitals.start(folder)
            for step in range(30):
                self.run.log(step, {"return": float(step)})
            self.run.flush()
            return os.getpid()

        def finish(self):
            self.run.finish()

    learners = [Learner.remote() for _ in range(3)]
    folders = [tmp_path / "runs" / f"actor-{number}" for number in range(3)]
    pids = ray.get([each.train.remote(str(path)) for each, path in zip(learners, folders,
                                                                       strict=True)])  # fmt: skip
    os.kill(pids[1], signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pids[1]))
    ray.get([learners[number].finish.remote() for number in (0, 2)])
    with Index(tmp_path / "runs") as index:
        index.refresh()
        listed = index.search(sort="name")
    assert [(run.path, run.status, run.step) for run in listed] == [
        ("actor-0", "finished", 29), ("actor-1", "stopped", 29), ("actor-2", "finished", 29),
    ]  # fmt: skip
    job = ray.get_runtime_context().get_job_id()
    assert {run.job for run in listed} == {f"Ray job {job}"}
    assert {run.attempts for run in listed} == {1}
