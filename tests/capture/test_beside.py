"""Programs recorded beside the real libraries: what is recorded, and that nothing else changes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from effort import sampled
from recorded_runs import command, environment, plain, run, series

import rlvitals

# tensorboardX does without torch, whose import is most of such a program's time.
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"
# CleanRL's shape, with what a training computes printed at its end.
CLEANRL = """
import hashlib, random
import numpy as np
import wandb
from tensorboardX import SummaryWriter

settings = {"seed": 1, "learning_rate": 2.5e-4, "total_timesteps": 4000}
wandb.init(project="cleanrl", name="ppo", sync_tensorboard=True, config=settings)
writer = SummaryWriter("runs/ppo")
writer.add_text("hyperparameters", "|param|value|\\n|-|-|\\n|gamma|0.99|")
random.seed(1), np.random.seed(1)
total = hashlib.sha256()
for i in range(40):
    step, value = 100 * (i + 1), 20 + 4 * i + np.random.rand() + random.random()
    total.update(str(value).encode())
    writer.add_scalar("charts/episodic_return", value, step)
    writer.add_scalar("losses/approx_kl", np.float32(0.01), step)
    if i % 10 == 0:
        wandb.log({"eval/score": value})
wandb.config.update({"late": 2})
writer.close()
print(total.hexdigest(), "wandb.Run" if type(wandb.run).__name__ == "Run" else "?")
"""


def test_a_cleanrl_script_is_recorded_unchanged(tmp_path):
    folder, script = tmp_path / "alone", WITHOUT_TORCH + CLEANRL
    folder.mkdir()
    with ThreadPoolExecutor(1) as executor:  # W&B waits for 10 s at the end of each
        pending = executor.submit(plain, folder, script)
        done = run(tmp_path, script)
        alone = pending.result()
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (0, alone.stdout)
    assert "LEARNING rec: " in done.stderr.splitlines()[-1]
    recorded = series(tmp_path / "rec")
    assert [step for step, _ in recorded["charts/episodic_return"]] == [*range(100, 4001, 100)]
    assert [step for step, _ in recorded["eval/score"]] == [100, 1100, 2100, 3100]
    settings = rlvitals.trace(tmp_path / "rec").settings
    expected = {"seed": 1, "learning_rate": 2.5e-4, "gamma": 0.99, "late": 2}
    assert expected.items() <= settings.items()
    for each in (folder, tmp_path):
        assert len(list(each.glob("runs/ppo/events.out*"))) == 1


SB3 = """
import sys
from stable_baselines3 import DQN
from stable_baselines3.common.logger import configure

model = DQN("MlpPolicy", "CartPole-v1", gamma=0.0, learning_starts=100, seed=1, device="cpu")
model.set_logger(configure("logs", ["csv"]))
for _ in range(2):
    model.learn(400, log_interval=1, reset_num_timesteps=False)
"""


@pytest.mark.soak
def test_the_hyperparameters_of_stable_baselines3_are_recorded(tmp_path):
    done = run(tmp_path, SB3)
    assert done.returncode == 0, done.stderr
    trace = rlvitals.trace(tmp_path / "rec")
    expected = {"gamma": 0.0, "learning_rate": 1e-4, "env_id": "CartPole-v1"}
    assert expected.items() <= trace.settings.items()
    assert trace.last_step >= 700
    assert "outcome/return" in trace.series
    rules = {rule.name for rule, _ in rlvitals.diagnose(tmp_path / "rec").findings}
    assert "setting-out-of-range" in rules


TRACKERS = {
    "trackio": """
import trackio
trackio.init(project="p", name="n", config={"lr": 0.5})
for i in range(12):
    trackio.log({"reward": i / 12})
trackio.finish()
""",
    "swanlab": """
import swanlab
swanlab.init(project="p", name="n", config={"lr": 0.5}, mode="offline", log_dir="logs")
for i in range(12):
    swanlab.log({"reward": i / 12}, step=i)
swanlab.finish()
""",
    "mlflow": """
import mlflow
mlflow.set_tracking_uri("sqlite:///mlruns.db")
with mlflow.start_run():
    mlflow.log_params({"lr": 0.5})
    for i in range(6):
        mlflow.log_metric("reward", i / 12, step=i)
    client = mlflow.MlflowClient()
    for i in range(6, 12):
        mlflow.log_metrics({"reward": i / 12}, step=i)
""",
    "wandb": """
import wandb
with wandb.init(mode="disabled", config={"lr": 0.5}) as run:
    for i in range(12):
        run.log({"reward": i / 12})
""",
    "tensorboard": """
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter("tb") as writer:
    writer.add_hparams({"lr": 0.5}, {})
    for i in range(12):
        writer.add_scalar("reward", i / 12, i)
""",
}


@pytest.mark.parametrize("tracker", sampled(list(TRACKERS), 6))
def test_each_library_s_calls_are_recorded(tracker, tmp_path):
    package = {"tensorboard": "torch.utils.tensorboard"}.get(tracker, tracker)
    pytest.importorskip(package)
    if tracker == "mlflow":
        pytest.importorskip("sqlalchemy")
    done = run(tmp_path, TRACKERS[tracker], TRACKIO_DIR=str(tmp_path / "trackio"))
    assert done.returncode == 0, done.stderr
    assert "is not recorded" not in done.stderr
    assert done.stderr.rstrip().endswith("; more: rlvitals diagnose rec")
    assert series(tmp_path / "rec")["reward"] == [(i, i / 12) for i in range(12)]
    assert rlvitals.read(tmp_path / "rec")[0].settings["lr"] == 0.5


SEVERAL = """
from tensorboardX import SummaryWriter
import trackio
trackio.init(project="p", name="n")
train, test = SummaryWriter("tb/train"), SummaryWriter("tb/test")
for i in range(3):
    trackio.log({"loss": i, "only": 1}, step=i)
    train.add_scalar("loss", i, i)
    train.add_scalar("acc", i, i)
    test.add_scalar("acc", -i, i)
for writer in (train, test):
    writer.close()
trackio.finish()
again = SummaryWriter("tb/second")
again.add_scalar("loss", 7.0, 0)
again.close()
"""


def test_numbers_logged_to_two_trackers_are_recorded_once(tmp_path):
    done = run(tmp_path, WITHOUT_TORCH + SEVERAL, TRACKIO_DIR=str(tmp_path / "trackio"))
    assert done.returncode == 0, done.stderr
    recorded = series(tmp_path / "rec")
    assert recorded["loss"] == [(0, 0), (1, 1), (2, 2)]
    assert recorded["acc"] == [(0, 0), (1, 1), (2, 2)]
    assert recorded["test/acc"] == [(0, 0), (1, -1), (2, -2)]
    assert series(tmp_path / "rec-2")["loss"] == [(0, 7.0)]
    assert ["rec-2" in line for line in done.stderr.splitlines()[-2:]] == [False, True]


@pytest.mark.soak
def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path):
    (tmp_path / "rec").write_text("a file")
    done = run(tmp_path, WITHOUT_TORCH + SEVERAL, TRACKIO_DIR=str(tmp_path / "trackio"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rec").read_text() == "a file"


RANKS = """
import os, subprocess, sys
if "RANK" not in os.environ:
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
    ranks = [
        subprocess.Popen([sys.executable, __file__], env={**os.environ, **shared, "RANK": str(i)})
        for i in range(2)
    ]
    sys.exit(max(rank.wait() for rank in ranks))
from tensorboardX import SummaryWriter
writer = SummaryWriter("tb" + os.environ["RANK"])
for i in range(5):
    writer.add_scalar("reward", i + 10 * int(os.environ["RANK"]), i)
"""


def test_ranks_of_one_launch_share_a_folder(tmp_path):
    done = run(tmp_path, WITHOUT_TORCH + RANKS)
    assert done.returncode == 0, done.stderr
    recorded = series(tmp_path / "rec")
    assert recorded["reward"] == [(i, i) for i in range(5)]
    assert recorded["rank/1/reward"] == [(i, i + 10) for i in range(5)]
    assert not (tmp_path / "rec-2").exists()


GLOO = """
import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter
dist.init_process_group("gloo")
rank = dist.get_rank()
writer = SummaryWriter(f"tb{rank}")
for i in range(5):
    writer.add_scalar("reward", i + 10 * rank, i)
writer.close()
dist.destroy_process_group()
"""


@pytest.mark.soak
def test_ranks_that_torchrun_starts_share_a_folder(tmp_path):
    (tmp_path / "train.py").write_text(GLOO)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    done = subprocess.run(
        command(*torchrun, "train.py"),
        cwd=tmp_path, env=environment(), check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    recorded = series(tmp_path / "rec")
    assert recorded["reward"] == [(i, i) for i in range(5)]
    assert recorded["rank/1/reward"] == [(i, i + 10) for i in range(5)]


@pytest.mark.soak
def test_a_program_that_accelerate_launches_is_recorded(tmp_path):
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(ONE_WRITER)
    launch = (sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1")
    done = subprocess.run(
        command(*launch, "train.py"),
        cwd=tmp_path, env=environment(), check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert series(tmp_path / "rec")["reward"] == [(i, i) for i in range(5)]


ONE_WRITER = """
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter("tb") as writer:
    for i in range(5):
        writer.add_scalar("reward", i, i)
"""

NOTEBOOK = """
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic("load_ext", "rlvitals")
shell.run_cell('''
from tensorboardX import SummaryWriter
writer = SummaryWriter("tb")
for i in range(3):
    writer.add_scalar("reward", i, i)
writer.close()
''')
"""


def test_a_notebook_records_with_one_line(tmp_path):
    pytest.importorskip("IPython")
    done = plain(tmp_path, WITHOUT_TORCH + NOTEBOOK)
    assert "what this notebook logs is recorded in" in done.stdout, done.stderr
    (folder,) = tmp_path.glob("runs/notebook-*")
    assert series(folder)["reward"] == [(0, 0), (1, 1), (2, 2)]
