"""Our own PPO, through its command; the truth is the true return of its training episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

if TYPE_CHECKING:
    from worlds.run import Run

FLAGS = {
    "learning_rate": "--learning-rate", "gamma": "--gamma", "gae_lambda": "--gae-lambda",
    "clip_range": "--clip-ratio", "n_epochs": "--epochs", "n_steps": "--rollout-length",
    "batch_size": "--minibatch-size", "ent_coef": "--entropy-coef",
    "max_grad_norm": "--max-grad-norm", "vf_coef": "--value-coef",
}  # fmt: skip


def train(run: Run) -> None:
    from rlvitals.cli import main

    gym.register("World-v0", entry_point=lambda **_: run.env())
    words: list[Any] = ["train", "ppo", "--env", "World-v0", "--num-envs", run.n_envs,
                        "--total-steps", run.steps, "--seed", run.seed, "--threads", 1,
                        "--output-dir", run.folder, "--processes", "false"]  # fmt: skip
    for key, flag in FLAGS.items():
        if key in run.settings:
            words += [flag, run.settings[key]]
    code = main([str(word) for word in words])
    if code not in {0, None}:
        raise RuntimeError(f"exit code {code}")
