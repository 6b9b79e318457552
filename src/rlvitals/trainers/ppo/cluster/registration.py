"""The environment's Gymnasium id."""

from gymnasium.envs.registration import register as register_id
from gymnasium.envs.registration import registry

ID = "rlvitals/Cluster-v0"
HERE = "rlvitals.trainers.ppo.cluster"


def register() -> None:
    """Register the environment with Gymnasium; again is no error."""
    if ID not in registry:
        register_id(
            ID,
            entry_point=f"{HERE}.environment:ClusterEnv",
            vector_entry_point=f"{HERE}.vector:ClusterVectorEnv",
        )
