"""What hundreds of small trainings share."""

import pytest

from rlvitals.trainers.ppo import cluster

KNOWN = {}
WARM_STEPS = 64  # of 1,024, all of which tests/cli/test_train_ppo.py makes


@pytest.fixture(autouse=True)
def one_busy_cluster(monkeypatch):
    """Work clusters warm a little, once for the same settings: half of a small training's time."""
    work = cluster.busy

    def busy(policy, config, **more):
        key = (policy, repr(config), *sorted(more.items()))
        if key not in KNOWN:
            KNOWN[key] = work(policy, config, **{"steps": WARM_STEPS, **more})
        return KNOWN[key]

    monkeypatch.setattr(cluster, "busy", busy)
