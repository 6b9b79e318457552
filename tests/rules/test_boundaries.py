"""The edges of rules' conditions: each test fails for a mutant that no other test noticed."""

import math
from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules import invariants, ledgers, shapes
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.curves import rises
from rlvitals.rules.data import impossible_value
from rlvitals.rules.exploration import entropy_collapse, exploration_never_ends
from rlvitals.rules.gains import gain
from rlvitals.rules.image_checks import image_checks
from rlvitals.rules.language import (
    experts_collapse,
    generation_starved,
    reference_kl_out_of_range,
    response_length_explodes,
    stop_reason_shifts,
    threshold_off_correctness,
    zero_variance_groups,
)
from rlvitals.rules.outcome import environment_changed
from rlvitals.rules.parts import unpaid_task
from rlvitals.rules.policy import action_collapse, kl_above_target, updates_hardly_move
from rlvitals.rules.reward import reward_spread_grows
from rlvitals.rules.rule import Clear, Finding, Undecided
from rlvitals.rules.throughput import memory_grows
from rlvitals.rules.untaught import dead
from rlvitals.rules.value import (
    critic_target_frozen,
    value_drifts_from_return,
    value_loss_explosion,
)
from rlvitals.rules.width import max_entropy
from rlvitals.types import Measured, Profile, Series, Table

COUNT = 120
EVEN = made.noise(COUNT, 3)
WORSE = np.linspace(0.6, 0.1, COUNT) + 0.02 * made.noise(COUNT, 5)


def grpo(settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, **metrics)


def test_a_stretch_goes_on_if_it_ends_within_the_last_window():
    values = np.ones(30)
    values[5:21] = 0.0
    assert shapes.below(made.series(values), 0.5, 10, share=1.0).goes_on
    values[20] = 1.0
    assert not shapes.below(made.series(values), 0.5, 10, share=1.0).goes_on


def test_a_small_loss_of_the_router_that_rises_is_judged_without_a_load():
    run = grpo(
        optimiser__router_loss=np.linspace(0.01, 0.1, COUNT), reward__component__correct=WORSE
    )
    assert isinstance(experts_collapse.RULE.judge(run), Finding)


def test_updates_that_hardly_move_name_the_kl_and_the_clip_fraction():
    run = made.trace(
        settings=made.POOR,
        policy__approx_kl=np.full(100, 1e-6),
        policy__clip_fraction=np.zeros(100),
        outcome__return=made.flat(),
    )
    summary = updates_hardly_move.RULE.judge(run).summary
    assert "0.00% of samples are clipped" in summary
    assert "KL per update is 1.0e-06 nats" in summary


def test_uniform_groups_are_split_by_the_mean_of_those_with_contrast():
    """0.6 of the groups are uniform; the other 0.4 have a mean of one half."""
    run = grpo(
        language__group_zero_std_share=np.full(COUNT, 0.6),
        reward__component__correct=np.full(COUNT, 0.5),
    )
    during = run["language/group_zero_std_share"]
    split = zero_variance_groups._split(run, during)
    assert np.isclose(split.right, 0.3)
    assert np.isclose(split.wrong, 0.3)


def test_the_hours_until_memory_is_full_need_times_at_both_ends_alone():
    share = made.series(np.linspace(20, 70, 200))
    times = np.maximum(36.0 * (np.arange(200) - 101), 0.0)  # two equal times begin the half
    run = made.trace(throughput__machine__ram_util=Series(share.steps, times, share.values))
    assert any(" h from now" in line for line in memory_grows.RULE.judge(run).evidence)


def test_an_outcome_that_rose_under_a_large_kl_and_fell_speaks_against_it():
    rose_and_fell = np.concatenate([made.rising(80, 200), made.rising(80, 200)[::-1]])
    run = made.trace(
        settings={"target_kl": 0.01},
        policy__approx_kl=np.full(160, 0.05),
        outcome__return=rose_and_fell,
    )
    counter = kl_above_target.RULE.judge(run).counter
    assert any(line.startswith("return went from") for line in counter)


def test_a_drift_has_no_scale_where_returns_do_not_vary():
    run = made.trace(
        value__mean=np.ones(60), value__return_mean=np.zeros(60), value__return_var=np.zeros(60)
    )
    assert not isinstance(value_drifts_from_return.RULE.judge(run), Finding)


def test_the_threshold_says_that_it_is_compared_with_the_sum():
    settings = {"reward_threshold": 0.5, "threshold_on": "total", "correctness": "exact"}
    run = grpo(
        settings,
        language__positive_share=np.full(COUNT, 0.9),
        reward__component__correct=np.full(COUNT, 0.2),
        outcome__accuracy=np.full(COUNT, 0.2),
    )
    evidence = threshold_off_correctness.RULE.judge(run).evidence
    assert "it is compared with the sum of all rewards" in evidence


def test_a_table_without_completions_does_not_hide_the_next():
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 100, 300)
    columns = {"completion": ["a" * n for n in lengths], "advantage": [float(n) for n in lengths]}
    tables = {
        "other": Table(np.arange(2), {"epoch": [1, 2]}),
        "completions": Table(np.arange(300), columns),
    }
    run = replace(grpo(), tables=tables)
    assert response_length_explodes._within_groups(run)


def test_groups_kept_are_too_few_from_where_both_bounds_are_crossed():
    kept = np.linspace(0.9, 0.02, COUNT)
    found = generation_starved.RULE.judge(
        grpo(language__kept_share=kept, reward__component__correct=WORSE)
    )
    limit = min(generation_starved.MIN_KEPT_GROUP_SHARE.default, 0.5 * 0.9)
    assert kept[found.began // made.STEP - 1] < limit


def test_a_flat_outcome_was_not_lost_before_entropy():
    entropy = made.series(np.concatenate([np.full(60, 0.69), np.full(60, 0.001)]))
    rose_and_fell = np.concatenate([np.linspace(20, 20.05, 60), np.full(60, 20.0)])
    run = made.trace(
        settings=made.POOR,
        exploration__entropy=entropy,
        outcome__return=rose_and_fell + 1e-3 * EVEN,
    )
    stretch = shapes.last_stretch_below(entropy, 0.1)
    assert not entropy_collapse._follows(run, stretch)


def test_a_reference_is_judged_by_its_kl_where_none_per_token_is_logged():
    run = made.trace(Profile.RLHF_PPO, policy__kl_to_reference=np.zeros(60))
    source = Measured("trl-ppo", "objective/kl", "a sum over the response")
    run = replace(run, measured={"policy/kl_to_reference": source})
    assert invariants.reference_follows(run) is not None


def test_a_part_that_is_sometimes_zero_has_a_weight():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=200), np.maximum(rng.normal(size=200), 0.0)
    run = grpo(
        outcome__reward=first + 2 * second,
        reward__component__a=first,
        reward__component__b=second,
    )
    assert ledgers.components(run) is not None


def test_a_loss_that_rose_with_the_returns_begins_where_both_did():
    loss, returns = np.ones(160), np.concatenate([np.full(30, 1.0), np.full(130, 50.0)])
    loss[90:] = 1e4
    returns[90:] = 5e4
    run = made.trace(
        value__loss=loss, value__return_mean=returns, outcome__return=returns + made.noise(160)
    )
    found = value_loss_explosion.RULE.judge(run)
    assert isinstance(found, Finding)
    assert found.began == 91 * made.STEP


def test_updates_are_compared_with_the_size_of_earlier_ones():
    """An estimate of the KL can be negative."""
    values = np.where(np.arange(60) < 58, -1.0, 0.05)
    series = made.series(values)
    assert environment_changed._updates_modest(
        series, int(series.steps[-1]), int(series.steps[-1]), 5, 0.02
    )


def test_evaluations_with_too_few_values_do_not_hide_the_next():
    run = grpo(
        outcome__reward=0.5 + 0.05 * made.noise(200),
        outcome__eval_accuracy=np.array([0.4, 0.5]),
        outcome__eval_success_rate=np.linspace(0.4, 0.7, 20) + 0.01 * made.noise(20, 6),
    )
    assert verdict_trend(run).metric == "outcome/eval_success_rate"


def test_a_bonus_for_entropy_that_pays_more_than_the_task_is_found():
    """A Gaussian in one dimension earns ln 2 a step for its entropy; the task pays 0.001."""
    found = exploration_never_ends.RULE.judge(
        made.trace(
            Profile.OFF_POLICY, {"env_id": "MountainCarContinuous-v0"},
            outcome__return=-1.0 + 0.01 * made.noise(100),
            outcome__episode_length=np.full(100, 999.0),
            exploration__entropy_coef=np.full(100, 1.0),
        )
    )  # fmt: skip
    assert isinstance(found, Finding)
    assert "earns 0.693 a step for its entropy, the task pays 0.001" in found.summary


def test_a_curve_measured_anew_has_left_its_first_value_behind_not_its_second():
    for first, second, has_risen in ((0.0, 9.0, True), (9.0, 0.0, False)):
        values = np.array([first, second, *np.full(18, 5.0)])
        assert rises(values, 0.0, -1.0, 1.0, plain=1e9, anew=True) is has_risen


def test_the_lower_tail_is_looked_at_where_the_highest_reward_is_not_logged():
    lowest = -3.0 + 0.2 * made.noise(120, 2)
    lowest[80:] -= 25.0
    score = np.linspace(0.0, 1.0, 120) + 0.05 * made.noise(120)
    given = {"outcome__score": score, "reward__std": np.full(120, 1.0), "reward__min": lowest}
    missing = made.trace(Profile.RLHF_PPO, **given)
    assert reward_spread_grows.RULE.judge(missing).metric == "reward/min"
    level = made.trace(Profile.RLHF_PPO, reward__max=score, **given)  # no distance: no scale
    assert reward_spread_grows.RULE.judge(level).metric == "reward/min"


def test_without_a_clock_no_hours_are_told():
    run = made.trace(throughput__machine__ram_util=np.linspace(20, 70, 200))
    assert not any(" h from now" in line for line in memory_grows.RULE.judge(run).evidence)


def test_a_metric_that_is_not_known_does_not_hide_an_impossible_one():
    run = made.trace(policy__clip_fraction=1.3 + 0.01 * np.abs(made.noise(100)))
    series = {"of/my_own": made.series(np.ones(100)), **run.series}
    found = impossible_value.RULE.judge(replace(run, series=series))
    assert found.metric == "policy/clip_fraction"


@pytest.mark.parametrize(("kinds", "nats"), [(4, math.log(4)), (1, None)])
def test_the_actions_that_were_chosen_bound_the_entropy(kinds, nats):
    bound = max_entropy(made.trace(policy__action=np.arange(100.0) % kinds))
    assert (None if bound is None else bound.value) == nats


def test_a_discount_that_is_not_known_is_the_usual_one():
    """|Q| is a tenth of what 150 steps pay: too much where the next 100 count."""
    run = made.trace(
        Profile.OFF_POLICY, {"env_id": "Pendulum-v1"},
        outcome__return=-1200 + made.noise(100), outcome__episode_length=np.full(100, 200.0),
        value__loss=np.geomspace(1, 1e-4, 100), value__q_mean=np.full(100, -90.0),
    )  # fmt: skip
    assert isinstance(critic_target_frozen.RULE.judge(run), Clear)
    known = replace(run, settings={**run.settings, "gamma": 1.0})
    assert isinstance(critic_target_frozen.RULE.judge(known), Finding)


def test_the_share_of_a_collapsed_action_is_its_last():
    rng = np.random.default_rng(0)
    early = rng.choice(4, 400).astype(float)
    actions = np.concatenate((early, np.where(rng.random(1600) < 0.95, 0.0, early.repeat(4))))
    found = action_collapse.RULE.judge(
        made.trace(Profile.SCHEDULER_PPO, policy__action=actions, outcome__reward=made.flat(2000))
    )
    assert found.observed == pytest.approx(0.96, abs=0.03)


def test_equal_levels_seldom_differ_beyond_noise():
    """One block differs from three by the noise of both: counted too small it differs often."""
    rng = np.random.default_rng(0)
    runs = [rng.standard_normal(count) for count in (60, 200) for _ in range(1500)]
    assert sum(gain(values).proven for values in runs) <= 3


def test_the_checks_of_images_count_whole_answers():
    steps = made.STEP * np.arange(1, 5)
    logged = {
        "language__image_questions": np.full(4, 30.0),
        "language__image_right_own": np.full(4, 0.51),
        "language__image_right_other": np.full(4, 0.33),
        "language__image_marks_changed": np.full(4, 0.27),
    }  # fmt: skip
    checks = image_checks(grpo(**{k: made.series(v, steps) for k, v in logged.items()}))
    assert (checks.right_own, checks.right_other, checks.flips) == (61, 40, 32)
    logged["language__image_questions"][1] = 0.0  # a check that asked nothing
    refused = image_checks(grpo(**{k: made.series(v, steps) for k, v in logged.items()}))
    assert isinstance(refused, Undecided)


def test_an_unpaid_task_is_the_same_whatever_the_order_of_its_columns():
    paid = np.linspace(0.0, 0.15, COUNT) + 0.01 * EVEN
    given = {
        "reward__component__tool_reward": np.zeros(COUNT),
        "reward__component__answer_task_reward": np.zeros(COUNT),
        "reward__component__format_reward": paid,
    }
    names = [
        unpaid_task(grpo(outcome__reward=paid, **dict(items)))[0]
        for items in (list(given.items()), list(given.items())[::-1])
    ]
    assert names[0] == names[1]


def test_what_a_dead_policy_earns_is_counted_from_its_worst():
    half = COUNT // 2
    rewards = np.r_[np.tile([98.0, 100.5], half // 2), np.full(COUNT - half, 98.8)]
    run = grpo(
        outcome__reward=rewards, language__truncated_share=np.full(COUNT, 1.0),
        exploration__entropy=np.r_[np.linspace(0.9, 0.01, half), np.full(COUNT - half, 0.001)],
        policy__kl_to_reference_per_token=np.full(COUNT, 2.3),
    )  # fmt: skip
    assert dead(run)


def test_reasons_to_stop_that_are_counted_are_no_shares():
    """The first row counts nothing."""
    counts = {"stop": np.r_[0.0, np.full(COUNT - 1, 30.0)], "length": np.zeros(COUNT)}
    run = grpo(**{f"language__stop_reason__{name}": values for name, values in counts.items()})
    assert "logged as counts" in stop_reason_shifts.RULE.judge(run).why


@pytest.mark.parametrize(("last", "answer"), [(0.12, Clear), (0.19, Finding)])
def test_kl_that_grows_by_a_fifth_is_let_be(last, answer):
    kl = np.r_[np.full(COUNT // 2, 0.1), np.linspace(0.1, last, COUNT // 2)]
    run = grpo(outcome__reward=WORSE, policy__kl_to_reference_per_token=kl)
    assert isinstance(reference_kl_out_of_range.RULE.judge(run), answer)
