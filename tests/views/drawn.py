"""Runs to draw: recorded ones, and one whose curves hold all that a picture must not hide."""

from functools import cache
from pathlib import Path

import numpy as np
from loading import MEASURED, load_run

from rlvitals import api
from rlvitals.diagnosis.engine import diagnose
from rlvitals.tracking.media import count_values
from rlvitals.types import Measured, Profile, Series, Trace
from rlvitals.views.figures.figure import Subject

HERE = Path(__file__).parent
RECORDED = ("cluster", "cluster-lr-x100")  # of our own PPO trainer: scripts/record_pictured_runs.py
RUNS = (
    "grpo-paid-by-length", "nsr-healthy", "ppo-cartpole-lr-spike", "rlhf-kl-explodes",
    "sac-pendulum-healthy", "scheduler-collapsed", "sft-healthy",
)  # fmt: skip


SPREAD = "distributions"
DISTRIBUTIONS = (
    "reward/distribution", "policy/advantage_distribution", "policy/ratio", "language/logprobs",
    "language/ref_logprobs", "policy/kl_to_reference_distribution",
    "language/length_distribution", "my/scores",
)  # fmt: skip
MADE = (SPREAD, "domain")


@cache
def subject(name):
    if name == "hostile":
        return Subject(HOSTILE, diagnose(hostile(), rates=MEASURED))
    if name in MADE:
        run = spread_out() if name == SPREAD else domain()
        return Subject(name, diagnose(run, rates=MEASURED))
    trace = api.trace(HERE / "pictured" / name) if name in RECORDED else load_run(name)
    return Subject(name, diagnose(trace, rates=MEASURED))


def series(values, step=10):
    n = len(values)
    return Series(np.arange(1, n + 1) * step, np.full(n, np.nan), np.asarray(values, float))


HOSTILE = "run $x_1$ <&> 训练 \x1b[31m\u202e" + "long " * 30


def hostile():
    """A run with a spike of one point, NaN, infinities, zeros, lone points, hostile names."""
    rng = np.random.default_rng(0)
    n = 300
    loss = 2 * np.exp(-np.arange(n) / 80) + 0.1 + rng.normal(0, 0.03, n)
    loss[150] = 900.0
    loss[200:215] = np.nan
    lone = np.where(np.arange(n) % 2, np.nan, 1.0)
    grads = 1 + np.abs(rng.normal(0, 0.3, n))
    grads[100:104] = [np.inf, -np.inf, np.nan, 400.0]
    columns = {
        "optimiser/loss": series(loss),
        "optimiser/grad_norm": series(grads),
        "optimiser/learning_rate": series(np.zeros(n)),
        "exploration/entropy": series(lone),
        "value/loss": series(np.full(n, np.nan)),
        "policy/approx_kl": series(np.full(n, 1e300)),
        "outcome/return": series([3.0]),
        "reward/component/$a_1$ 训练": series(np.arange(n) * 1e-9),
        "reward/component/b\x1b[0m": series(-np.arange(n) * 1e9),
        "policy/clip_fraction": series(np.linspace(0, 1, n)),
    }
    measured = {name: Measured("test", "test", name) for name in columns}
    return Trace(columns, measured, profile=Profile.CONTROL_PPO, name="hostile")


def spread_out():
    """A run that logs what PPO on language models logs as histograms, one tail among them."""
    rng, count = np.random.default_rng(0), 120
    columns = {name: [] for name in DISTRIBUTIONS}
    for step in range(count):
        sample = step / count
        rewards = np.concatenate((rng.normal(2 * sample - 1, 0.5, 100), rng.normal(1, 0.3, 28)))
        rewards[0] = -25.0 if step == 60 else rewards[0]
        sampled = {
            "reward/distribution": rewards,
            "policy/advantage_distribution": rng.standard_t(3, 512),
            "policy/ratio": np.exp(rng.normal(0, 0.05 + 0.2 * (step > 90), 512)),
            "language/logprobs": -rng.gamma(1.5, 0.8 - 0.3 * sample, 512),
            "language/ref_logprobs": -rng.gamma(1.5, 0.8 + 0.2 * sample, 512),
            "policy/kl_to_reference_distribution": rng.gamma(2.0, 1 + 4 * sample, 128),
            "language/length_distribution": rng.integers(10, 53, 128).astype(float),
            "my/scores": rng.normal(0, 1, 64),
        }
        for name, values in sampled.items():
            columns[name].append(counted((step + 1) * 10, np.nan, values))
    score = series(np.linspace(0, 1, count) + rng.normal(0, 0.1, count))
    measured = {"outcome/score": Measured("trl-ppo-old", "ppo/mean_scores", "mean")}
    return Trace(
        {"outcome/score": score},
        measured,
        profile=Profile.RLHF_PPO,
        name=SPREAD,
        histograms=columns,
    )


def domain():
    """A run with what only its owner knows the meaning of."""
    rng = np.random.default_rng(1)
    columns = {
        "outcome/return": series(np.linspace(0, 100, 200) + rng.normal(0, 5, 200)),
        "outcome/domain/collision_rate": series(0.4 * np.exp(-np.arange(200) / 60)),
        "outcome/domain/distance_to_goal": series(5 - np.arange(200) / 50),
    }
    measured = {name: Measured("yours", name, "as mapped by you") for name in columns}
    return Trace(columns, measured, profile=Profile.CONTROL_PPO, name="domain")
