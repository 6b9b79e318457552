"""Width of a policy's actions: of continuous ones, of SAC's, and the most of discrete ones."""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics import action_count
from rlvitals.metrics.catalogue.exploration import (
    ENTROPY,
    ENTROPY_COEF,
    ENTROPY_COEF_LOSS,
    STD,
)
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.known_task import environment
from rlvitals.signals.finite import Array
from rlvitals.startup.fast_dataclass import dataclass
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


@dataclass(frozen=True, slots=True)
class EntropyExcess:
    """Entropy of a SAC policy above its target, where the loss of alpha tells it."""

    steps: NDArray[np.int64]  # [n]
    alpha: Array  # [n]
    values: Array  # [n], nats


def entropy_excess(trace: Trace, min_count: int) -> EntropyExcess | None:
    """Return what a SAC policy's entropy exceeds its target by; None where nothing tells it."""
    alpha = trace.numbers(ENTROPY_COEF.name, min_count)
    loss = trace.numbers(ENTROPY_COEF_LOSS.name, min_count)
    source = trace.measured.get(ENTROPY_COEF_LOSS.name)
    if alpha is None or loss is None or source is None or source.framework != "sb3":
        return None
    steps, alpha_rows, loss_rows = np.intersect1d(alpha.steps, loss.steps, return_indices=True)
    alphas = alpha.values[alpha_rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_alpha = np.log(alphas)
        # Nearer to 0, the loss over log alpha is noise.
        usable = np.isfinite(log_alpha) & (np.abs(log_alpha) >= 0.05)
    if np.count_nonzero(usable) < min_count:
        return None
    excess = loss.values[loss_rows][usable] / log_alpha[usable]
    return EntropyExcess(steps[usable], alphas[usable], excess)
