"""Runs to draw: recorded ones, and one whose curves hold all that a picture must not hide."""

from functools import cache
from pathlib import Path

import numpy as np
from loading import MEASURED, load_run

from rlvitals import api
from rlvitals.diagnosis import diagnose
from rlvitals.records import Measured, Profile, Series, Trace
from rlvitals.show.figures.figure import Subject

HERE = Path(__file__).parent
RECORDED = ("cluster", "cluster-lr-x100")  # of our own PPO trainer: scripts/record_pictured_runs.py
RUNS = (
    "grpo-paid-by-length", "nsr-healthy", "ppo-cartpole-lr-spike", "rlhf-kl-explodes",
    "sac-pendulum-healthy", "scheduler-collapsed", "sft-healthy",
)  # fmt: skip


@cache
def subject(name):
    if name == "hostile":
        return Subject(HOSTILE, diagnose(hostile(), rates=MEASURED))
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
    found = {
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
    measured = {name: Measured("test", "test", name) for name in found}
    return Trace(found, measured, profile=Profile.CONTROL_PPO, name="hostile")
