"""What a language run's columns prove: answers never paid, short rises, levels, first rows."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

import rlvitals
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.reward_names import pays_right_answers, pays_the_task
from rlvitals.rules.answers import learning_trend, verdict_trend
from rlvitals.rules.gains import has_steady_rise, slope_errors, succeeds_throughout
from rlvitals.rules.language import (
    first_rows_broken,
    no_gradient,
    reference_kl_out_of_range,
    response_length_collapses,
    zero_variance_groups,
)
from rlvitals.rules.parts import unpaid_task
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.types import Budget, Profile

ROWS = 100
FORM = np.linspace(0.0, 0.15, ROWS) + 0.01 * made.noise(ROWS, 1)


def grpo(settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, **metrics)


def parts(**values):
    named = {f"reward__component__{name}": part for name, part in values.items()}
    return grpo(outcome__reward=sum(values.values()), **named)


@pytest.mark.parametrize("floor", [0.0, -0.5])
def test_a_task_that_is_unpaid_task_stalls_while_the_form_is_learned(floor):
    run = parts(tool_use_reward=np.full(ROWS, floor), format_reward=FORM)
    now = learning_trend(run)
    assert (now.state, now.metric) == ("flat", "reward/component/tool_use_reward")
    found = diagnose(run)
    assert found.verdict.word is Word.STALLED
    assert "return-up-success-flat" in {
        rule.name for rule, finding in found.findings if finding.severity is Severity.WARNING
    }


@pytest.mark.parametrize(
    "values",
    [
        {"tool_reward": FORM, "format_reward": FORM},  # it is paid
        {"tool_reward": np.full(ROWS, 1.0), "format_reward": FORM},  # always paid
        {"length_penalty": np.zeros(ROWS), "format_reward": FORM},  # no part for the task
        {"tool_reward": np.zeros(ROWS), "format_reward": np.full(ROWS, 0.1)},  # nothing varies
        {"tool_reward": np.zeros(ROWS), "task_reward": FORM},  # another part for it is paid
    ],
    ids=["paid", "always", "shaping", "dead", "another"],
)
def test_other_parts_are_no_unpaid_task(values):
    assert unpaid_task(parts(**values)) is None


def test_a_task_may_be_unpaid_early_in_a_run():
    run = parts(tool_reward=np.zeros(ROWS), format_reward=FORM)
    begun = replace(run, budget=Budget(10 * run.last_step, "said"))
    assert learning_trend(begun).metric == "outcome/reward"


@pytest.mark.parametrize(
    ("part", "right", "task"),
    [
        ("equation_reward_func", True, True),
        ("check_answer", True, True),
        ("acc", True, True),
        ("math_acc", True, True),
        ("em", True, True),
        ("acceleration", False, True),
        ("item", False, True),
        ("answer_format_reward", False, False),
        ("match_format_exactly", False, False),
        ("answer_length", False, False),
        ("repetition_penalty", False, False),
        ("tool_use_reward", False, True),
    ],
)
def test_names_say_what_a_part_pays_for(part, right, task):
    assert (pays_right_answers(part), pays_the_task(part)) == (right, task)


@pytest.mark.parametrize(("last", "finds"), [(-1.0, True), (2.0, False)])
def test_a_score_that_falls_while_its_penalty_shrinks_is_not_learning(last, finds):
    """Responses shrink to a few tokens: there is less to be charged for, and nothing is right."""
    run = made.trace(
        Profile.GRPO,
        outcome__rlhf_reward=np.linspace(-19, -2, 150) + 0.1 * made.noise(150, 1),
        outcome__score=np.linspace(1.5, last, 150) + 0.05 * made.noise(150, 2),
    )
    diagnosis = diagnose(run)
    names = {rule.name for rule, _ in diagnosis.findings}
    assert ("return-up-success-flat" in names) is finds
    assert (diagnosis.verdict.word is Word.STALLED) is finds


@pytest.mark.parametrize(
    ("level", "entropy", "finds"), [(0.5, 0.003, True), (0.5, 0.1, False), (0.95, 0.003, False)]
)
def test_a_gain_that_ends_with_the_entropy_is_noted_short_of_a_ceiling(level, entropy, finds):
    early = np.minimum(np.arange(200) / 60, 1)
    run = made.trace(
        Profile.GRPO,
        outcome__accuracy=0.3 + (level - 0.3) * early + 0.01 * made.noise(200, 3),
        exploration__entropy=np.maximum(0.5 * np.exp(-np.arange(200) / 25), entropy),
    )
    named = {rule.name: finding for rule, finding in diagnose(run).findings}
    assert ("entropy-collapse" in named) is finds
    assert not finds or named["entropy-collapse"].severity is Severity.NOTE


@pytest.mark.parametrize("count", [10, 15, 30])
def test_a_short_run_that_rises_is_learning(count):
    rewards = np.linspace(0.15, 0.28, count) + 0.012 * made.noise(count, 3)
    assert has_steady_rise(rewards)
    assert verdict_trend(grpo(outcome__reward=rewards)).state == "rising"


def test_a_steep_slope_is_a_rise_where_few_blocks_are():
    """The accuracy of 30 batches doubles; the interval of the thirds' difference contains 0."""
    rewards = np.linspace(0.15, 0.37, 30) + 0.08 * made.noise(30, 10)
    change = outcome_change(rewards)
    assert (change.answer, change.low < 0) == ("cannot tell", True)
    assert has_steady_rise(rewards)
    run = grpo(reward__component__accuracy_reward=rewards)
    assert verdict_trend(run).improves or verdict_trend(run).state == "holding its best"


def test_a_slope_of_sluggish_noise_is_no_rise():
    sluggish = [np.convolve(made.noise(69, seed), np.ones(10), "valid") for seed in range(200)]
    steep = [slope_errors(values) >= 3.5 for values in sluggish]
    assert sum(steep) > 20  # as if it were independent
    alone = [v for v in sluggish if outcome_change(v).answer != "rose"]
    assert sum(map(has_steady_rise, alone)) <= 2


def test_noise_hardly_ever_rises_steadily():
    for count in (10, 20, 50, 200):
        rises = [has_steady_rise(made.noise(count, seed)) for seed in range(200)]
        assert sum(rises) <= 4


def test_a_slope_is_measured_in_its_errors():
    assert slope_errors(np.arange(20.0)) > 1e6
    assert slope_errors(np.full(20, 3.0)) == 0
    assert abs(slope_errors(made.noise(400, 5))) < 3


def test_a_gain_within_the_scatter_of_responses_is_flat():
    rewards = 0.9 + 0.35 * made.noise(60, 4)
    assert verdict_trend(grpo(outcome__reward=rewards)).state == "unknown"
    level = grpo(outcome__reward=rewards, reward__std=np.full(60, 0.8))
    assert verdict_trend(level).state == "flat"
    risen = grpo(outcome__reward=np.linspace(0, 1, 60) + rewards, reward__std=np.full(60, 0.8))
    assert verdict_trend(risen).state != "flat"


def test_right_answers_that_stop_with_the_loss_are_no_plateau():
    shares = np.r_[np.linspace(0.45, 0.54, 10), np.full(20, 0.55)]
    losses = np.r_[0.3 * made.noise(10, 2), np.zeros(20)]
    run = grpo(outcome__accuracy=shares, optimiser__loss=losses)
    assert verdict_trend(run).state == "flat"
    solved = grpo(outcome__accuracy=shares + 0.42, optimiser__loss=losses)
    assert verdict_trend(solved).state != "flat"
    trains = grpo(outcome__accuracy=shares, optimiser__loss=0.3 * made.noise(30, 2))
    assert verdict_trend(trains).state != "flat"


def test_an_early_loss_of_right_answers_is_a_fall():
    shares = np.r_[0.99, 0.7, 0.6 + 0.01 * made.noise(24, 6)]
    assert verdict_trend(grpo(outcome__accuracy=shares)).state == "falling"


def test_rewards_that_swing_while_episodes_succeed_are_no_loss():
    wave = 0.9 + 0.1 * np.sign(np.sin(np.arange(60) / 3)) + 0.01 * made.noise(60, 1)
    shares = np.clip(0.94 + 0.05 * made.noise(60, 2), 0, 1)
    run = made.trace(Profile.UNKNOWN, outcome__reward=wave, outcome__success_rate=shares)
    assert succeeds_throughout(run)
    found = diagnose(run)
    assert found.verdict.word is Word.PLATEAU
    assert all(finding.severity is Severity.NOTE for _, finding in found.findings)
    failing = made.trace(Profile.UNKNOWN, outcome__reward=wave, outcome__success_rate=shares - 0.5)
    assert not succeeds_throughout(failing)


DECISIVE = [
    ("policy__sampler_logp_difference_mean", 1.2, 0.05),
    ("policy__sampler_ess", 0.02, 0.9),
    ("policy__sampler_rejected_tokens", 0.8, 0.02),
    ("policy__sampler_rejected_sequences", 0.95, 0.1),
    ("policy__clip_fraction", 0.99, 0.2),
    ("policy__clip_fraction_effective", 0.99, 0.1),
    ("language__error_share", 1.0, 0.1),
    ("policy__kl_to_reference_per_token", 1e3, 0.01),
]


@pytest.mark.parametrize(("metric", "broken", "usual"), DECISIVE)
@pytest.mark.parametrize("rows", [1, 9])
def test_one_decisive_row_is_enough(metric, broken, usual, rows):
    run = grpo(**{metric: np.full(rows, broken), "reward__group_zero_std": np.full(rows, 0.2)})
    answer = first_rows_broken.check(run)
    assert answer.severity is Severity.WARNING
    assert answer.metric == metric.replace("__", "/")
    mixed = np.full(rows + 1, broken)
    mixed[0] = usual
    run = grpo(**{metric: mixed}, optimiser__grad_norm=np.full(rows, 1.0),
               reward__group_zero_std=np.full(rows, 0.2))  # fmt: skip
    assert isinstance(first_rows_broken.check(run), Clear)


def test_a_large_gradient_from_the_first_row_on_is_noted():
    run = grpo(optimiser__grad_norm=[1656.0, 1700.0], reward__group_zero_std=[0.1, 0.2])
    assert first_rows_broken.check(run).severity is Severity.NOTE


def test_a_kl_of_unknown_unit_proves_nothing():
    run = grpo(
        policy__kl_to_reference_per_token=[200.0] * 3,
        reward__group_zero_std=[0.2] * 3,
        optimiser__grad_norm=[1.0] * 3,
    )
    measured = {key: replace(m, framework="language-loop") for key, m in run.measured.items()}
    assert isinstance(first_rows_broken.check(replace(run, measured=measured)), Clear)


@pytest.mark.parametrize("rows", [2, 3])
def test_no_answer_ends_and_all_earn_the_same(rows):
    cut = {"language__truncated_share": np.full(rows, 0.99)}
    answer = first_rows_broken.check(grpo(**cut, reward__group_zero_std=np.ones(rows)))
    assert answer.severity is (Severity.WARNING if rows == 3 else Severity.NOTE)
    differ = first_rows_broken.check(grpo(**cut, reward__group_zero_std=np.full(rows, 0.4)))
    assert differ.severity is Severity.NOTE


def test_a_pasted_row_of_a_trainer_is_a_language_model_s(tmp_path):
    path = tmp_path / "paste.txt"
    path.write_text(
        "{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 1e-06, 'reward': 0.3,"
        " 'reward_std': 0.13, 'kl': 0.0, 'epoch': 0.01}\n"
    )
    found = rlvitals.diagnose(rlvitals.runs(path)[0])
    assert found.trace.profile is Profile.GRPO
    assert [rule.name for rule, _ in found.findings] == ["first-rows-broken"]


def test_a_pasted_row_may_lack_its_first_brace(tmp_path):
    path = tmp_path / "paste.txt"
    path.write_text(
        "'loss': -0.0, 'grad_norm': 0.0, 'learning_rate': 2.6e-07, 'reward': 0.34375,"
        " 'reward_std': 0.44, 'frac_reward_zero_std': 0.0, 'completions/mean_length': 357.5}\n"
    )
    found = rlvitals.diagnose(rlvitals.runs(path)[0])
    assert [rule.name for rule, _ in found.findings] == ["first-rows-broken"]


TABLE = """Step  loss  grad_norm  reward_mean  clipped_ratio  mean_length
1     0     {norm}          0            {cut}            256
2     0     {norm}          0            {cut}            256
...
10    0     {norm}          0            {cut}            256
"""


@pytest.mark.parametrize(("norm", "cut", "warned"), [(0, 1.0, True), (0.2, 1.0, False),
                                                     (0, 0.4, False)])  # fmt: skip
def test_a_pasted_table_of_cut_responses_without_a_gradient(tmp_path, norm, cut, warned):
    path = tmp_path / "paste.txt"
    path.write_text(TABLE.format(norm=norm, cut=cut))
    found = rlvitals.diagnose(rlvitals.runs(path)[0])
    assert found.trace.profile is Profile.GRPO
    assert found.trace["outcome/reward"].steps.tolist() == [1, 2, 10]
    severities = {rule.name: finding.severity for rule, finding in found.findings}
    assert (severities.get("first-rows-broken") is Severity.WARNING) == warned


def pairs(rows=4, **metrics):
    columns = {"optimiser__loss": np.full(rows, np.log(2)),
               "optimiser__learning_rate": np.linspace(1e-5, 9e-6, rows),
               "preference__margin": np.zeros(rows), "preference__accuracy": np.zeros(rows),
               "preference__chosen_logp": np.full(rows, -30.0)}  # fmt: skip
    return made.trace(Profile.SUPERVISED, None, **columns | metrics)


def test_pairs_whose_policy_never_leaves_the_reference():
    found = diagnose(pairs())
    assert found.verdict.word is Word.STALLED
    assert [rule.name for rule, _ in found.findings] == ["no-gradient"]


@pytest.mark.parametrize(
    "other",
    [
        {"preference__margin": np.array([0.0, 0.0, 0.0, 1e-4])},  # it left
        {"preference__accuracy": np.array([0.0, 0.4, 0.6, 0.5])},  # margins that print as 0
        {"optimiser__learning_rate": np.array([0.0, 0.0, 1e-8, 2e-8])},  # a warm-up
        {"rows": 3},  # the first is measured before any update
    ],
    ids=["margin", "digits", "warm-up", "few"],
)
def test_other_pairs_are_trained(other):
    assert isinstance(no_gradient.check(pairs(**other)), Clear)


SHARES = np.array([0.375, 0.5625, 0.625, 0.375])


def test_pairs_of_two_equal_answers_cost_ln_2_each():
    tied = pairs(
        optimiser__loss=np.log(2) * (1 - SHARES) + 0.001,
        preference__accuracy=SHARES,
        preference__margin=np.full(4, 8.0),
    )
    answer = no_gradient.check(tied)
    assert (answer.severity, answer.metric) == (Severity.WARNING, "optimiser/loss")
    assert "52% of the pairs have a margin of 0" in answer.summary


@pytest.mark.parametrize(
    "other",
    [
        {"optimiser__loss": np.log(2) * (1 - SHARES) + 0.02},  # some are lost
        {"preference__margin": np.full(4, 0.2)},  # won by so little that each has a cost
        # hardly a tie
        {"preference__accuracy": np.full(4, 0.95), "optimiser__loss": np.full(4, 0.05 * np.log(2))},
    ],
    ids=["lost", "near", "won"],
)
def test_pairs_that_are_lost_are_no_equal_answers(other):
    columns = {
        "optimiser__loss": np.log(2) * (1 - SHARES),
        "preference__accuracy": SHARES,
        "preference__margin": np.full(4, 8.0),
    }
    assert isinstance(no_gradient.check(pairs(**columns | other)), Clear)


@pytest.mark.parametrize(("level", "severity"), [(-0.08, Severity.WARNING), (-0.01, Severity.NOTE)])
def test_a_kl_to_the_teacher_below_zero_lost_its_mass(level, severity):
    kl = level + 0.002 * made.noise(60, 3)
    rewards = np.linspace(0.1, 0.8, 60) + 0.02 * made.noise(60, 4)
    run = grpo(policy__kl_to_teacher=kl, outcome__reward=rewards)
    answer = reference_kl_out_of_range.check(run)
    assert (answer.severity, answer.metric) == (severity, "policy/kl_to_teacher")
    near = grpo(policy__kl_to_teacher=kl - level, outcome__reward=rewards)
    assert not isinstance(reference_kl_out_of_range.check(near), Finding)


def test_a_symptom_from_the_first_row_on_is_weighed_by_the_whole_run():
    run = grpo(outcome__reward=0.1 + 0.02 * made.noise(ROWS, 2), reward__std=np.full(ROWS, 0.4))
    assert learning_trend(run, since=run.first_step) == learning_trend(run)
    zero = replace(run, series={**run.series, "reward/group_zero_std": made.series([0.9] * ROWS)})
    assert zero_variance_groups.check(zero).severity is Severity.ERROR


@pytest.mark.parametrize(
    ("share", "answers", "severity"),
    [
        (0.4, np.linspace(0.5, 0.1, ROWS), Severity.WARNING),  # answers get worse
        (0.02, np.full(ROWS, 0.3), Severity.WARNING),  # hardly anything is written
        (0.4, np.full(ROWS, 0.3), Severity.NOTE),
    ],
)
def test_short_responses_are_a_fault_where_answers_get_worse(share, answers, severity):
    lengths = 500 * np.linspace(1, share, ROWS) ** 2 if share > 0.1 else np.geomspace(500, 9, ROWS)
    run = grpo(
        outcome__accuracy=answers + 0.01 * made.noise(ROWS, 3), language__length_mean=lengths
    )
    assert response_length_collapses.check(run).severity is severity


def test_clipping_is_judged_in_groups_too():
    clipped = 0.6 + 0.02 * made.noise(ROWS, 3)
    flat = grpo(outcome__reward=0.3 + 0.03 * made.noise(ROWS, 2), policy__clip_fraction=clipped)
    rises = grpo(outcome__reward=np.linspace(0, 1, ROWS), policy__clip_fraction=clipped)
    for run, severity in ((flat, Severity.ERROR), (rises, Severity.NOTE)):
        found = {rule.name: finding for rule, finding in diagnose(run).findings}
        assert found["clip-fraction-high"].severity is severity


def test_answers_that_are_never_right_stall_whatever_the_reward_does():
    wander = 0.05 * np.cumsum(made.noise(ROWS, 0))
    swings = wander - np.linspace(0, wander[-1], ROWS)
    never = made.trace(
        Profile.CONTROL_PPO, outcome__reward=swings, outcome__accuracy=np.zeros(ROWS)
    )
    assert (verdict_trend(never).state, verdict_trend(never).metric) == ("flat", "outcome/accuracy")
    assert diagnose(never).verdict.word is Word.STALLED
    once = np.zeros(ROWS)
    once[50] = 0.1
    some = made.trace(Profile.CONTROL_PPO, outcome__reward=swings, outcome__accuracy=once)
    assert verdict_trend(some).metric == "outcome/reward"


def test_a_reward_that_is_nearly_full_from_the_start_on_is_at_its_ceiling():
    rewards = np.minimum(0.95 + 0.04 * made.noise(ROWS, 3), 1.0)
    assert verdict_trend(grpo(outcome__reward=rewards)).state == "at its ceiling"
    # Nothing tells that 1 is the most where no batch earned it, or nearly each did.
    for other in (np.minimum(rewards, 0.99), np.r_[0.99, np.ones(ROWS - 1)], rewards - 0.3):
        assert verdict_trend(grpo(outcome__reward=other)).state != "at its ceiling"


def test_a_reward_that_climbed_to_full_batches_has_converged():
    climb = np.minimum(np.linspace(0.3, 0.3 + 2.4, ROWS), 1.0)
    rewards = np.minimum(climb + 0.01 * made.noise(ROWS, 3), 1.0)
    rewards[-ROWS // 2 :: 3] = 0.985
    found = diagnose(grpo(outcome__reward=rewards))
    assert found.verdict.word is Word.CONVERGED
    for other in (0.99 * rewards, rewards - 0.2, 2 * rewards):  # 1 is not their maximum
        assert diagnose(grpo(outcome__reward=other)).verdict.word is not Word.CONVERGED


@pytest.mark.parametrize(("cut", "explains"), [(0.4, False), (0.8, True)])
def test_few_cut_responses_do_not_make_all_groups_uniform(cut, explains):
    """Where all groups are uniform, at most the share of cut responses is of groups cut whole."""
    rows = 60
    run = grpo(
        language__truncated_share=np.full(rows, cut),
        reward__group_zero_std=np.where(np.arange(rows) < rows // 2, 0.2, 1.0),
        outcome__reward=made.rising(rows),
    )
    (case,) = (case for case in diagnose(run).cases if case.rule.name == "responses-truncated")
    below = {symptom.rule.name for symptom in case.symptoms}
    assert ("zero-variance-groups" in below) is explains
