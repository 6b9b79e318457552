"""Stable-Baselines3's and Gymnasium's `monitor.csv`: one row an episode."""

from rlvitals.metrics.catalogue import outcome, throughput
from rlvitals.metrics.frameworks.key import Name, Table

NAMES = Table(
    "monitor",
    "Monitor wrapper",
    keys={
        "r": Name(outcome.RETURN, "one episode; before reward wrappers that lie outside it"),
        "l": Name(outcome.EPISODE_LENGTH, "one episode"),
        "t": Name(throughput.ELAPSED, "seconds since the monitor was made"),
        "is_success": Name(outcome.SUCCESS_RATE, "one episode: 0 or 1"),
    },
    settings={"env_id": "env_id"},
    sources=("sb3-monitor",),
    read_from="stable_baselines3 2.9.2: common/monitor.py (Monitor.step, ResultsWriter)",
)
