"""Rollout dialects, one file per framework. The first that claims a file reads it."""

from rlvitals.rollouts.dialects import (
    atif,
    episode_traces,
    miles_trajectories,
    nemo_rl_steps,
    recorder,
    rllm_episodes,
    skyrl_evals,
    tinker_summaries,
    trl_parquet,
    verifiers,
    verl_generations,
)
from rlvitals.rollouts.dialects.rollout_dialect import Dialect

ROLLOUT_DIALECTS: tuple[Dialect, ...] = (
    recorder.DIALECT,
    trl_parquet.DIALECT,
    episode_traces.DIALECT,
    verifiers.DIALECT,
    skyrl_evals.DIALECT,
    tinker_summaries.DIALECT,
    nemo_rl_steps.DIALECT,
    rllm_episodes.DIALECT,
    miles_trajectories.DIALECT,
    atif.DIALECT,
    verl_generations.DIALECT,
)
