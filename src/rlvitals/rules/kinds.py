"""Kinds of training that rules treat alike, each group in one place."""

from rlvitals.metrics.catalogue.preference import MARGIN
from rlvitals.signals.outcome_change import OutcomeChange, outcome_change
from rlvitals.types import Profile, Trace

CONTROL = (Profile.CONTROL_PPO, Profile.ON_POLICY, Profile.OFF_POLICY)  # episodes and a return
PPO = (Profile.CONTROL_PPO, Profile.SCHEDULER_PPO, Profile.RLHF_PPO)  # a clipped ratio and a critic
ACTOR_CRITIC = (*PPO, Profile.ON_POLICY)
# Trained on the samples on one side of a threshold.
THRESHOLD_FILTERED = (Profile.PSR, Profile.NSR, Profile.W_REINFORCE)
GROUPED = (Profile.GRPO, *THRESHOLD_FILTERED)  # several completions of each prompt, no critic
LANGUAGE = (Profile.RLHF_PPO, *GROUPED)
WITH_REWARD = tuple(kind for kind in Profile if kind is not Profile.SUPERVISED)


def trains_pairs(trace: Trace) -> bool:
    """Return whether pairs are trained: the loss asks for a difference, not for right tokens."""
    return MARGIN.name in trace


def margin_rise(trace: Trace) -> OutcomeChange | None:
    """Return the change of a margin of pairs that is proven to rise above 0; else None."""
    margin = trace.numbers(MARGIN.name)
    change = None if margin is None else outcome_change(margin.values)
    return change if change and change.answer == "rose" and change.last > 0 else None
