"""Faults of the actuators: what is carried out is not what was chosen."""

from rlvitals.faults.fault import Fault, Onset
from rlvitals.faults.inject import in_world

ACTION_FAULTS = (
    Fault(
        "action-random",
        "the environment ignores the policy and acts at random",
        in_world(lambda w: w.RandomAction),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        hidden_from_start=True,
    ),
    Fault(
        "action-stuck",
        "one action is carried out whatever was chosen",
        in_world(lambda w: w.StuckAction),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        hidden_from_start=True,
    ),
    Fault(
        "action-swapped",
        "left and right are exchanged",
        in_world(lambda w: w.SwappedAction),
        expects=("environment-changed", "return-collapse"),
        visible_in=("outcome/return",),
        onsets=(Onset.MIDDLE,),
    ),
)
