"""Stable-Baselines3: `model.learn(100_000, callback=Record(run))` records the whole training."""

from rlvitals.integrations.stable_baselines3.preflight import Preflight
from rlvitals.integrations.stable_baselines3.record import Record
from rlvitals.integrations.stable_baselines3.writer import Writer

__all__ = ["Preflight", "Record", "Writer"]
