"""Kinds of training that rules treat alike, each group in one place."""

from rlvitals.metrics.catalogue.preference import MARGIN
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
