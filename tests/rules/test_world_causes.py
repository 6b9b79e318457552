"""Causes that hold on trainers and tasks that no rule was written for, each beside what is healthy.

Each trace is made by the mechanism that the rule rests on, with the fault and without it.
"""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.data.frozen_metric import RULE as FROZEN
from rlvitals.rules.exploration.entropy_collapse import RULE as ENTROPY_COLLAPSE
from rlvitals.rules.optimiser.learning_starts_late import RULE as STARTS_LATE
from rlvitals.rules.outcome.return_collapse import RULE as COLLAPSE
from rlvitals.rules.policy.updates_hardly_move import RULE as HARDLY_MOVE
from rlvitals.rules.reward.constant_reward import RULE as CONSTANT
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.value.value_loss_explosion import RULE as VALUE_LOSS
from rlvitals.signals.outcome_course import course_of
from rlvitals.types import Lifecycle, Measured, Profile

ROWS = 60
NOISY = 22.0 + 4.0 * made.noise(ROWS, 3)  # neither a rise nor a flat line can be proven


def over(profile=Profile.CONTROL_PPO, framework="made", **metrics):
    trace = made.trace(profile, **metrics)
    measured = {name: Measured(framework, name, "") for name in trace.series}
    return replace(trace, measured=measured, lifecycle=Lifecycle(ended=True))


def warned(rule, trace):
    answer = rule.ask(trace)
    return isinstance(answer, Finding) and answer.severity >= Severity.WARNING


def sac(excess, log_alpha=None, **metrics):
    """SAC as Stable-Baselines3 logs it: the loss of alpha is log alpha x the entropy's excess."""
    log_alpha = np.linspace(-0.1, -3.0, ROWS) if log_alpha is None else log_alpha
    given = {
        "outcome__return": NOISY,
        "exploration__entropy_coef": np.exp(log_alpha),
        "exploration__entropy_coef_loss": log_alpha * (excess + 0.03 * made.noise(ROWS, 5)),
    }
    return over(Profile.OFF_POLICY, "sb3", **{**given, **metrics})


def test_a_policy_of_sac_that_does_not_answer_to_alpha_is_not_trained():
    assert warned(HARDLY_MOVE, sac(np.full(ROWS, 1.66)))
    # Healthy runs come down to their target.
    assert not warned(HARDLY_MOVE, sac(np.linspace(3.4, 1.9, ROWS)))


@pytest.mark.parametrize(
    "healthy",
    [
        {"log_alpha": np.linspace(-0.1, -1.0, ROWS)},  # alpha has not fallen enough yet
        {"outcome__return": made.rising(ROWS)},
    ],
)
def test_an_entropy_that_stands_still_is_no_fault_before_alpha_is_small_or_where_it_learns(healthy):
    assert not warned(HARDLY_MOVE, sac(np.full(ROWS, 1.66), **healthy))


def test_another_framework_s_loss_of_alpha_is_another_quantity():
    trace = sac(np.full(ROWS, 1.66))
    measured = {name: Measured("cleanrl", name, "") for name in trace.series}
    assert not warned(HARDLY_MOVE, replace(trace, measured=measured))


def test_a_policy_has_nothing_to_follow_where_the_critic_learned_nothing():
    trace = sac(
        np.full(ROWS, 1.66),
        outcome__episode_length=np.full(ROWS, 40.0),
        value__loss=np.linspace(0.4, 1.4, ROWS),
        value__q_mean=np.full(ROWS, 0.05),
    )
    assert not warned(HARDLY_MOVE, trace)
    assert diagnose(trace).cases[0].rule.name == "critic-explains-nothing"


def rollouts(loss_scatter, **metrics):
    rng = np.random.default_rng(1)
    given = {
        "outcome__return": NOISY,
        "value__loss": 4.3 * np.exp(loss_scatter * rng.standard_normal(ROWS)),
        "value__explained_variance": -0.013 + 0.3 * loss_scatter * rng.standard_normal(ROWS) / 10,
        "policy__approx_kl": 0.013 + 0.0004 * rng.standard_normal(ROWS),
    }
    return over(**{**given, **metrics})


def test_errors_of_one_rollout_do_not_scatter_as_those_of_fresh_samples_do():
    assert warned(FROZEN, rollouts(0.003))
    assert not warned(FROZEN, rollouts(0.06))  # what 512 normal errors scatter by
    assert not warned(FROZEN, rollouts(0.003, policy__approx_kl=np.full(ROWS, 1e-5)))
    # A critic that answers one number, far off: its error is bias, which does not scatter.
    blind = 1e-4 * made.noise(ROWS, 2)
    assert not warned(FROZEN, rollouts(0.003, value__explained_variance=blind))


def test_a_critic_that_errs_by_more_than_episodes_pay_has_targets_beyond_their_ends():
    returns = np.full(ROWS, -12.0) + 0.3 * made.noise(ROWS, 4)
    grows = np.concatenate([np.linspace(100, 40, 15), np.linspace(40, 330, 45)])
    assert warned(VALUE_LOSS, over(outcome__return=returns, value__loss=grows))
    # The error stays below what an episode pays, as it does where its targets end with it.
    assert not warned(VALUE_LOSS, over(outcome__return=returns, value__loss=grows / 10))
    # Returns that grow make the loss grow.
    rising = np.linspace(2, 40, ROWS) + made.noise(ROWS, 4)
    assert not warned(VALUE_LOSS, over(outcome__return=rising, value__loss=grows))


def q_learner(framework="sb3", **metrics):
    given = {"outcome__return": NOISY, "exploration__epsilon": np.linspace(1.0, 0.05, ROWS)}
    return over(Profile.OFF_POLICY, framework, **{**given, **metrics})


def test_a_q_learner_s_log_without_an_update_learned_nothing():
    assert warned(STARTS_LATE, q_learner())
    assert warned(STARTS_LATE, q_learner("generic", optimiser__loss=np.zeros(ROWS)))
    # A program of one's own may log no loss at all, and a learner of Stable-Baselines3 its rate.
    assert not warned(STARTS_LATE, q_learner("generic"))
    rate = {"optimiser__learning_rate": np.full(ROWS, 1e-3)}
    assert not warned(STARTS_LATE, q_learner(**rate, optimiser__loss=0.1 + 0.01 * NOISY))
    assert not warned(STARTS_LATE, q_learner(outcome__return=made.rising(ROWS)))


def test_a_log_of_stable_baselines_without_one_number_of_an_update_learned_nothing():
    throughput = {"throughput__steps_per_second": np.full(ROWS, 140.0)}
    log = {"outcome__return": NOISY, **throughput}
    assert warned(STARTS_LATE, over(Profile.UNKNOWN, "sb3", **log))
    assert not warned(STARTS_LATE, over(Profile.UNKNOWN, "generic", **log))
    # A table of chosen columns.
    assert not warned(STARTS_LATE, over(Profile.UNKNOWN, "sb3", outcome__return=NOISY))
    trained = {**log, "optimiser__learning_rate": np.full(ROWS, 1e-3)}
    assert not warned(STARTS_LATE, over(Profile.UNKNOWN, "sb3", **trained))


def climbs_to(level, epsilon=0.05):
    """Means over ten episodes, the axis counting episodes."""
    returns = np.concatenate([np.linspace(-900, -105, 16), np.full(4, float(level))])
    steps = 10 * np.arange(1, 21)
    trace = over(
        Profile.OFF_POLICY,
        outcome__reward=made.series(returns, steps),
        exploration__epsilon=made.series(np.full(20, epsilon), steps),
    )
    measured = {**trace.measured, "outcome/reward": Measured("made", "avg reward", "")}
    return replace(trace, measured=measured, step_unit="episodes")


def test_returns_that_random_actions_do_not_change_run_to_a_time_limit():
    assert warned(CONSTANT, climbs_to(-100))
    assert not warned(CONSTANT, climbs_to(-100, epsilon=0.0))  # without them all may be alike
    assert not warned(CONSTANT, climbs_to(-13.4))  # a mean of episodes that differ
    assert not warned(CONSTANT, climbs_to(1))  # a goal that pays 1 is reached by each
    assert not warned(CONSTANT, climbs_to(-1))  # lost games


def stage(after, count=400):
    """Episodes that are learned within a twentieth of a run, and end at another level."""
    rng = np.random.default_rng(2)
    learned = 4.6 - 5.0 * np.exp(-np.arange(count) / 8.0)
    level = np.where(np.arange(count) < 0.6 * count, learned, after)
    return level + 0.15 * rng.standard_normal(count)


def test_the_gain_of_a_run_that_learns_at_once_is_measured_from_its_first_episodes():
    course = course_of(stage(3.4))
    assert course.total_gain > course.gain + 1.0
    assert course.keeps(0.3)


def test_a_harder_stage_is_no_collapse_and_a_lost_policy_is_one():
    assert not warned(COLLAPSE, over(outcome__return=stage(3.4)))
    assert warned(COLLAPSE, over(outcome__return=stage(0.3)))


def test_a_policy_is_not_called_certain_too_soon_where_half_of_its_gain_is_left():
    entropy = np.concatenate([np.linspace(1.1, 0.02, 40), np.full(360, 0.01)])
    entropy *= 1 + 0.01 * made.noise(400)
    harder = over(outcome__return=stage(3.4), exploration__entropy=entropy)
    assert not warned(ENTROPY_COLLAPSE, harder)


def test_a_policy_that_was_certain_of_its_best_did_not_lose_it_by_being_certain():
    entropy = np.concatenate([np.linspace(1.1, 0.02, 40), np.full(360, 0.01)])
    lost = over(outcome__return=stage(0.0), exploration__entropy=entropy)
    assert not warned(ENTROPY_COLLAPSE, lost)
    assert diagnose(lost).cases[0].rule.name == "return-collapse"


@pytest.mark.parametrize(("kl", "entropy", "expected"), [(32.0, 1e-6, True), (0.05, 0.1, False)])
def test_one_update_that_leaves_nothing_to_choose_waits_for_no_proof(kl, entropy, expected):
    kls = np.concatenate([[kl], np.zeros(ROWS - 1)])
    entropies = np.concatenate([[1.0], np.full(ROWS - 1, entropy)])
    trace = over(outcome__return=NOISY, policy__approx_kl=kls, exploration__entropy=entropies)
    assert warned(ENTROPY_COLLAPSE, trace) is expected


def test_a_gradient_of_exactly_zero_tells_though_the_states_of_a_batch_change_its_entropy():
    entropy = 1.09 + 0.004 * made.noise(ROWS, 6)
    still = over(
        outcome__return=NOISY,
        exploration__entropy=entropy,
        optimiser__grad_norm=np.zeros(ROWS),
    )
    assert warned(HARDLY_MOVE, still)
    moved = np.linspace(1.09, 1.0, ROWS)
    other = over(
        outcome__return=NOISY,
        exploration__entropy=moved,
        optimiser__grad_norm=np.zeros(ROWS),
    )
    assert not warned(HARDLY_MOVE, other)
