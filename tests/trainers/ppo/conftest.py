"""What hundreds of small trainings share."""

import pytest

from rlvitals.trainers.ppo import cluster

KNOWN = {}


@pytest.fixture(autouse=True)
def one_busy_cluster(monkeypatch):
    """Work clusters warm once for the same settings: that is half of a small training's time."""
    work = cluster.busy

    def busy(policy, config, **more):
        key = (policy, repr(config), *sorted(more.items()))
        if key not in KNOWN:
            KNOWN[key] = work(policy, config, **more)
        return KNOWN[key]

    monkeypatch.setattr(cluster, "busy", busy)
