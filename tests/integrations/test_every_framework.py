"""Each line of the page's table of frameworks: what executes it, and here some of them."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import rlvitals

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "record-anything.md"
ROWS = re.findall(
    r"^\| ([^|`]+|[^|]+?) \| `(.+?)`(?: [^|]*)? \| (.+?) \|$", PAGE.read_text(), re.MULTILINE
)
LINES = {name: (line, tried) for name, line, tried in ROWS}
STEPS = 12

# A program of the user's, by its framework: it logs a return at STEPS steps under KEYS.
PROGRAMS = {
    "CleanRL, scripts with `SummaryWriter` or `wandb`": """
from tensorboardX import SummaryWriter
with SummaryWriter("tb") as writer:
    for step in range(12):
        writer.add_scalar("charts/episodic_return", step / 12, step)
""",
    "skrl": """
from collections import defaultdict, deque
from skrl.agents.torch.ppo import PPO
from skrl.utils.tensorboard import SummaryWriter
agent = object.__new__(PPO)
agent._track_rewards, agent._track_timesteps = deque(), deque()
agent.tracking_data, agent.writer = defaultdict(list), SummaryWriter(log_dir="tb")
for step in range(12):
    agent.track_data("Reward / Total reward (mean)", step / 12)
    agent.write_tracking_data(timestep=step, timesteps=12)
agent.writer.close()
""",
    "rsl_rl, Isaac Lab": """
import torch
from rsl_rl.utils.logger import Logger
train_cfg = {"algorithm": {"gamma": 0.9}, "num_steps_per_env": 8, "seed": 3}
{line}
logger = Logger("run", train_cfg, {"dt": 0.1}, 2, False, 1, 0, "cpu")
logger.git_status_repos = []
logger.init_logging_writer()
for step in range(12):
    logger.process_env_step(torch.full((2,), step / 12), torch.ones(2), {})
    logger.rewbuffer.clear(), logger.lenbuffer.clear()
    logger.rewbuffer.append(step / 12), logger.lenbuffer.append(1)
    logger.log(step, 0, 12, 0.5, 0.5, {"value": 0.1}, 1e-3, torch.ones(3), None)
logger.stop_logging_writer()
""",
    "Tianshou": """
import rlvitals
from tianshou.utils import TensorboardLogger
{line}
logger.test_interval = 1
for step in range(12):
    logger.log_test_data({"returns_stat": {"mean": step / 12}}, step)
logger.finalize()
""",
}
KEYS = {
    "CleanRL, scripts with `SummaryWriter` or `wandb`": "charts/episodic_return",
    "skrl": "Reward / Total reward (mean)",
    "rsl_rl, Isaac Lab": "Train/mean_reward",
    "Tianshou": "test/returns_stat/mean",
    "verl": "critic/rewards/mean",
    "Tinker cookbook": "env/all/reward/total",
}
# What a released package needs to be imported, without what only its training needs.
PACKAGES = {
    "skrl": ("skrl==2.1.1",),
    "rsl_rl, Isaac Lab": (
        "rsl-rl-lib==5.5.1", "tensordict==0.15.3", "pyvers", "GitPython", "gitdb", "smmap",
    ),
    "Tianshou": (
        "tianshou==2.0.1", "sensai-utils", "deepdiff<8", "ordered-set", "overrides", "pettingzoo",
        "h5py",
    ),
}  # fmt: skip


def environment(folder):
    source = str(Path(rlvitals.__file__).parents[1])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB_", "PYTEST"))}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(folder / "packages"), source))}


def execute(line, folder):
    """Execute a command of the page as it stands, with this Python."""
    prefix = ("python", "-m") if line.startswith("rlvitals") else ()
    words = [sys.executable if w == "python" else w for w in (*prefix, *shlex.split(line))]
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def install(folder, *packages):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", folder / "packages", *packages], check=True)


def check(folder, name):
    (run,) = {path.parent for path in folder.rglob("run.json")}
    log = rlvitals.read(run)[0]
    series = log.series[KEYS[name]]
    assert list(series.steps) == list(range(STEPS))
    assert list(series.values) == pytest.approx([step / STEPS for step in range(STEPS)])


def record(name, folder):
    """Execute the line with the program that it stands in, or before."""
    line, _ = LINES[name]
    is_command = line.startswith("rlvitals run")
    program = PROGRAMS[name].replace("{line}", line)
    file = line.split()[-1] if is_command else "train.py"
    (folder / file).write_text(program)
    execute(line if is_command else f"python {file}", folder)
    check(folder, name)


def test_every_line_is_executed_somewhere(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "scripts")
    drives = importlib.import_module("framework_drives")
    names = {"nemo-rl": "RL", "tinker cookbook": "tinker-cookbook"}
    known = {name.lower() for name in drives.FRAMEWORKS}
    assert len(ROWS) == PAGE.read_text().split("## Every framework")[1].count("\n| ") - 2
    for name, (line, tried) in LINES.items():
        if link := re.match(r"\[its page\]\((.+?)\)", tried):
            shown = "\n".join(
                re.findall(r"```python\n(.*?)```", (PAGE.parent / link[1]).read_text(), re.DOTALL)
            )
            assert line in shown, f"{name}: {link[1]} does not show {line}"
        elif tried == "at a commit":
            key = names.get(name.lower(), name).lower()
            assert key in known, f"{name}: scripts/framework_drives.py has no drive"
            assert "rlvitals" not in line.partition("--")[2] or f"{key}:rlvitals" in known
        else:
            assert name in KEYS, f"{name}: nothing executes {line}"


@pytest.mark.soak
def test_a_script_with_a_writer(tmp_path):
    record("CleanRL, scripts with `SummaryWriter` or `wandb`", tmp_path)


def test_slime_s_samples_are_rollouts(tmp_path, monkeypatch):
    """Its package is not on the index: these have the fields of its `Sample`."""
    from rlvitals.integrations import slime_rollouts as slime
    from rlvitals.rollouts import rollout_index

    monkeypatch.setattr(slime, "_runs", [])
    args = SimpleNamespace(save=str(tmp_path), reward_key="score", rollout_batch_size=2)
    samples = [
        [
            SimpleNamespace(
                prompt=f"{group}+1", response="2", reward={"score": n / 2, "format": 1.0},
                group_index=group, label="2", status=SimpleNamespace(value="truncated"),
                response_length=7, effective_response_length=5,
            )
            for n in range(2)
        ]
        for group in range(2)
    ]  # fmt: skip
    for step in range(3):
        assert slime.log_rollout(step, args, samples, {"rollout/extra": 2.0}, 1.5) is False
    fields = {"rewards": [1.0, 0.0], "samples": samples[0]}
    assert slime.log_eval_rollout(2, args, {"sums": fields}) is False
    slime._runs[0].finish()
    folder = tmp_path / "rlvitals"
    numbers = rlvitals.read(folder)[0].series
    assert list(numbers["rollout/raw_reward"].values) == [0.25] * 3
    assert list(numbers["rollout/response_len/mean"].values) == [5.0] * 3
    assert list(numbers["eval/sums"].values) == [0.5]
    rollouts = rollout_index.of_run(folder)
    assert len(rollouts) == 3 * 4 + 2


@pytest.mark.soak
@pytest.mark.parametrize("name", PACKAGES)
def test_a_released_package(name, tmp_path):
    """The packages come from pip's own index."""
    install(tmp_path, *PACKAGES[name])
    assert PACKAGES[name][0].rpartition("==")[2] in LINES[name][1]
    record(name, tmp_path)


# Their trainers need GPUs: what reads the arguments here is ours, the logger's file is theirs.
TRAINERS = {
    "verl": (
        ("verl==0.9.1",),
        "packages/verl/trainer/main_ppo.py",
        """
import json, sys
from verl.utils.tracking import Tracking
loggers = json.loads(sys.argv[1].removeprefix("trainer.logger="))
tracking = Tracking("p", "e", loggers, config={"trainer": {"lr": 1e-6}})
for step in range(12):
    tracking.log({"critic/rewards/mean": step / 12}, step)
tracking.finish()
""",
    ),
    "Tinker cookbook": (
        ("tinker-cookbook==0.6.1", "chz"),
        "train_tinker.py",
        """
import os, sys
from tinker_cookbook.utils import ml_log
os.environ["WANDB_API_KEY"] = "k" * 40
project = sys.argv[1].removeprefix("wandb_project=")
logger = ml_log.setup_logging("log", wandb_project=project, wandb_name="n")
for step in range(12):
    logger.log_metrics({"env/all/reward/total": step / 12}, step)
logger.close()
""",
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", TRAINERS)
def test_a_released_logging_file(name, tmp_path):
    packages, program, code = TRAINERS[name]
    install(tmp_path, *packages)
    folder = packages[0].partition("==")[0].replace("-", "_")
    for file in (tmp_path / "packages" / folder).glob("**/__init__.py"):
        if file.parent.name in {folder, "utils", "trainer"}:  # they import what trains
            file.write_text("")
    (tmp_path / program).write_text(code)
    # Beside W&B's own package, which wants an account, the look-alike stands in its place.
    execute(LINES[name][0].replace("rlvitals run", "rlvitals run --instead"), tmp_path)
    check(tmp_path, name)
