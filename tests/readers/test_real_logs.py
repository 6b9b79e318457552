"""Logs of other people's runs; counts are those of pandas, json and TensorBoard's own reader."""

import csv
import json
from pathlib import Path

import log_checks
import numpy as np
import pytest

from rlvitals.readers import rllib, sb3_monitor, tensorboard
from rlvitals.readers.select import reader_of

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
pytestmark = [
    pytest.mark.real_logs,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"real logs are absent: no folder {DATA}"),
]


def read(name):
    path = next(DATA.glob(name))
    reader = reader_of(path)
    return reader, path, reader.read(path, None)[0]


def count(log):
    return sum(len(series) for series in log.series.values())


@pytest.mark.parametrize(
    ("name", "tags", "scalars"),
    [
        ("vidurrl-20250917_201326/tensorboard/*", 29, 21240),
        ("vidurrl-20250918_232535/tensorboard/*", 31, 15265),
    ],
)
def test_tensorboard(name, tags, scalars):
    reader, path, log = read(name)
    assert reader is tensorboard.READER
    assert (len(log.series), count(log), log.notes) == (tags, scalars, ())
    assert all(np.isfinite(series.times).all() for series in log.series.values())
    assert path.stat().st_size > 800_000


@pytest.mark.parametrize(
    ("name", "rows", "env"),
    [
        ("a2c__Acrobot-v1_1", 345, "Acrobot-v1"),
        ("a2c__AntBulletEnv-v0_1", 548, "AntBulletEnv-v0"),
        ("dqn__LunarLander-v2_1", 246, "LunarLander-v2"),
        ("dqn__MountainCar-v0_1", 766, "MountainCar-v0"),
        ("ppo__Acrobot-v1_1", 731, "Acrobot-v1"),
    ],
)
def test_monitors(name, rows, env):
    reader, path, log = read(f"sb3-monitor/{name}/0.monitor.csv")
    assert reader is sb3_monitor.READER
    with path.open() as file:
        started = json.loads(file.readline()[1:])["t_start"]
        table = list(csv.DictReader(file))
    returns = log.series["r"]
    assert len(table) == rows
    assert log.settings == {"env_id": env}
    assert returns.values.tolist() == [float(row["r"]) for row in table]
    assert returns.times.tolist() == [started + float(row["t"]) for row in table]
    assert returns.steps.tolist() == np.cumsum([int(row["l"]) for row in table]).tolist()


@pytest.mark.parametrize(
    ("name", "keys", "points", "returns", "env"),
    [
        ("impala-breakout/progress.csv", 22, 5852, 266, "BreakoutNoFrameskip-v4"),
        ("sac-halfcheetah/progress.csv", 37, 21719, 587, None),
        ("a2c-breakout-cut/progress.csv", 25, 23300, 932, "BreakoutNoFrameskip-v4"),
        ("a2c-qbert/result.json", 25, 23392, 934, "QbertNoFrameskip-v4"),
    ],
)
def test_rllib(name, keys, points, returns, env):
    reader, _, log = read(f"rllib/{name}")
    assert reader is rllib.READER
    assert (len(log.series), count(log)) == (keys, points)
    assert len(log.series["episode_reward_mean"]) == returns
    assert log.settings.get("env_id") == env
    cut = "a2c-breakout-cut" in name
    assert log.notes == (("the last line is not complete: left for the next reading",) * cut)


def test_rllib_json_line_by_line():
    _, path, log = read("rllib/a2c-qbert/result.json")
    with path.open() as file:
        rows = [json.loads(line) for line in file]
    returns = log.series["episode_reward_mean"]
    logged = [row for row in rows if row["episode_reward_mean"] is not None]
    assert returns.values.tolist() == [row["episode_reward_mean"] for row in logged]
    assert returns.steps.tolist() == [row["timesteps_total"] for row in logged]
    assert returns.times.tolist() == [row["timestamp"] for row in logged]


@pytest.mark.parametrize(
    "name",
    [
        "vidurrl-20250918_232535/tensorboard/*",
        "sb3-monitor/dqn__LunarLander-v2_1/*",
        "rllib/sac-halfcheetah/progress.csv",
    ],
)
def test_read_as_they_grow(name, tmp_path):
    reader, path, log = read(name)
    data = path.read_bytes()
    ends = range(0, len(data), len(data) // 23)
    found = log_checks.read_in_pieces(reader, tmp_path / path.name, data, ends)
    log_checks.assert_equal(found, log_checks.points(log))
