"""Rules on asynchronous and grouped training: limits by precision, stale samples, baselines."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.language import group_baseline_missing, sampler_mismatch, samples_stale
from rlvitals.rules.optimiser import gradient_explosion
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Measured, Profile

COUNT = 120
WORSE = np.linspace(0.6, 0.1, COUNT) + 0.02 * made.noise(COUNT, 5)
BETTER = np.linspace(0.1, 0.8, COUNT) + 0.02 * made.noise(COUNT, 5)


def grpo(settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, **metrics)


def near(level, seed=1, spread=0.1):
    """Positive numbers around a level."""
    return level * np.exp(spread * made.noise(COUNT, seed))


@pytest.mark.parametrize(
    ("settings", "finds"),
    [
        ({}, False),
        ({"dtype": "torch.float32"}, True),
        ({"model.dtype": "fp32", "sampler.dtype": "float32"}, True),
        ({"model.dtype": "float32", "sampler.dtype": "bfloat16"}, False),
    ],
)
def test_float32_on_both_sides_agrees_ten_times_better(settings, finds):
    run = grpo(settings, policy__sampler_kl=near(0.004), outcome__reward=WORSE)
    assert isinstance(sampler_mismatch.RULE.judge(run), Finding) is finds


@pytest.mark.parametrize(
    ("settings", "finds"),
    [
        ({}, True),
        ({"quantization": "fp8"}, False),
        ({"model.path": "org/model-awq"}, False),
        ({"load_in_4bit": True}, False),
        ({"load_in_4bit": False}, True),
    ],
)
def test_a_quantised_sampler_is_judged_loosely(settings, finds):
    run = grpo(settings, policy__sampler_kl=near(0.03), outcome__reward=WORSE)
    assert isinstance(sampler_mismatch.RULE.judge(run), Finding) is finds


@pytest.mark.parametrize(
    ("level", "measures", "severity"),
    [
        (0.3, {"policy__sampler_ess": 1 - near(0.5, 2)}, Severity.WARNING),
        (0.3, {}, Severity.NOTE),
        (0.05, {"policy__sampler_ess": 1 - near(0.5, 2)}, Severity.NOTE),
    ],
)
def test_a_gap_that_no_rounding_gives_is_a_warning_though_rewards_rise(level, measures, severity):
    run = grpo(policy__sampler_kl=near(level), outcome__reward=BETTER, **measures)
    assert sampler_mismatch.RULE.judge(run).severity is severity


def test_responses_of_several_versions_of_the_weights_are_named_beside_a_gap():
    run = grpo(policy__sampler_kl=near(0.05), policy__sampler_mixed_versions=near(0.4))
    found = sampler_mismatch.RULE.judge(run)
    assert any("40% of responses mix versions" in sentence for sentence in found.evidence)
    assert found.causes[0] == sampler_mismatch.STALE_CAUSE


def test_what_a_correction_masks_is_a_measure_of_its_own():
    tokens = grpo(policy__sampler_rejected_tokens=near(0.2), outcome__reward=WORSE)
    assert "20% of tokens" in sampler_mismatch.RULE.judge(tokens).evidence[0]
    few = grpo(policy__sampler_rejected_sequences=near(0.1), outcome__reward=WORSE)
    assert isinstance(sampler_mismatch.RULE.judge(few), Clear)
    many = grpo(policy__sampler_rejected_sequences=near(0.5), outcome__reward=WORSE)
    assert sampler_mismatch.RULE.judge(many).metric == "policy/sampler_rejected_sequences"


def test_a_lag_is_held_against_the_runs_own_limit():
    lag = {"optimiser__policy_lag": near(3.0), "outcome__reward": WORSE}
    assert isinstance(samples_stale.RULE.judge(grpo(**lag)), Clear)
    own = samples_stale.RULE.judge(grpo({"max_policy_lag": 2}, **lag))
    assert own.severity is Severity.WARNING
    assert own.bound.origin == "this run's max_policy_lag"
    better = grpo({"max_policy_lag": 2}, **{**lag, "outcome__reward": BETTER})
    assert samples_stale.RULE.judge(better).severity is Severity.NOTE
    old = grpo(**{**lag, "optimiser__policy_lag": near(20.0)})
    assert samples_stale.RULE.judge(old).severity is Severity.WARNING


def test_a_lag_that_is_over_is_no_fault():
    lag = np.r_[np.full(30, 20.0), np.ones(COUNT - 30)]
    run = grpo(optimiser__policy_lag=lag, outcome__reward=WORSE)
    assert isinstance(samples_stale.RULE.judge(run), Clear)


def test_a_lag_in_samples_has_no_limit_of_its_own():
    name = "optimiser/policy_lag"
    run = grpo(optimiser__policy_lag=near(600.0))
    run = replace(run, measured={name: Measured("pipeline-rl", "stats/lag", "samples")})
    assert isinstance(samples_stale.RULE.judge(run), Undecided)


def test_rollouts_discarded_for_their_age():
    run = grpo(
        optimiser__policy_lag=near(1.0),
        language__cancelled_share=near(0.5),
        outcome__reward=WORSE,
    )
    found = samples_stale.RULE.judge(run)
    assert found.metric == "language/cancelled_share"
    assert "50%" in found.summary


def ends(scale=1.0, shift=0.0, **more):
    high, low = near(0.8, 2), -near(0.3, 3)
    return {
        "reward__max": high,
        "reward__min": low,
        "policy__advantage_max": scale * high + shift,
        "policy__advantage_min": scale * low + shift,
        **more,
    }


def test_advantages_that_are_rewards_have_no_baseline():
    found = group_baseline_missing.RULE.judge(grpo(**ends(outcome__reward=WORSE)))
    assert found.severity is Severity.WARNING
    assert found.observed == 1.0
    rises = group_baseline_missing.RULE.judge(grpo(**ends(outcome__reward=BETTER)))
    assert rises.severity is Severity.NOTE
    for quiet in (ends(scale=2.0), ends(shift=-0.1)):
        assert isinstance(group_baseline_missing.RULE.judge(grpo(**quiet)), Clear)


def test_rewards_that_never_differ_say_nothing_of_a_baseline():
    same = {key: np.full(COUNT, 0.5) for key in ends()}
    assert isinstance(group_baseline_missing.RULE.judge(grpo(**same)), Undecided)


def test_an_estimator_without_a_baseline_is_meant():
    run = grpo({"algorithm": "reinforce"}, **ends())
    assert isinstance(group_baseline_missing.RULE.judge(run), Undecided)


def test_gradients_of_the_few_batches_with_contrast_are_no_explosion():
    rng = np.random.default_rng(0)
    contrast = rng.random(COUNT) < 0.2
    norms = np.where(contrast, 0.5, 0.002) * np.exp(0.2 * made.noise(COUNT))
    metrics = {"optimiser__grad_norm": norms, "outcome__reward": WORSE}
    alike = np.where(contrast, 0.5, 1.0)
    assert gradient_explosion.RULE.judge(grpo(**metrics)).severity >= Severity.WARNING
    quiet = gradient_explosion.RULE.judge(grpo(**metrics, reward__group_zero_std=alike))
    assert not isinstance(quiet, Finding) or quiet.severity is Severity.NOTE
