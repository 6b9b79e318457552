"""A cluster that serves a language model: the environment `rlvitals/Cluster-v0` and its baselines.

Importing it registers the environment:

>>> import gymnasium
>>> import rlvitals.trainers.ppo.cluster
>>> envs = gymnasium.make_vec("rlvitals/Cluster-v0", num_envs=64)  # doctest: +SKIP
"""

from rlvitals.trainers.ppo.cluster.baselines import Policy, baselines
from rlvitals.trainers.ppo.cluster.config import (
    ClusterConfig,
    CurriculumConfig,
    FailureConfig,
    RewardConfig,
    SafetyConfig,
)
from rlvitals.trainers.ppo.cluster.evaluation import (
    Busy,
    Evaluation,
    Lead,
    busy,
    evaluate,
    evaluate_all,
    lead,
    sentence,
    table,
)
from rlvitals.trainers.ppo.cluster.registration import ID, register
from rlvitals.trainers.ppo.cluster.reward import REWARD_PARTS
from rlvitals.trainers.ppo.cluster.simulator import Cluster

__all__ = [
    "ID",
    "REWARD_PARTS",
    "Busy",
    "Cluster",
    "ClusterConfig",
    "CurriculumConfig",
    "Evaluation",
    "FailureConfig",
    "Lead",
    "Policy",
    "RewardConfig",
    "SafetyConfig",
    "baselines",
    "busy",
    "evaluate",
    "evaluate_all",
    "lead",
    "register",
    "sentence",
    "table",
]

register()
