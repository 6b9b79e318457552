"""Train small control agents with Stable-Baselines3, healthy and faulty, and record their logs.

    python scripts/record_control_runs.py --list
    python scripts/record_control_runs.py OUT ppo-cartpole-s0 ppo-cartpole-lr-x300-s0
    python scripts/record_control_runs.py OUT --all --jobs 3
    python scripts/record_control_runs.py OUT --summary        # only rewrite OUT/SUMMARY.md

Each run leaves `OUT/<name>/progress.csv`, written by Stable-Baselines3 itself, `rlvitals.toml` with
the settings it was given, and `settings.json`,
written here. To add a run, add one entry to `RUNS`; `Run` says what its fields mean, and what an
entry does not say is PPO on CartPole with the library's defaults.

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch
from control_faults import (
    OWN_WORLDS,
    Advantages,
    ConstantObservation,
    FlipObservationLater,
    FlipReward,
    GradNorm,
    HugeReward,
    NanWeight,
    NeverTerminal,
    NoisyObservation,
    NoisyReward,
    OneOutlierReward,
    OutlierReward,
    RandomAction,
    SleepInSecondHalf,
    ZeroReward,
)
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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


# --------------------------------------------------------------------------- the table of runs


@dataclass(frozen=True, slots=True)
class Run:
    """One training run. `options` go to the algorithm's constructor as they are."""

    name: str
    fault: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = "PPO"
    env_id: str = "CartPole-v1"
    steps: int = 61_440
    n_envs: int = 4
    seed: int = 0
    log_interval: int = 1
    world: Callable[[gym.Env], gym.Env] | None = None
    during: type[BaseCallback] | None = None
    grad_norm: bool = False
    normalise: bool = False  # running normalisation of observations and rewards
    monitors: int = 0  # how many of the environments write a monitor file
    formats: tuple[str, ...] = ("csv",)


def seeds(run: Run, *numbers: int) -> Iterable[Run]:
    return (replace(run, name=f"{run.name}-s{n}", seed=n) for n in numbers)


def linear(start: float) -> Callable[[float], float]:
    return lambda remaining: start * remaining


def spike(remaining: float) -> float:
    """Learning rate 3e-4, but 0.1 between 50 % and 55 % of the run."""
    return 0.1 if 0.45 < remaining <= 0.5 else 3e-4


SMALL_NET = {"policy_kwargs": {"net_arch": [64, 64]}}
# fmt: off
CARTPOLE_ZOO = {  # RL Baselines3 Zoo
    "n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8,
    "learning_rate": linear(1e-3), "clip_range": linear(0.2),
}
DQN_ZOO = {
    "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
    "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
    "exploration_fraction": 0.16, "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}
SAC_SMALL = {**SMALL_NET, "learning_rate": 1e-3, "batch_size": 128, "learning_starts": 400}
TD3_SMALL = {**SMALL_NET, "learning_rate": 1e-3, "batch_size": 128, "learning_starts": 1000,
             "gamma": 0.98, "action_noise": NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))}

PPO = Run("ppo-cartpole", options={"n_steps": 256})
A2C = Run("a2c-cartpole", algorithm="A2C", log_interval=40)
DQN = Run("dqn-cartpole", algorithm="DQN", n_envs=1, steps=50_000, log_interval=10, options=DQN_ZOO)
SAC = Run(
    "sac-pendulum", algorithm="SAC", env_id="Pendulum-v1", n_envs=1, steps=12_000, options=SAC_SMALL
)
ACROBOT = Run("ppo-acrobot", env_id="Acrobot-v1", options={"n_steps": 256}, steps=81_920)
PENDULUM = Run("ppo-pendulum", env_id="Pendulum-v1", steps=102_400,
               options={"n_steps": 256, "gamma": 0.9, "learning_rate": 1e-3})
LANDER = Run("ppo-lunarlander", env_id="LunarLander-v3", n_envs=8, steps=163_840,
             options={"n_steps": 256, "batch_size": 128, "n_epochs": 4, "gamma": 0.999,
                      "gae_lambda": 0.98, "ent_coef": 0.01, "learning_rate": 1e-3})
HILL_CAR = Run("ppo-mountaincarcontinuous", env_id="MountainCarContinuous-v0", n_envs=1,
               steps=20_000, log_interval=25, normalise=True,
               options={"n_steps": 8, "batch_size": 256, "n_epochs": 10, "gamma": 0.9999,
                        "use_sde": True, "learning_rate": 7.77e-5, "ent_coef": 0.00429,
                        "clip_range": 0.1, "vf_coef": 0.19, "gae_lambda": 0.9,
                        "max_grad_norm": 5.0,
                        "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False}})
TD3 = Run(
    "td3-pendulum", algorithm="TD3", env_id="Pendulum-v1", n_envs=1, steps=12_000, options=TD3_SMALL
)
# fmt: on


RAW = replace(
    PPO,
    name="ppo-cartpole-raw-advantages",
    during=Advantages,
    options={**PPO.options, "normalize_advantage": False},
)


def broken(healthy: Run, fault: str, **changes: Any) -> Run:
    """`healthy` with one fault: `options` are added to its own, the other fields replaced."""
    options = {**healthy.options, **changes.pop("options", {})}
    name = f"{healthy.name}-{fault}"
    return replace(healthy, name=name, fault=fault, options=options, **changes)


# fmt: off
RUNS: tuple[Run, ...] = (
    # What the project ships: `record_control_runs.py examples healthy failing`.
    replace(PPO, name="healthy", grad_norm=True, monitors=4),
    replace(PPO, name="failing", fault="lr-spike", seed=1, grad_norm=True, monitors=4,
            options={**PPO.options, "learning_rate": spike}),
    # healthy, PPO
    *seeds(replace(PPO, grad_norm=True, monitors=1), 0, 1),
    *seeds(PPO, 2, 3),
    *seeds(replace(PPO, formats=("csv", "json", "tensorboard"), monitors=1), 4),
    # PPO, the faults that much else is built on
    *seeds(broken(PPO, "lr-x300", options={"learning_rate": 0.09}), 0, 1),
    *seeds(broken(PPO, "lr-1e-7", options={"learning_rate": 1e-7}), 0, 1),
    *seeds(broken(PPO, "vf-coef-0", options={"vf_coef": 0.0}), 0, 1),
    *seeds(broken(PPO, "reward-zero", world=ZeroReward, monitors=1), 0, 1),
    # advantages as they are
    *seeds(RAW, 0, 1),
    *seeds(broken(RAW, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    # healthy, other tasks and algorithms
    *seeds(replace(PPO, name="ppo-cartpole-converged", options=CARTPOLE_ZOO, n_envs=8,
                   steps=102_400, log_interval=4), 0, 1),
    *seeds(PPO, 5, 6, 7, 8, 9),
    *seeds(ACROBOT, 0, 1, 2),
    *seeds(replace(PENDULUM, grad_norm=True), 0),
    *seeds(PENDULUM, 1, 2),
    *seeds(LANDER, 0, 1),
    *seeds(HILL_CAR, 0, 1),
    *seeds(replace(A2C, grad_norm=True), 4),
    *seeds(A2C, 1, 2, 3),
    *seeds(DQN, 0, 1, 2),
    *seeds(SAC, 0, 1),
    *seeds(TD3, 0, 1),
    Run("ppo-exam-s0", env_id="Exam", options={"n_steps": 128}, steps=40_960, grad_norm=True),
    Run("ppo-exam-s1", env_id="Exam", options={"n_steps": 128}, steps=40_960, seed=1),
    Run("ppo-corridor-s0", env_id="Corridor", options={"n_steps": 256, "ent_coef": 0.01}),
    *seeds(replace(PPO, name="ppo-cartpole-short-window",
                   options={"n_steps": 256, "stats_window_size": 10}), 0, 1),
    *seeds(replace(DQN, name="dqn-cartpole-short-window",
                   options={**DQN_ZOO, "stats_window_size": 10}), 3),
    # nobody broke these: the first forgets what it had learnt, the second never gets going
    replace(A2C, name="a2c-cartpole-s0", fault="own-instability", grad_norm=True),
    Run("a2c-pendulum-s0", "never-learnt", algorithm="A2C", env_id="Pendulum-v1", n_envs=8,
        steps=160_000, log_interval=50, normalise=True,
        options={"n_steps": 8, "gamma": 0.9, "gae_lambda": 0.9, "vf_coef": 0.4,
                 "learning_rate": linear(7e-4), "use_sde": True, "use_rms_prop": False}),
    # PPO, faults in the settings
    *seeds(broken(PPO, "lr-x100", options={"learning_rate": 0.03}), 0),
    *seeds(broken(PPO, "lr-spike", options={"learning_rate": spike}, grad_norm=True), 0, 1),
    *seeds(broken(PPO, "gamma-0", options={"gamma": 0.0}), 0),
    *seeds(broken(PPO, "ent-coef-2", options={"ent_coef": 2.0}), 0, 1),
    *seeds(broken(PPO, "ent-coef-negative", options={"ent_coef": -0.5}), 0, 1),
    *seeds(broken(PPO, "ent-coef-minus-3", options={"ent_coef": -3.0}), 0, 1),
    *seeds(broken(PPO, "clip-1e-4", options={"clip_range": 1e-4}), 0),
    *seeds(broken(PPO, "epochs-100", steps=51_200,
                  options={"n_epochs": 100, "clip_range": 0.6}), 0),
    *seeds(broken(PPO, "over-target-kl", options={"target_kl": 0.02, "learning_rate": 0.01}), 0, 1),
    *seeds(broken(PPO, "unclipped-gradient", grad_norm=True,
                  options={"max_grad_norm": 1e9, "learning_rate": 0.02}), 0, 1),
    # PPO, faults in the world
    *seeds(broken(PPO, "reward-flipped", world=FlipReward), 0),
    *seeds(broken(PPO, "reward-noise", world=NoisyReward), 0, 1),
    *seeds(broken(PPO, "reward-x1000", world=HugeReward, grad_norm=True), 0, 1),
    *seeds(broken(PPO, "reward-outliers", world=OutlierReward, grad_norm=True,
                  options={"max_grad_norm": 1e9}), 0, 1),
    *seeds(broken(PPO, "one-outlier", world=OneOutlierReward, grad_norm=True), 0),
    *seeds(broken(PPO, "constant-observation", world=ConstantObservation), 0, 1),
    *seeds(broken(PPO, "noisy-observation", world=NoisyObservation), 0),
    *seeds(broken(PPO, "sensors-flip", world=FlipObservationLater), 0, 1),
    *seeds(broken(PPO, "random-action", world=RandomAction), 0, 1),
    *seeds(broken(PPO, "missing-terminal", world=NeverTerminal), 0),
    Run("ppo-mountaincar-s0", "sparse-reward", {"n_steps": 256}, env_id="MountainCar-v0"),
    Run("ppo-exam-paid-by-length-s0", "reward-hacked", {"n_steps": 128}, env_id="ExamPaidByLength",
        steps=40_960),
    Run("ppo-corridor-coin-grows-back-s0", "reward-hacked", {"n_steps": 256, "ent_coef": 0.01},
        env_id="CorridorCoinGrowsBack"),
    *seeds(broken(PENDULUM, "ent-coef-0.5", steps=61_440, options={"ent_coef": 0.5}), 0),
    # PPO, faults of the machine
    *seeds(broken(PPO, "slow-second-half", during=SleepInSecondHalf, monitors=1,
                  formats=("csv", "tensorboard")), 0),
    *seeds(broken(PPO, "nan-weight", during=NanWeight), 0),
    # A2C
    *seeds(broken(A2C, "lr-x100", options={"learning_rate": 0.07}), 0, 1),
    *seeds(broken(A2C, "ent-coef-2", options={"ent_coef": 2.0}), 0),
    # other tasks
    *seeds(broken(ACROBOT, "lr-x300", options={"learning_rate": 0.09}), 0),
    *seeds(broken(ACROBOT, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    *seeds(broken(ACROBOT, "random-action", world=RandomAction), 0),
    *seeds(broken(PENDULUM, "lr-x300", options={"learning_rate": 0.3}), 0),
    *seeds(broken(PENDULUM, "lr-1e-7", options={"learning_rate": 1e-7}), 0),
    *seeds(broken(PENDULUM, "reward-zero", world=ZeroReward), 0),
    *seeds(broken(LANDER, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(LANDER, "constant-observation", world=ConstantObservation), 0),
    *seeds(broken(HILL_CAR, "not-normalised", normalise=False), 0),
    # DQN
    *seeds(broken(DQN, "eps-0", options={"exploration_initial_eps": 0.0,
                                         "exploration_final_eps": 0.0}), 0),
    *seeds(broken(DQN, "eps-1", log_interval=25, options={"exploration_initial_eps": 1.0,
                                         "exploration_final_eps": 1.0}), 0),
    *seeds(broken(DQN, "lr-x100", log_interval=25, options={"learning_rate": 0.23}), 0),
    *seeds(broken(DQN, "gamma-1-no-terminal", world=NeverTerminal, log_interval=1, steps=40_000,
                  options={"gamma": 1.0, "target_update_interval": 1}), 0),
    *seeds(broken(DQN, "late-start", options={"learning_starts": 45_000}, log_interval=25), 0),
    *seeds(broken(DQN, "buffer-100", options={"buffer_size": 100}), 0),
    *seeds(broken(DQN, "nan-weight", during=NanWeight), 0),
    # SAC, TD3
    *seeds(broken(SAC, "alpha-0", options={"ent_coef": 0.0}), 0),
    *seeds(broken(SAC, "alpha-5", options={"ent_coef": 5.0}), 0),
    *seeds(broken(SAC, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(SAC, "tau-0", options={"tau": 0.0}), 0),
    *seeds(broken(TD3, "lr-x100", options={"learning_rate": 0.1}), 0),
    *seeds(broken(TD3, "nan-weight", during=NanWeight), 0),
)
# fmt: on


# --------------------------------------------------------------------------- recording


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
