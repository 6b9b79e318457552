"""A policy that no update can have changed is not trained, whatever the outcome's noise says."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.policy.updates_hardly_move import RULE
from rlvitals.rules.rule import Finding, Severity
from rlvitals.types import Lifecycle, Profile

NOISY = 22.0 + 4.0 * made.noise(47, 3)  # neither a rise nor a flat line can be proven
LN2 = np.log(2) - 1e-5 * np.abs(made.noise(47))


def run(**metrics):
    profile = metrics.pop("profile", Profile.CONTROL_PPO)
    trace = made.trace(profile, **{"outcome__return": NOISY, **metrics})
    return replace(trace, lifecycle=Lifecycle(ended=True))


def warned(trace):
    answer = RULE.ask(trace)
    return isinstance(answer, Finding) and answer.severity >= Severity.WARNING


def test_updates_that_add_up_to_nothing_stall_a_run_whose_outcome_is_noise():
    trace = run(policy__approx_kl=np.full(47, 2e-8), exploration__entropy=LN2)
    assert warned(trace)
    assert diagnose(trace).verdict.word == "stalled"


@pytest.mark.parametrize(
    "healthy",
    [
        {"policy__approx_kl": np.full(47, 1e-4)},  # small updates that add up
        {"exploration__entropy": np.linspace(0.69, 0.68, 47)},  # KL is taken before the only step
        {"outcome__return": made.rising(47)},
    ],
)
def test_one_of_these_says_that_the_policy_moves(healthy):
    trace = {"policy__approx_kl": np.full(47, 2e-8), "exploration__entropy": LN2, **healthy}
    assert not warned(run(**trace))


@pytest.mark.parametrize(("epochs", "said"), [(1, False), (4, True)])
def test_a_kl_of_zero_tells_only_where_a_batch_is_trained_on_more_than_once(epochs, said):
    trace = run(
        policy__approx_kl=np.zeros(47),
        exploration__entropy=LN2,
        optimiser__updates=epochs * np.arange(47),
    )
    assert warned(trace) is said


def test_an_entropy_of_discrete_actions_that_never_changes_tells_without_kl():
    still = np.log(8) - 1e-4 * np.abs(made.noise(47))
    assert warned(run(profile=Profile.UNKNOWN, exploration__entropy=still))
    gaussian = np.full(47, 1.4189)  # a standard deviation that is not trained: its mean may be
    assert not warned(run(profile=Profile.ON_POLICY, exploration__entropy=gaussian))


def test_a_run_that_has_only_begun_is_not_judged():
    trace = run(policy__approx_kl=np.full(47, 2e-8), exploration__entropy=LN2)
    assert not warned(replace(trace, lifecycle=Lifecycle(live=True)))
