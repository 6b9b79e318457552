"""Register the environment's Gymnasium id."""

from importlib.util import find_spec

ID = "rlvitals/Cluster-v0"


def register() -> None:
    """Register the environment with Gymnasium, where it is installed; again is no error."""
    if not find_spec("gymnasium"):
        return  # the simulator and its evaluation need none
    from gymnasium.envs import registration  # noqa: PLC0415 - only if it is installed

    if ID not in registration.registry:
        registration.register(
            ID,
            entry_point="rlvitals.trainers.ppo.cluster.environment:ClusterEnv",
            vector_entry_point="rlvitals.trainers.ppo.cluster.vector:ClusterVectorEnv",
        )
