"""Faults of the sensors: what the agent sees is not what is there.

A log without observations can show that the outcome breaks, not that the sensors did: from the
start there is nothing to compare with, in mid-run the return falls while no update was large.
"""

from rlvitals.faults.fault import Fault, Onset
from rlvitals.faults.inject import in_world

OBSERVATION_FAULTS = (
    Fault(
        "observation-constant",
        "the agent is blind: it sees zeros",
        in_world(lambda w: w.ConstantObservation),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        hidden_from_start=True,
    ),
    Fault(
        "observation-noise",
        "Gaussian noise of standard deviation 2 drowns the observation",
        in_world(lambda w: w.NoisyObservation),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        hidden_from_start=True,
    ),
    Fault(
        "observation-stale",
        "the observation is never updated within an episode",
        in_world(lambda w: w.StaleObservation),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        hidden_from_start=True,
    ),
    Fault(
        "observation-flipped",
        "the sensors change sign",
        in_world(lambda w: w.FlippedObservation),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        onsets=(Onset.MIDDLE,),
    ),
)
