"""How undecided a policy could be: the entropy of choosing at random, where that is known."""

import math

import numpy as np

from rlvitals.metrics import action_count
from rlvitals.metrics.metric import Bound
from rlvitals.rules.task import environment
from rlvitals.types import Trace

# Entropies of discrete choices are never negative; one as small as this is a choice made with
# p > .998 whatever the number of actions: -p ln p - (1-p) ln(1-p) = .0144 at p = .998.
DECIDED = 0.0144


def max_entropy(trace: Trace) -> Bound | None:
    """Return ln(actions) in nats and how the number of actions is known; None where it is not."""
    own = trace.number("n_actions")
    if own is not None and own > 1:
        return Bound(math.log(own), f"the run's n_actions = {own:g}")
    env = environment(trace)
    if env is not None and env.actions:
        return Bound(math.log(env.actions), f"{env.name} has {env.actions} actions")
    chosen = trace.get("policy/action")
    if chosen is not None and (kinds := len(np.unique(chosen.finite().values))) > 1:
        return Bound(math.log(kinds), f"{kinds} actions were chosen")
    entropy = trace.get("exploration/entropy")
    found = None if entropy is None else action_count.actions(entropy.values)
    return None if found is None else Bound(math.log(found.value), found.origin)
