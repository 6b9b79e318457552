"""Faults of the machine: numbers that are none, and time that is lost."""

from rlvitals.faults import faulty_models
from rlvitals.faults.fault import FAILED_VERDICT, Fault, Onset
from rlvitals.faults.inject import in_model, in_world

MACHINE_FAULTS = (
    Fault(
        "weight-nan",
        "one weight becomes not a number",
        in_model(faulty_models.nan_weight),
        expects=("not-a-number", FAILED_VERDICT),
        visible_in=("outcome/return",),
        onsets=(Onset.MIDDLE,),
        proven=True,
    ),
    Fault(
        "environment-slow",
        "each step of the environment takes 0.6 ms of processor time longer",
        in_world(lambda w: w.SlowStep),
        expects=("throughput-drop",),
        visible_in=("throughput/elapsed", "throughput/steps_per_second"),
        onsets=(Onset.MIDDLE,),
        proven=True,
    ),
)
