"""The faults, by what is wrong: one file per kind."""

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

CATALOGUE: tuple[Fault, ...] = (
    *updates.FAULTS,
    *exploration.FAULTS,
    *rewards.FAULTS,
    *observations.FAULTS,
    *actions.FAULTS,
    *episodes.FAULTS,
    *machine.FAULTS,
)


def named(name: str) -> Fault:
    """Return the fault of that name. Raises KeyError."""
    return {fault.name: fault for fault in CATALOGUE}[name]
