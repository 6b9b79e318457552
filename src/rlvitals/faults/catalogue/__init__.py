"""The catalogue of faults, one file per kind."""

from rlvitals.faults.catalogue import (
    actions,
    episodes,
    exploration,
    machine,
    observations,
    rewards,
    updates,
)
from rlvitals.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *updates.UPDATE_FAULTS,
    *exploration.EXPLORATION_FAULTS,
    *rewards.REWARD_FAULTS,
    *observations.OBSERVATION_FAULTS,
    *actions.ACTION_FAULTS,
    *episodes.EPISODE_FAULTS,
    *machine.MACHINE_FAULTS,
)


def find_fault(name: str) -> Fault:
    """Return the fault with a name. Raises KeyError."""
    return {fault.name: fault for fault in FAULTS}[name]
