"""Small traces made by hand: what a rule's bounds are measured on."""

import numpy as np

from rlvitals.types import Measured, Profile, Series, Trace

STEP = 1000
POOR = {"env_id": "CartPole-v1"}  # a random policy earns `flat()`: it is known to be poor


def series(values, steps=None):
    values = np.asarray(values, dtype=np.float64)
    steps = STEP * (1 + np.arange(len(values))) if steps is None else np.asarray(steps)
    return Series(steps.astype(np.int64), np.full(len(values), np.nan), values)


def trace(profile=Profile.CONTROL_PPO, settings=None, how=None, **metrics):
    """`value__loss=[...]` is the series of value/loss; `how` says how a metric is measured."""
    named = {name.replace("__", "/"): values for name, values in metrics.items()}
    logged = {
        name: values if isinstance(values, Series) else series(values)
        for name, values in named.items()
    }
    how = {name.replace("__", "/"): words for name, words in (how or {}).items()}
    measured = {name: Measured("made", name, how.get(name, "")) for name in logged}
    return Trace(series=logged, measured=measured, settings=settings or {}, profile=profile)


def noise(count, seed=0):
    return np.random.default_rng(seed).standard_normal(count)


def rising(count=100, to=200.0):
    return np.linspace(20, to, count) + noise(count, 7)


def flat(count=100, level=20.0):
    return level + 0.3 * noise(count, 8)


def falling(count=100):
    return rising(count)[::-1].copy()
