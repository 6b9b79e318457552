"""Rollout dialects, one file per framework. The first that claims a file reads it."""

from rlvitals.rollouts.dialects import (
    atif,
    episodes,
    miles,
    nemo_rl,
    recorder,
    rllm,
    skyrl,
    tinker,
    trl,
    verifiers,
    verl,
)
from rlvitals.rollouts.dialects.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    recorder.DIALECT,
    trl.DIALECT,
    episodes.DIALECT,
    verifiers.DIALECT,
    skyrl.DIALECT,
    tinker.DIALECT,
    nemo_rl.DIALECT,
    rllm.DIALECT,
    miles.DIALECT,
    atif.DIALECT,
    verl.DIALECT,
)
