"""Every column of other people's logs is known, or listed here as one that nobody judges."""

from functools import cache

import numpy as np
import pytest
from loading import read_log

from rlvitals.metrics.canonicalize import trace

pytestmark = pytest.mark.real_logs

# Flags, counters of restarts and of the evaluation's own episodes: they say nothing of learning.
NOT_JUDGED = {
    "done",
    "has_temperature_control",
    "info/num_weight_syncs",
    "time_since_restore",
    "timesteps_since_restore",
    "iterations_since_restore",
    "evaluation/episodes_this_iter",
}

LOGS = [
    "rllib/a2c-breakout-cut/progress.csv",
    "rllib/a2c-qbert/result.json",
    "rllib/impala-breakout/progress.csv",
    "rllib/sac-halfcheetah/progress.csv",
    "sb3-monitor/a2c__AntBulletEnv-v0_1/0.monitor.csv",
    "sb3-monitor/dqn__LunarLander-v2_1/0.monitor.csv",
    "vidurrl-20250917_201326/metrics/ppo_metrics_20250917_201349.csv",
    "vidurrl-20250917_201326/tensorboard/events.out.tfevents.1758154414.host.62338.0",
    "vidurrl-20250918_232535/metrics/ppo_metrics_20250918_233015.csv",
    "vidurrl-20250918_232535/tensorboard/events.out.tfevents.1758252605.host.10262.0",
    "vidurrl-20250919_183038/metrics/ppo_metrics_20250919_184014.csv",
]


@cache
def read(folder, log):
    return trace([read_log(folder / log)])


@pytest.mark.parametrize("log", LOGS)
def test_every_column_is_known_or_listed(real_logs, log):
    assert set(read(real_logs, log).unmapped) <= NOT_JUDGED


def test_the_exceptions_are_all_needed(real_logs):
    seen = {key for log in LOGS for key in read(real_logs, log).unmapped}
    assert seen == NOT_JUDGED


@pytest.mark.parametrize(("log", "batch", "actions"), [(LOGS[1], 500, 6), (LOGS[2], 500, 4)])
def test_old_rllib_sums_entropy_over_its_batch(real_logs, log, batch, actions):
    run = read(real_logs, log)
    assert "exploration/entropy" not in run
    per_step = run["exploration/entropy_sum"].values / batch
    assert per_step.max() > 1.0
    assert per_step.max() <= np.log(actions)


def test_the_two_logs_of_one_scheduler_run_agree(real_logs):
    table, events = (read(real_logs, log) for log in LOGS[6:8])
    for name in ("policy/approx_kl", "exploration/entropy", "value/explained_variance"):
        assert table[name].values == pytest.approx(events[name].values, abs=1e-6)
