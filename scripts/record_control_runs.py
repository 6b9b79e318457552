"""Train small control agents with Stable-Baselines3, healthy and faulty, and record their logs.

    python scripts/record_control_runs.py --list
    python scripts/record_control_runs.py OUT ppo-cartpole-s0 ppo-cartpole-lr-x300-s0
    python scripts/record_control_runs.py OUT --all --jobs 3
    python scripts/record_control_runs.py OUT --summary        # only rewrite OUT/SUMMARY.md

Each run leaves `OUT/<name>/progress.csv`, written by Stable-Baselines3 itself, `rlvitals.toml` with
the settings it was given, and `settings.json`,
written here. The runs are those of `control_runs.py`.

The fault is always *outside* `Monitor`, where a user's own mistake would be: the logged return is
the return that the agent was given. Seeds are fixed; wall-clock columns are the only ones that
differ between two recordings on one machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch
from control_faults import OWN_WORLDS, GradNorm
from control_runs import RUNS, Run
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHMS = {"PPO": sb3.PPO, "A2C": sb3.A2C, "DQN": sb3.DQN, "SAC": sb3.SAC, "TD3": sb3.TD3}

# Attributes of an SB3 model that become columns of settings.json, where the algorithm has them.
# fmt: off
SETTING_NAMES = (
    "learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range",
    "ent_coef", "vf_coef", "max_grad_norm", "target_kl", "normalize_advantage", "use_sde",
    "buffer_size", "learning_starts", "train_freq", "gradient_steps", "target_update_interval",
    "tau", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps", "n_envs",
)
# fmt: on


def make_env(run: Run, number: int, folder: Path) -> gym.Env:
    env = OWN_WORLDS[run.env_id]() if run.env_id in OWN_WORLDS else gym.make(run.env_id)
    env = run.world(env) if run.world else env
    env.action_space.seed(1000 * run.seed + number)
    return Monitor(env, str(folder / str(number)) if number < run.monitors else None)


def settings_of(run: Run, model: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "algorithm": run.algorithm,
        "env_id": run.env_id,
        "seed": run.seed,
        "total_timesteps": run.steps,
        "normalise": run.normalise,
    }
    for name in SETTING_NAMES:
        value = getattr(model, name, None)
        option = run.options.get(name, value)
        value = option(1.0) if callable(option) else value
        value = value(1.0) if callable(value) else getattr(value, "frequency", value)
        if value is not None:
            settings[name] = value
    versions = {"stable_baselines3": sb3.__version__, "gymnasium": gym.__version__}
    made_by = f"scripts/record_control_runs.py {run.name}"
    return {**settings, **versions, "fault": run.fault, "made_by": made_by}


def record(run: Run, out: Path) -> str:
    """Train `run` into `out/<name>`; the answer is how it ended."""
    torch.set_num_threads(1)
    folder = out / run.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = DummyVecEnv([lambda i=i: make_env(run, i, folder) for i in range(run.n_envs)])
    env = VecNormalize(env, gamma=run.options.get("gamma", 0.99)) if run.normalise else env
    model = ALGORITHMS[run.algorithm]("MlpPolicy", env, seed=run.seed, device="cpu", **run.options)
    model.set_logger(configure(str(folder), list(run.formats)))
    settings = settings_of(run, model)
    callbacks = [GradNorm()] if run.grad_norm else []
    callbacks += [run.during()] if run.during else []
    start_time = time.perf_counter()
    status = "finished"
    try:
        model.learn(run.steps, CallbackList(callbacks), log_interval=run.log_interval)
    except ValueError as error:  # what torch raises for a distribution with NaN parameters
        status = f"ValueError: {str(error).splitlines()[0][:100]}"
    model.logger.close()
    env.close()
    for events in folder.glob("events.out.tfevents.*"):  # the host's name is nobody's business
        events.rename(events.with_name(events.name.replace(platform.node(), "host")))
    settings["ended"] = status
    (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")
    (folder / "rlvitals.toml").write_text(as_toml(settings))
    return f"{run.name}: {status}, {time.perf_counter() - start_time:.0f} s"


# What `rlvitals` has no name for: how a run was made, and switches that no rule reads.
ABOUT = ("fault", "made_by", "ended", "stable_baselines3", "gymnasium", "normalise",
         "normalize_advantage", "use_sde")  # fmt: skip


def as_toml(settings: Mapping[str, Any]) -> str:
    """Write what the run was given as `rlvitals diagnose` takes it from beside a log."""
    values = {
        k: v for k, v in settings.items() if k not in ABOUT and not isinstance(v, list | dict)
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]
    return "\n".join(["[settings]", *lines]) + "\n"


# --------------------------------------------------------------------------- the summary

# fmt: off
COLUMNS = (
    ("return", "rollout/ep_rew_mean"), ("length", "rollout/ep_len_mean"),
    ("success", "rollout/success_rate"), ("entropy loss", "train/entropy_loss"),
    ("std", "train/std"), ("KL", "train/approx_kl"), ("clip", "train/clip_fraction"),
    ("EV", "train/explained_variance"), ("value / critic loss", "train/value_loss"),
    ("grad norm", "train/grad_norm"), ("loss", "train/loss"),
)
# fmt: on


def numbers(rows: list[dict[str, str]], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row.get(key) not in (None, "")]


def span(values: list[float]) -> str:
    """Median of the first and of the last tenth, and the largest value in between."""
    if not values:
        return ""
    n = max(1, len(values) // 10)
    first, last = (float(np.median(segment)) for segment in (values[:n], values[-n:]))
    finite = [v for v in values if math.isfinite(v)]
    return f"{first:.3g} > {last:.3g} (max {max(finite, default=math.nan):.3g})"


def summarise(out: Path) -> None:
    head = ["run", "fault", "rows", *(title for title, _ in COLUMNS), "ended"]
    lines = [
        "# Recorded control runs",
        "",
        "Each cell: median of the first tenth of rows > median of the last tenth (largest value).",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for file in sorted(out.glob("*/settings.json")):
        settings = json.loads(file.read_text())
        with (file.parent / "progress.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        spans = [span(numbers(rows, key)) for _, key in COLUMNS]
        if not spans[8]:
            spans[8] = span(numbers(rows, "train/critic_loss"))
        fault, status = settings["fault"] or "", settings["ended"]
        lines.append(
            "| " + " | ".join([file.parent.name, fault, str(len(rows)), *spans, status]) + " |"
        )
    (out / "SUMMARY.md").write_text("\n".join(lines) + "\n")


# --------------------------------------------------------------------------- command line


def record_by_name(job: tuple[str, Path]) -> str:
    name, out = job
    try:
        return record(next(run for run in RUNS if run.name == name), out)
    except gym.error.DependencyNotInstalled as error:
        shutil.rmtree(out / name)
        return f"{name}: skipped, {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, help="folder that receives one folder per run")
    parser.add_argument("names", nargs="*", help="runs to record")
    parser.add_argument("--all", action="store_true", help="record every run of the table")
    parser.add_argument("--missing", action="store_true", help="skip what OUT already holds")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (one core each)")
    parser.add_argument("--list", action="store_true", help="print the table and stop")
    parser.add_argument("--summary", action="store_true", help="only rewrite OUT/SUMMARY.md")
    args = parser.parse_args()
    if args.list:
        for run in RUNS:
            print(
                f"{run.name:44} {run.algorithm:4} {run.env_id:24} {run.steps:7} {run.fault or ''}"
            )
        return 0
    known_names = [run.name for run in RUNS]
    unknown = sorted(set(args.names) - set(known_names))
    if args.out is None or unknown or not (args.names or args.all or args.summary):
        parser.error(
            f"no such run: {', '.join(unknown)}" if unknown else "say OUT and NAME or --all"
        )
    names = [name for name in known_names if args.all or name in args.names]
    if args.missing:
        names = [name for name in names if not (args.out / name / "settings.json").exists()]
    jobs = [(name, args.out) for name in names]
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(record_by_name, jobs):
            print(line, flush=True)
    summarise(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
