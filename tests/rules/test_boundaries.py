"""The edges of rules' conditions: each test fails for a mutant that no other test noticed."""

from dataclasses import replace

import made_traces as made
import numpy as np

from rlvitals.rules import invariants, ledgers, shapes
from rlvitals.rules.exploration import entropy_collapse
from rlvitals.rules.language import (
    experts_collapse,
    generation_starved,
    response_length_explodes,
    threshold_off_correctness,
    zero_variance_groups,
)
from rlvitals.rules.outcome import environment_changed
from rlvitals.rules.policy import kl_above_target, updates_hardly_move
from rlvitals.rules.rule import Finding
from rlvitals.rules.throughput import memory_grows
from rlvitals.rules.value import value_drifts_from_return, value_loss_explosion
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
    limit = min(generation_starved.KEPT.default, 0.5 * 0.9)
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
