"""Standard deviation of a policy's continuous actions, and the maximum entropy of discrete ones."""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.metrics import action_count
from rlvitals.metrics.catalogue.exploration import ENTROPY, STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.known_task import environment
from rlvitals.types import Profile, Series, Trace

# exp(150) is beyond what any log holds: an entropy so large is no Gaussian's.
MAX_EXPONENT = 150.0
# Where squashing leaves no closed entropy, what is logged under its name is an estimate of it.
UNSQUASHED_PROFILES = tuple(kind for kind in (*kinds.ACTOR_CRITIC, Profile.UNKNOWN))

# Entropies of discrete choices are never negative; one as small as this is a choice made with
# p > .998 whatever the number of actions: -p ln p - (1-p) ln(1-p) = .0144 at p = .998.
MAX_DECIDED_ENTROPY = 0.0144


@dataclass(frozen=True, slots=True)
class Width:
    """Standard deviations of the actions over a run, finite points."""

    metric: str  # what they were taken from
    series: Series
    phrase: str  # how they are called in a sentence


def width(trace: Trace) -> Width | None:
    """Return the actions' width; None where actions are discrete or nothing tells it."""
    std = trace.get(STD.name)
    if std is not None and len(std := std.finite()):
        return Width(STD.name, std, "the actions' standard deviation goes")
    entropy = trace.get(ENTROPY.name)
    if entropy is None or trace.profile not in UNSQUASHED_PROFILES:
        return None
    count = dimensions(trace)
    if count is None:
        return None
    entropy = entropy.finite()
    exponent = np.clip(
        entropy.values / count - action_count.NATS_PER_DIMENSION, -MAX_EXPONENT, MAX_EXPONENT
    )
    widths = Series(entropy.steps, entropy.times, np.exp(exponent))
    phrase = f"by the entropy of {count} dimensions the actions' standard deviation goes"
    return Width(ENTROPY.name, widths, phrase)


def dimensions(trace: Trace) -> int | None:
    """Return a continuous action's dimensions: of the environment, else by the first entropy."""
    env = environment(trace)
    if env is not None and (env.action_dim or env.actions):
        return env.action_dim
    entropy = trace.get(ENTROPY.name)
    if entropy is None or trace.profile in kinds.LANGUAGE:
        return None
    # What starts uniform over whole numbers of actions is discrete: ln 4 is not far from 1.419.
    if trace.number("n_actions") or action_count.actions(entropy.values) is not None:
        return None
    unit_std = np.ones(action_count.MAX_FIRST_ROWS)
    guess = action_count.action_dim(entropy.values, unit_std)
    return None if guess is None else guess.value


def max_entropy(trace: Trace) -> Bound | None:
    """Return ln(actions) in nats and how the number of actions is known; None where it is not."""
    n_actions = trace.number("n_actions")
    if n_actions is not None and n_actions > 1:
        return Bound(math.log(n_actions), f"the run's n_actions = {n_actions:g}")
    env = environment(trace)
    if env is not None and env.actions:
        return Bound(math.log(env.actions), f"{env.name} has {env.actions} actions")
    actions = trace.get("policy/action")
    if actions is not None and (kinds := len(np.unique(actions.finite().values))) > 1:
        return Bound(math.log(kinds), f"{kinds} actions were chosen")
    entropy = trace.get("exploration/entropy")
    guess = None if entropy is None else action_count.actions(entropy.values)
    return None if guess is None else Bound(math.log(guess.value), guess.origin)
