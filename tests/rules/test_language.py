"""The language rules: the traps they must not fall into, and the bounds they keep."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest
from loading import load

from rlvitals.rules import CATALOGUE
from rlvitals.rules.language import (
    eos_missing,
    kl_coefficient_runaway,
    kl_penalty_dominates,
    no_gradient,
    positive_share_falls,
    reference_kl_out_of_range,
    response_length_explodes,
    responses_truncated,
    sampler_mismatch,
    samples_all_filtered,
    threshold_off_correctness,
    tool_use_fades,
    zero_variance_groups,
)
from rlvitals.rules.reward import constant_reward
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Histogram, Profile, Table

OURS = [
    rule
    for rule in CATALOGUE
    if ".language." in rule.check.__module__ or rule.name == "constant-reward"
]
LANGUAGE = (Profile.GRPO, Profile.PSR, Profile.NSR, Profile.W_REINFORCE, Profile.RLHF_PPO)


def share(low, high, count=150, seed=3, spread=0.05):
    """A share of right answers that goes from low to high."""
    return np.clip(np.linspace(low, high, count) + spread * made.noise(count, seed), 0, 1)


def level(value, count=150, seed=4, spread=0.02):
    return value + spread * made.noise(count, seed)


def grpo(**metrics):
    return made.trace(Profile.GRPO, **metrics)


# zero-variance-groups


def test_trap_a_late_healthy_run_without_contrast_is_a_note_at_most():
    p = share(0.3, 0.9)
    run = grpo(reward__group_zero_std=share(0.2, 0.86, seed=5), reward__component__correct=p)
    found = zero_variance_groups.RULE.judge(run)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    assert found.counter


def test_two_completions_per_prompt_share_a_reward_half_of_the_time():
    run = made.trace(
        Profile.GRPO,
        {"num_generations": 2},
        reward__group_zero_std=level(0.58),
        reward__component__correct=level(0.5),
    )
    assert isinstance(zero_variance_groups.RULE.judge(run), Clear)


def test_solved_and_hopeless_groups_get_opposite_remedies():
    hopeless = grpo(
        reward__group_zero_std=level(0.95), reward__component__correct=level(0.05, spread=0.005)
    )
    solved = grpo(
        reward__group_zero_std=level(0.95), reward__component__correct=level(0.93, spread=0.005)
    )
    wrong = zero_variance_groups.RULE.judge(hopeless)
    right = zero_variance_groups.RULE.judge(solved)
    assert wrong.severity is Severity.ERROR
    assert right.severity is Severity.NOTE  # what is solved has nothing left to teach: no fault
    assert "check the verifier" in wrong.remedies[0]
    assert "harder prompts" in right.remedies[0]


def test_a_dense_bonus_does_not_hide_that_no_answer_is_ever_right():
    run = grpo(
        reward__group_zero_std=np.zeros(150),
        reward__component__correct=np.zeros(150),
        reward__component_std__correct=np.zeros(150),
        reward__component__length=share(0.1, 0.9),
    )
    found = zero_variance_groups.RULE.judge(run)
    assert found.metric == "reward/component_std/correct"
    assert found.severity is Severity.WARNING


def test_logged_counts_of_solved_and_hopeless_groups_are_taken_as_they_are():
    run = grpo(
        reward__group_all_wrong=level(0.8, spread=0.01),
        reward__group_all_right=level(0.1, spread=0.01),
        outcome__reward=level(0.15, spread=0.005),
    )
    found = zero_variance_groups.RULE.judge(run)
    assert found.severity is Severity.ERROR
    assert found.observed == pytest.approx(0.9, abs=0.02)
    assert "10% of groups are all right and 80% all wrong" in found.evidence[0]
    one_kind = grpo(reward__group_all_wrong=level(0.8))
    assert isinstance(zero_variance_groups.RULE.judge(one_kind), Undecided)


def test_trap_u_shaped_difficulty_leaves_groups_without_contrast_in_a_run_that_learns():
    # Prompts of success rate Beta(0.8, 0.2), four completions: seven groups in ten are uniform.
    dice = np.random.default_rng(0)
    p = dice.beta(0.8, 0.2, (150, 64))
    uniform = (p**4 + (1 - p) ** 4).mean(axis=1)
    run = grpo(reward__group_zero_std=uniform, reward__component__correct=share(0.6, 0.8))
    found = zero_variance_groups.RULE.judge(run)
    assert found.observed > 0.6
    assert found.severity is Severity.NOTE


# samples-all-filtered


def test_trap_no_negative_among_four_for_three_updates_is_ordinary_at_80_percent():
    for seed in range(20):
        negatives = np.random.default_rng(seed).binomial(4, 0.2, 300).astype(float)
        run = made.trace(
            Profile.NSR,
            {"num_generations": 4},
            language__negative_samples=negatives,
            language__negative_share=negatives / 4,
        )
        assert isinstance(samples_all_filtered.RULE.judge(run), Clear), seed


def test_unequal_prompts_make_empty_batches_ordinary_whatever_their_size():
    # Half of the prompts are always right: batches of one prompt without negatives are common.
    for seed in range(20):
        right = np.random.default_rng(seed).random(300) < 0.5
        run = made.trace(
            Profile.NSR,
            {"num_generations": 8},
            language__negative_samples=np.where(right, 0.0, 60.0),
            language__negative_share=np.where(right, 0.0, 60 / 64),
        )
        assert isinstance(samples_all_filtered.RULE.judge(run), Clear), seed


def test_nsr_that_runs_out_of_wrong_answers_is_a_note():
    right = np.concatenate([share(0.7, 0.95, 60), np.ones(90)])
    negatives = np.round(64 * (1 - right))
    run = made.trace(
        Profile.NSR, language__negative_samples=negatives, reward__component__correct=right
    )
    found = samples_all_filtered.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert "too easy" in found.summary


@pytest.mark.parametrize(
    ("profile", "side", "advice"),
    [
        (Profile.PSR, "positive", "lower reward_threshold"),
        (Profile.NSR, "negative", "raise reward_threshold"),
    ],
)
def test_the_threshold_moves_the_other_way_in_nsr(profile, side, advice):
    run = made.trace(
        profile,
        **{f"language__{side}_samples": np.zeros(60), "reward__component__correct": level(0.3, 60)},
    )
    found = samples_all_filtered.RULE.judge(run)
    assert found.severity is Severity.ERROR
    assert any(advice in remedy for remedy in found.remedies)


def test_a_rate_of_a_half_makes_a_few_empty_batches_of_64_a_fault():
    counts = np.concatenate([np.full(80, 32.0), np.zeros(10)])
    run = made.trace(
        Profile.PSR,
        {"num_generations": 8},
        language__positive_samples=counts,
        language__positive_share=counts / 64,
    )
    found = samples_all_filtered.RULE.judge(run)
    assert isinstance(found, Finding)
    assert found.began == 81 * made.STEP


# NSR's reward


def test_trap_negative_reward_in_nsr_is_no_fault_of_any_rule():
    right = share(0.3, 0.7)
    run = made.trace(
        Profile.NSR,
        {"num_generations": 8, "reward_threshold": 0.5},
        language__filtered_reward=-(1 - right),
        language__negative_samples=np.round(64 * (1 - right)),
        language__negative_share=1 - right,
        reward__component__correct=right,
        outcome__reward=right - 1,
        reward__group_zero_std=level(0.2),
        language__length_mean=level(100.0),
        language__truncated_share=np.zeros(150),
    )
    for rule in CATALOGUE:
        if rule.applies(Profile.NSR):
            assert not isinstance(rule.judge(run), Finding), rule.name


# positive-share-falls, threshold-off-correctness


def test_trap_a_positive_share_that_rises_is_what_training_is_for():
    run = made.trace(Profile.W_REINFORCE, language__positive_share=share(0.34, 0.83))
    assert isinstance(positive_share_falls.RULE.judge(run), Clear)


def test_a_falling_share_is_told_from_negatives_and_from_counts():
    p = share(0.7, 0.2)
    for metrics in (
        {"language__negative_share": 1 - p},
        {"language__positive_samples": 64 * p, "language__negative_samples": 64 * (1 - p)},
    ):
        run = made.trace(Profile.W_REINFORCE, reward__component__correct=p, **metrics)
        found = positive_share_falls.RULE.judge(run)
        assert found.severity is Severity.WARNING
        assert found.observed == pytest.approx(-0.4, abs=0.05)  # means of the first and last fifth


def test_slow_noise_after_a_rise_is_no_fall():
    for seed in range(30):
        slow = np.zeros(150)
        for i, kick in enumerate(made.noise(150, seed)[1:], start=1):
            slow[i] = 0.95 * slow[i - 1] + 0.31 * kick
        p = np.clip(0.7 - 0.4 * np.exp(-np.arange(150) / 30) + 0.05 * slow, 0, 1)
        counts = np.random.default_rng(seed).binomial(64, p) / 64
        run = made.trace(Profile.PSR, language__positive_share=counts)
        assert isinstance(positive_share_falls.RULE.judge(run), Clear), seed


def test_half_of_the_best_lost_is_a_fall_although_the_start_was_low():
    p = np.concatenate([share(0.2, 0.8, 75), share(0.8, 0.2, 75)])
    run = made.trace(Profile.PSR, language__positive_share=p, reward__component__correct=p)
    found = positive_share_falls.RULE.judge(run)
    assert isinstance(found, Finding)
    assert "at its best" in found.summary


def test_all_samples_positive_is_right_where_all_answers_are():
    run = made.trace(
        Profile.PSR,
        language__positive_share=np.ones(60),
        reward__component__correct=level(0.97, 60, spread=0.01),
    )
    assert isinstance(threshold_off_correctness.RULE.judge(run), Clear)


# reference-kl-out-of-range


def test_trap_a_kl_of_6_per_sequence_is_trls_default_target():
    run = made.trace(
        Profile.RLHF_PPO,
        {"max_completion_length": 53, "kl_coef": 0.05},
        policy__kl_to_reference=np.linspace(0, 6, 150) + 0.2 * made.noise(150),
        outcome__score=np.linspace(0, 2, 150) + 0.1 * made.noise(150, 1),
    )
    assert isinstance(reference_kl_out_of_range.RULE.judge(run), Clear)


@pytest.mark.parametrize(("spread", "told"), [(0.0, False), (0.3, True)])
def test_a_policy_stays_where_it_is_if_no_reward_differs(spread, told):
    run = made.trace(
        Profile.RLHF_PPO,
        policy__kl_to_reference=np.zeros(100),
        language__length_mean=np.full(100, 3.0),
        outcome__score=np.zeros(100) if not spread else level(0.5, 100),
        reward__std=np.full(100, spread),
    )
    found = reference_kl_out_of_range.RULE.judge(run)
    assert isinstance(found, Finding) is told


def test_the_same_kl_per_sequence_is_far_for_short_responses_only():
    kl, score = level(9.0, spread=0.3), level(1.0)
    short, long = (
        made.trace(
            Profile.RLHF_PPO,
            policy__kl_to_reference=kl,
            outcome__score=score,
            language__length_mean=np.full(150, length),
        )
        for length in (10.0, 500.0)
    )
    assert reference_kl_out_of_range.RULE.judge(short).severity is Severity.WARNING
    assert isinstance(reference_kl_out_of_range.RULE.judge(long), Clear)


def test_kl_that_goes_on_growing_while_the_score_stands_still_is_over_optimisation():
    score = np.concatenate([level(1.0, 75), level(1.0, 75, 9)])
    run = made.trace(
        Profile.RLHF_PPO,
        {"max_completion_length": 100},
        policy__kl_to_reference=np.linspace(1, 15, 150) + 0.2 * made.noise(150),
        outcome__score=score,
    )
    found = reference_kl_out_of_range.RULE.judge(run)
    assert found.severity is Severity.WARNING
    assert "over-optimisation" in found.causes[0]


def test_kl_of_exactly_zero_while_gradients_flow_means_the_reference_is_the_policy():
    run = grpo(
        policy__kl_to_reference_per_token=np.zeros(100),
        optimiser__grad_norm=np.ones(100),
        reward__component__correct=share(0.2, 0.3, 100),
    )
    found = reference_kl_out_of_range.RULE.judge(run)
    assert "the policy itself" in found.summary


def test_the_runs_own_kl_target_is_the_bound_where_it_is_set():
    run = made.trace(
        Profile.RLHF_PPO,
        {"kl_target": 2.0},
        policy__kl_to_reference=level(5.0),
        outcome__score=level(1.0),
    )
    assert reference_kl_out_of_range.RULE.judge(run).bound.origin == "the run's kl_target"


def test_a_target_is_in_the_unit_that_the_run_logs():
    run = made.trace(
        Profile.GRPO,
        {"kl_target": 0.02},
        policy__kl_to_reference_per_token=level(0.08, spread=0.005),
        outcome__reward=level(1.0),
    )
    found = reference_kl_out_of_range.RULE.judge(run)
    assert "nats per token at most, target 0.02" in found.summary
    assert found.severity is Severity.WARNING


def test_log_probabilities_under_both_models_tell_kl_where_it_is_not_logged():
    def run(**shift):
        return grpo(
            language__logprobs=level(-0.5),
            reward__component__correct=level(0.3),
            **shift,
        )

    far = reference_kl_out_of_range.RULE.judge(run(language__ref_logprobs=level(-1.2)))
    assert far.severity is Severity.WARNING
    assert far.observed == pytest.approx(0.7, abs=0.05)
    assert any("under the reference" in words for words in far.evidence)
    near = reference_kl_out_of_range.RULE.judge(run(language__ref_logprobs=level(-0.55)))
    assert isinstance(near, Clear)
    assert isinstance(reference_kl_out_of_range.RULE.judge(run()), Undecided)


def test_histograms_of_log_probabilities_show_the_shift():
    def drawn(middle):
        edges = np.array([middle - 1.0, middle, middle + 1.0])
        return [Histogram(i, np.nan, edges, np.array([5.0, 5.0])) for i in range(1, 41)]

    run = made.trace(
        Profile.RLHF_PPO,
        policy__kl_to_reference_per_token=level(0.7, 40),
        outcome__score=level(1.0, 40),
    )
    both = {"objective/logprobs": drawn(-0.5), "objective/ref_logprobs": drawn(-1.2)}
    found = reference_kl_out_of_range.RULE.judge(replace(run, histograms=both))
    assert any("from -0.5 to -0.5" in words for words in found.evidence)


def test_trap_a_kl_of_1e_4_per_token_is_where_language_models_with_verified_rewards_live():
    kl = np.abs(level(5e-5, spread=2e-5))
    learns = grpo(policy__kl_to_reference_per_token=kl, reward__component__correct=share(0.2, 0.7))
    assert isinstance(reference_kl_out_of_range.RULE.judge(learns), Clear)


def test_trap_bfloat16_weights_that_do_not_change_are_named_where_gradients_flow():
    run = grpo(
        policy__kl_to_reference_per_token=np.abs(level(1e-6, spread=1e-7)),
        optimiser__grad_norm=np.ones(150),
        optimiser__learning_rate=np.full(150, 1e-6),
        reward__component__correct=level(0.3),
    )
    found = reference_kl_out_of_range.RULE.judge(run)
    assert found.severity is Severity.WARNING
    assert "bfloat16" in found.causes[0]
    assert any("1e-06" in words for words in found.evidence)


def test_recorded_negative_kl_is_named_and_noise_around_zero_is_not():
    hotter = load("reference-kl-out-of-range", "negative")
    found = reference_kl_out_of_range.RULE.ask(hotter)
    assert "below zero" in found.summary
    assert found.severity is Severity.WARNING
    assert "temperature" in found.causes[0]
    ordinary = reference_kl_out_of_range.RULE.ask(
        load("reference-kl-out-of-range", "never-positive")
    )
    assert isinstance(ordinary, Clear)


def test_single_negative_batches_of_k1_are_ordinary():
    run = made.trace(
        Profile.RLHF_PPO,
        policy__kl_to_reference=0.05 + 0.3 * made.noise(100),
        outcome__score=level(1.0, 100),
    )
    assert isinstance(reference_kl_out_of_range.RULE.judge(run), Clear)


@pytest.mark.parametrize(("mean", "severity"), [(-0.5, Severity.NOTE), (-1.5, Severity.WARNING)])
def test_a_negative_mean_is_a_note_and_below_trls_limit_a_warning(mean, severity):
    run = made.trace(
        Profile.RLHF_PPO,
        policy__kl_to_reference=mean + 0.3 * made.noise(100),
        outcome__score=np.linspace(0, 1, 100),
    )
    assert reference_kl_out_of_range.RULE.judge(run).severity is severity


@pytest.mark.parametrize(("mean", "expected"), [(-20.0, Finding), (-0.3, Undecided)])
def test_a_kl_that_wanders_far_below_zero_needs_no_interval(mean, expected):
    slow = np.cos(np.linspace(0, 5 * np.pi, 400))  # of the policy: no KL of any policy is below 0
    kl = mean * (1 - 1.3 * slow) + 0.01 * made.noise(400)
    run = made.trace(Profile.RLHF_PPO, policy__kl_to_reference=kl)
    answer = reference_kl_out_of_range.RULE.judge(run)
    assert isinstance(answer, expected)
    if expected is Finding:
        assert answer.severity is Severity.WARNING
        assert "below 1 in 20,000" in answer.evidence[0]


# kl-coefficient-runaway, kl-penalty-dominates


def test_a_coefficient_that_brings_kl_down_does_its_work():
    coefficient = np.linspace(0.01, 0.2, 100)
    for kl, expected in ((np.linspace(20, 6, 100), Clear), (np.full(100, 20.0), Finding)):
        run = made.trace(
            Profile.RLHF_PPO,
            policy__kl_to_reference=kl,
            policy__kl_coef=coefficient,
            outcome__score=level(1.0, 100),
        )
        assert isinstance(kl_coefficient_runaway.RULE.judge(run), expected)


def test_trap_an_offset_of_the_score_says_nothing_about_the_penalty():
    kl = np.abs(np.linspace(0, 6, 100) + 0.1 * made.noise(100))
    for offset in (-5.0, 0.0, 5.0):
        run = made.trace(
            Profile.RLHF_PPO,
            {"kl_coef": 0.05},
            policy__kl_to_reference=kl,
            reward__non_score=-0.05 * kl,
            outcome__score=offset + np.linspace(0, 2, 100) + 0.1 * made.noise(100, 2),
        )
        assert isinstance(kl_penalty_dominates.RULE.judge(run), Clear), offset


def test_the_penaltys_sign_and_coefficient_are_checked_by_the_identity():
    kl = np.abs(1 + 0.5 * made.noise(100))
    run = made.trace(
        Profile.RLHF_PPO,
        {"kl_coef": 0.05},
        policy__kl_to_reference=kl,
        reward__non_score=-5.0 * kl,
        outcome__score=level(0.2, 100),
    )
    found = kl_penalty_dominates.RULE.judge(run)
    assert found.severity is Severity.WARNING
    assert "penalty / KL is 5, but the run's kl_coef is 0.05" in found.evidence[0]


# Lengths and endings


def test_trap_length_that_doubles_with_right_answers_is_reasoning():
    run = grpo(
        language__length_mean=np.linspace(300, 1500, 150) + 20 * made.noise(150),
        language__truncated_share=np.full(150, 0.02),
        reward__component__correct=share(0.2, 0.7),
        outcome__reward=share(0.2, 0.7),
    )
    assert isinstance(response_length_explodes.RULE.judge(run), Clear)


def grown(**more):
    return grpo(
        language__length_mean=np.linspace(300, 1500, 150) + 20 * made.noise(150),
        language__truncated_share=np.full(150, 0.02),
        **more,
    )


def test_trap_two_trends_that_rise_together_are_no_length_bias():
    # Their correlation is above 0.9, and neither is the other's cause.
    right = share(0.2, 0.7)
    run = grown(reward__component__correct=right, outcome__reward=right)
    assert np.corrcoef(run["language/length_mean"].values, right)[0, 1] > 0.9
    assert isinstance(response_length_explodes.RULE.judge(run), Clear)


def test_length_that_grows_while_an_evaluation_falls_is_noted():
    run = grown(
        reward__component__correct=share(0.2, 0.7), outcome__eval_reward=share(0.6, 0.2, 40)
    )
    found = response_length_explodes.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert any("held-out reward gets worse" in words for words in found.evidence)


@pytest.mark.parametrize(("slope", "word"), [(0.01, "longer"), (-0.01, "shorter"), (0.0, "")])
def test_the_correlation_of_length_and_advantage_within_groups_is_given(slope, word):
    dice = np.random.default_rng(1)
    lengths = dice.integers(10, 400, 400)
    advantages = slope * (lengths - 200) + dice.standard_normal(400)
    table = Table(
        np.repeat(np.arange(1, 51), 8),
        {"completion": ["x" * n for n in lengths], "advantage": advantages.tolist()},
    )
    run = grown(reward__component__correct=level(0.3))
    found = response_length_explodes.RULE.judge(replace(run, tables={"completions": table}))
    said = [words for words in found.evidence if "correlation" in words]
    assert bool(said) is bool(word)
    assert all(word in words for words in said)


def test_length_that_is_paid_while_right_answers_fall_is_a_bias():
    lengths = np.linspace(300, 1500, 150) + 20 * made.noise(150)
    run = grpo(
        language__length_mean=lengths,
        reward__component__correct=share(0.6, 0.2),
        outcome__reward=lengths / 300,
    )
    assert response_length_explodes.RULE.judge(run).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("right", "cut", "severity"),
    [
        (share(0.2, 0.7), 0.9, Severity.NOTE),
        (share(0.3, 0.3, spread=0.01), 0.5, Severity.WARNING),
        (share(0.3, 0.3, spread=0.01), 0.95, Severity.ERROR),
    ],
)
def test_right_answers_decide_how_bad_truncation_is(right, cut, severity):
    run = grpo(language__truncated_share=np.full(150, cut), reward__component__correct=right)
    assert responses_truncated.RULE.judge(run).severity is severity


def test_end_tokens_that_vanish_while_the_score_stands_still_are_an_error():
    run = made.trace(
        Profile.RLHF_PPO,
        language__eos_tokens=np.concatenate([np.full(40, 64.0), np.zeros(60)]),
        outcome__score=level(1.0, 100),
    )
    assert eos_missing.RULE.judge(run).severity is Severity.ERROR


def test_a_run_that_never_had_end_tokens_is_a_note_that_asks_for_their_id():
    run = made.trace(Profile.RLHF_PPO, language__eos_tokens=np.zeros(100))
    found = eos_missing.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert found.causes[0] == eos_missing.EOS_IS_PAD_CAUSE
    few = np.where(np.arange(100) % 30 == 29, 1.0, 0.0)
    now_and_then = made.trace(Profile.RLHF_PPO, language__eos_tokens=few)
    assert isinstance(eos_missing.RULE.judge(now_and_then), Undecided)


# constant-reward


def test_trap_step_rewards_without_spread_are_cartpole():
    run = made.trace(reward__std=np.zeros(100), outcome__return=made.rising())
    assert isinstance(constant_reward.RULE.judge(run), Clear)


def test_trap_a_return_that_climbed_to_its_ceiling_is_convergence():
    run = made.trace(
        settings={"env_id": "CartPole-v1"}, outcome__return=np.minimum(made.rising(100, 900), 500.0)
    )
    assert isinstance(constant_reward.RULE.judge(run), Clear)


def test_one_odd_sample_does_not_make_a_signal():
    score = np.ones(100)
    score[44] = 0.998
    found = constant_reward.RULE.judge(made.trace(Profile.RLHF_PPO, outcome__score=score))
    assert found.severity is Severity.ERROR
    assert found.began == made.STEP


# Everything


@pytest.mark.parametrize("count", [0, 1, 12, 60])
@pytest.mark.parametrize(
    "fill", [0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, "mixed", "huge"]
)
def test_no_data_makes_a_rule_fail(count, fill):
    random = np.random.default_rng(0)
    if fill == "mixed":
        values = random.choice([0.0, 1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 64.0], count)
    elif fill == "huge":
        values = np.clip(random.standard_normal(count), -1, 1) * 1e308
    else:
        values = np.full(count, fill)
    names = {m.name for other in OURS for m in (*other.needs, *other.needs_any)}
    names |= {"reward/component/correct", "reward/component_std/correct", "optimiser/grad_norm"}
    names |= {"language/length_std", "language/terminated_length_mean", "outcome/rlhf_reward"}
    logged = {name.replace("/", "__"): values for name in names if count}
    for profile in LANGUAGE:
        run = made.trace(profile, {"beta": 0.1, "kl_coef": 0.0}, **logged)
        answers = {rule.name: rule.judge(run) for rule in OURS}
        if not np.isfinite(values).any():
            decided = {name: a for name, a in answers.items() if not isinstance(a, Undecided)}
            assert decided == {}


# no-gradient


def test_a_gradient_of_zero_where_groups_differ_is_an_error_after_two_updates():
    run = grpo(
        optimiser__grad_norm=np.zeros(2),
        reward__group_zero_std=np.array([0.2, 0.1]),
        outcome__reward=np.array([0.4, 0.5]),
    )
    found = no_gradient.RULE.judge(run)
    assert isinstance(found, Finding)
    assert found.severity is Severity.ERROR


def test_advantages_of_zero_while_scores_differ_are_an_error():
    zeros, some = np.zeros(6), np.ones(6)
    run = grpo(
        policy__advantage_max=zeros,
        policy__advantage_min=zeros,
        reward__max=some,
        reward__min=zeros,
        optimiser__grad_norm=zeros,
    )
    found = no_gradient.RULE.judge(run)
    assert isinstance(found, Finding)
    assert "group" in found.causes[0]


@pytest.mark.parametrize(
    "metrics",
    [
        {"reward__group_zero_std": np.ones(20)},  # nothing to learn from: another rule's
        {"reward__std": np.zeros(20)},
        {"reward__group_zero_std": np.where(np.arange(20) % 2, 1.0, 0.5),
         "optimiser__grad_norm": np.where(np.arange(20) % 2, 0.0, 0.3)},
        {"reward__std": np.r_[np.ones(4), np.zeros(16)]},  # too few, and groups may be alike
    ],
    ids=["uniform", "no-spread", "zeros-where-uniform", "few"],
)  # fmt: skip
def test_trap_a_gradient_of_zero_by_construction(metrics):
    run = grpo(**{"optimiser__grad_norm": np.zeros(20), **metrics})
    assert not isinstance(no_gradient.RULE.judge(run), Finding)


def test_trap_a_loss_and_a_clip_fraction_of_zero_with_one_update_a_batch_are_no_fault():
    run = grpo(
        optimiser__loss=np.zeros(40),
        policy__clip_fraction_effective=np.zeros(40),
        optimiser__grad_norm=level(0.3, 40),
        reward__group_zero_std=level(0.3, 40),
        outcome__reward=share(0.2, 0.6, 40),
    )
    asked = [rule.judge(run) for rule in CATALOGUE if rule.applies(Profile.GRPO)]
    assert not [f for f in asked if isinstance(f, Finding) and f.severity > Severity.NOTE]


# sampler-mismatch and turns


@pytest.mark.parametrize(
    ("gap", "reward", "grave"),
    [
        (0.3, level(0.4), True),  # thirty times what sixteen bits give
        (0.03, level(0.4), False),  # one measure alone
        (0.3, share(0.2, 0.8), False),  # it learns all the same
    ],
)
def test_a_gap_beyond_any_rounding_warns_by_itself(gap, reward, grave):
    run = grpo(policy__sampler_kl=gap * (1 + 0.1 * made.noise(150)), outcome__reward=reward)
    found = sampler_mismatch.RULE.judge(run)
    assert isinstance(found, Finding)
    assert (found.severity > Severity.NOTE) is grave


def test_episodes_that_shrink_to_one_turn_while_nothing_is_learned_are_a_warning():
    turns = np.r_[np.linspace(4, 1.02, 60), np.full(90, 1.01)]
    flat = grpo(language__turns_mean=turns, outcome__reward=np.full(150, 0.3) + level(0, 150))
    found = tool_use_fades.RULE.judge(flat)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    better = grpo(language__turns_mean=turns, outcome__reward=share(0.2, 0.9))
    found = tool_use_fades.RULE.judge(better)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    single = grpo(language__turns_mean=np.full(150, 1.0), outcome__reward=level(0.3))
    assert not isinstance(tool_use_fades.RULE.judge(single), Finding)


@pytest.mark.parametrize(
    ("rule", "factor"), [("response-length-collapses", 0.2), ("response-length-explodes", 5.0)]
)
def test_a_length_that_came_back_is_no_fault_of_the_run(rule, factor):
    lengths = 200.0 + made.noise(200)
    lengths[60:100] *= factor
    reward = 0.5 + 0.01 * made.noise(200, 3)
    (judge,) = (each for each in CATALOGUE if each.name == rule)

    def ask(values):
        run = made.trace(Profile.GRPO, outcome__reward=reward, language__length_mean=values)
        return judge.ask(run)

    assert isinstance(ask(lengths), Clear)
    assert isinstance(ask(np.where(np.arange(200) < 60, lengths, 200 * factor)), Finding)
