"""The runs that the README and the guides name, in a folder where their commands are pasted."""

import json
import shutil
from pathlib import Path

import numpy as np
from test_several_sources import events, tracker

import rlvitals

ROWS = 60
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HEAD = "time/total_timesteps,time/time_elapsed,rollout/ep_rew_mean,train/approx_kl,my/score\n"
# `rlvitals run` records what these programs log or print.
PROGRAM = """
import sys
from tensorboardX import SummaryWriter
with SummaryWriter("tb") as writer:
    for step in range(12):
        writer.add_scalar("charts/episodic_return", step / 12, step)
        print(f"step={step} reward={step / 12}")
"""


def table(folder, level, seed=0):
    """Write a CSV of Stable-Baselines3 with a config."""
    rng = np.random.default_rng([seed, level])
    values = np.minimum(np.linspace(20, 2 * level, ROWS), level) + rng.normal(0, 1, ROWS)
    rows = [f"{(i + 1) * 2048},{i + 1},{v:.3f},0.01,{v}\n" for i, v in enumerate(values)]
    folder.mkdir(parents=True)
    (folder / "progress.csv").write_text(HEAD + "".join(rows))
    settings = {"seed": seed, "env_id": "CartPole-v1", "learning_rate": level / 1e6}
    (folder / "config.json").write_text(json.dumps(settings))


def record(folder, seed=0):
    """Record a run with checkpoints, a progress file and rollouts at two steps."""
    settings = {"learning_rate": 3e-4, "env_id": "CartPole-v1"}
    with rlvitals.start(folder, settings=settings, seed=seed, tags=["sweep"]) as run:
        checkpoints = rlvitals.Checkpoints(run, every=200)
        for step in range(0, 401, 4):
            row = {"train/loss": 1 / (step + 1), "rollout/ep_rew_mean": step + seed % 3}
            run.log(step, row | {"train/approx_kl": 0.01, "train/value_loss": 9 / (step + 1)})
            if step % 200 == 0:
                with checkpoints.save(step) as place:
                    (place / "weights.txt").write_text(str(step))
            if step in {40, 400}:
                run.log_rollouts(step, [rollout(step, i) for i in range(12)])


def rollout(step, number):
    sums = {"prompt": f"{number // 4} + 1 =", "completion": str(number), "answer": str(number)}
    rewards = {"correct": float(number % 2), "brief": -1.0}
    return {**sums, "reward": step / 400 + number % 2, "rewards": rewards, "task": "sums"}


def tune(folder, rate):
    """Write a trial of Ray Tune."""
    folder.mkdir(parents=True)
    (folder / "params.json").write_text(json.dumps({"lr": rate, "env": "CartPole-v1"}))
    rows = [
        {
            "timesteps_total": 1000 * i, "training_iteration": i, "time_total_s": float(i),
            "episode_reward_mean": 20.0 + i * rate * 1e4, "trial_id": folder.name,
        }
        for i in range(1, ROWS)
    ]  # fmt: skip
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def trainer_state(folder):
    """Write what a Hugging Face trainer leaves."""
    rows = [
        {"step": i, "loss": 3.2 - i / 40, "reward": i / 10, "learning_rate": 1e-5 * (1 - i / 40)}
        for i in range(1, 41)
    ]
    state = {"global_step": 40, "max_steps": 40, "log_history": rows}
    (folder / "checkpoint-40").mkdir(parents=True)
    (folder / "checkpoint-40" / "trainer_state.json").write_text(json.dumps(state))


def make(folder):
    """Make all that the pages name, below a folder."""
    runs = folder / "runs"
    for name in ("my_run", "walk"):
        record(runs / name)
    keeper = rlvitals.lab.Keeper(runs / "my_run", total_steps=400)
    keeper.update(0)
    keeper.chunk(1, status="completed")
    keeper.update(400)
    keeper.finish("completed")
    for position, name in enumerate(("first", "second", "candidate", "nightly", "a0", "a1")):
        table(runs / name, 300 + position)
    for group, level in {"ppo": 400, "sac": 300}.items():
        for seed in range(2):
            table(runs / group / f"s{seed}", level, seed)
    for name in ("sums", "grpo", "psr", "nsr"):
        trainer_state(runs / name)
    events(folder / "tb_logs" / "PPO_1")
    tracker(folder)
    for file in ("wandb", "mlruns"):
        table(folder / file / "run", 200)
    for trial, rate in enumerate((1e-3, 1e-4)):
        tune(folder / "ray_results" / "sweep" / f"PPO_{trial}", rate)
    (folder / "ray_results" / "sweep" / "experiment_state-1.json").write_text("{}")
    for name in ("ppo.py", "train.py"):
        (folder / name).write_text(PROGRAM)
    (folder / "train.log").write_text("".join(f"step={i} reward={i}\n" for i in range(60)))
    shutil.copytree(EXAMPLES, folder / "examples")
