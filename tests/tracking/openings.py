"""What the tests of the sinks write, and where."""

import numpy as np

from rlvitals.tracking.sinks.sink import Opening, Rows
from rlvitals.types import Histogram, Table, Text

SETTINGS = {"learning_rate": 3e-4, "num_envs": 8, "env_id": "CartPole-v1", "cuda": True}
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e308, 0.1, 1 / 3, -7.0)


def opening(folder, **changed):
    facts = {
        "folder": folder,
        "run_id": "r1",
        "name": "first",
        "project": "cart",
        "group": "g",
        "settings": SETTINGS,
        "attempt": 1,
        "rank": 0,
        "resumed": False,
        "options": {},
    }
    return Opening(**facts | changed)


def rows(keys=("train/loss", "train/return"), count=100, first=0, seed=0):
    """Rows as the recorder hands them over: columns lie together in memory."""
    generator = np.random.default_rng(seed)
    steps = np.arange(first, first + count)
    values = generator.normal(size=(len(keys), count)).T
    if keys:
        values[: len(ODD), 0] = ODD[:count]
    return Rows(tuple(keys), steps, 1.7e9 + steps * 0.01, values)


def histogram(step=3):
    edges = np.array([-1.0, 0.0, 0.5, 2.0])
    return Histogram(step, 1.7e9, edges, np.array([1.0, 0.0, 5.0]))


TEXT = Text(4, 1.7e9, 'a "quoted", text | with\nlines and ünïcode')
TABLE = Table(
    np.array([5, 5, 6]),
    {"completion": ['say, "hi"\n', "b", None], "reward": [0.5, None, 1.0], "n": [1, 2, 3]},
)
