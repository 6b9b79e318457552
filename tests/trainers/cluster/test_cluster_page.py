"""The environment's page says what the code says, and its example runs."""

import re
from pathlib import Path

import pytest

from rlvitals.trainers import schema
from rlvitals.trainers.ppo.cluster import REWARD_PARTS, ClusterConfig, baselines
from rlvitals.trainers.ppo.cluster.observation import GLOBAL_FEATURES, REPLICA_FEATURES, of_replica

PAGE = (Path(__file__).parents[3] / "docs" / "trainers" / "cluster.md").read_text()


@pytest.mark.parametrize(
    "feature", [*REPLICA_FEATURES, *GLOBAL_FEATURES], ids=lambda feature: feature.name
)
def test_every_feature_stands_there_with_its_bounds(feature):
    row = f"| `{feature.name}` | {feature.low:g} to {feature.high:g} | {feature.meaning} |"
    assert row in PAGE


@pytest.mark.parametrize("key", schema.keys(ClusterConfig), ids=lambda key: key.name)
def test_every_setting_stands_there_with_its_default(key):
    default = key.default if isinstance(key.default, tuple) else (key.default,)
    shown = " ".join(map(str, default))
    assert f"| `{key.path[-1]}` | {shown} | {key.doc}" in PAGE


def test_every_part_and_every_baseline_stands_there():
    told = re.findall(r"^\| `(\w+(?:/\w+)?)` \| ", PAGE, re.MULTILINE)
    assert [name for name in told if name in REWARD_PARTS][: len(REWARD_PARTS)] == list(
        REWARD_PARTS
    )
    assert set(baselines()) <= set(told)


def test_requests_are_told_one_by_one():
    seen = of_replica(ClusterConfig(queued_requests=1))[len(REPLICA_FEATURES) :]
    for one in seen:
        assert f"| `{one.name}` | {one.low:g} to {one.high:g} | {one.meaning} |" in PAGE


def test_its_example_runs(capsys):
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, {})  # noqa: S102 - our own page
    assert len(capsys.readouterr().out.split()) == 2


def test_what_it_says_of_info_is_in_info():
    from numpy.random import default_rng

    from rlvitals.trainers.ppo.cluster import Cluster

    cluster, rng = Cluster(ClusterConfig()), default_rng(0)
    cluster.reset(rng)
    info = cluster.step(cluster.age, rng).info
    paragraph = PAGE.split("Also in `info`")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", paragraph)) - {"balance_penalty", "latency_threshold"}
    assert named | set(REWARD_PARTS) == set(info)
