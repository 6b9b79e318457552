"""What misled earlier rules on real logs, one test each, named after the trap.

Those that stand beside their rule are listed here, so that none is lost; the others follow, on
recorded runs (`tests/runs`, `tests/traces`, `tests/traps`), on other people's logs, or on short
series where nothing else can show it.
"""

import ast
import csv
import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from loading import RUNS, load, load_run, load_trap, read_log

from rlvitals import api
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.canonicalize import Given, trace
from rlvitals.metrics.catalogue.exploration import STD
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Finding, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.types import Lifecycle, Measured, Profile, Series, Trace

# What is tested elsewhere, by file and test.
ELSEWHERE = {
    "explained variance divides by returns that do not vary":
        "rules/test_value.py::test_trap_1_ev_of_minus_3e13_where_returns_have_no_variance",
    "value loss is large because rewards are":
        "rules/test_value.py::test_a_value_loss_of_1e7_is_only_a_large_reward",
    "value loss grows as the square of the return":
        "rules/test_value.py::test_a_loss_that_grows_as_the_square_of_the_return_is_healthy",
    "the first failure after many perfect episodes is a spike of value loss":
        "rules/test_value.py::test_the_first_failure_after_many_perfect_episodes_is_not_reported",
    "a run dips and recovers": "test_real_runs.py::test_a_dip_is_not_a_collapse",
    "a dip has ended just now":
        "rules/test_outcome.py::test_a_dip_that_ended_just_now_is_no_collapse",
    "A2C learns at an explained variance of 0":
        "rules/test_value.py::test_trap_9_a2c_with_20_samples_an_estimate_learns_at_ev_0",
    "explained variance alone condemns nobody":
        "rules/test_value.py::test_explained_variance_alone_is_no_evidence",
    "NaN ends the program instead of being logged":
        "readers/test_console.py::test_a_traceback_at_the_end_is_what_ended_the_run",
    "a run that crashed passes": "cli/test_diagnose.py::test_a_run_that_crashed_is_no_pass",
    "a file is cut inside a quoted string":
        "readers/test_rllib.py::test_a_file_cut_inside_a_quoted_string",
    "JSON lines in a file named .json": "readers/test_real_logs.py::test_rllib_json_line_by_line",
    "Weights & Biases keeps binary files":
        "readers/test_wandb_offline.py::test_every_number_is_the_librarys",
    "only the console was kept": "readers/test_console.py::test_stable_baselines3",
    "rows have more fields than the header":
        "test_real_runs.py::test_throughput_under_a_shifted_header_is_never_a_temperature",
    "white noise changes its direction in two steps of three":
        "rules/test_optimiser.py::test_white_noise_does_not_oscillate",
    "the loss of a policy is noise around zero":
        "rules/test_optimiser.py::test_policy_losses_are_noise_around_zero_and_not_looked_at",
    "KL is logged as a sum over the sequence":
        "rules/test_language.py::test_trap_a_kl_of_6_per_sequence_is_trls_default_target",
    "a reward model's zero means nothing":
        "rules/test_language.py::test_trap_an_offset_of_the_score_says_nothing_about_the_penalty",
    "the sign of the KL penalty":
        "rules/test_language.py::test_the_penaltys_sign_and_coefficient_are_checked_by_the_identity",
    "how much is clipped in health depends on the training":
        "metrics/test_catalogue.py::test_clip_fraction_is_judged_by_profile",
    "clipped and effectively clipped samples differ by a factor of two":
        "metrics/test_names.py::test_numbers_that_differ_keep_different_names",
    "entropy has no floor unless the run sets one":
        "metrics/test_catalogue.py::test_entropy_has_a_floor_only_where_the_run_sets_one",
    "logs do not say how many actions there are":
        "metrics/test_inferred.py::test_a_nearly_uniform_start_tells_the_number_of_actions",
    "most groups of a late run have one reward":
        "rules/test_language.py::test_trap_a_late_healthy_run_without_contrast_is_a_note_at_most",
    "a dense bonus hides that no answer is right":
        "rules/test_language.py::test_a_dense_bonus_does_not_hide_that_no_answer_is_ever_right",
    "batches of four without a negative are chance": (
        "rules/test_language.py::"
        "test_trap_no_negative_among_four_for_three_updates_is_ordinary_at_80_percent"
    ),
    "solved and hopeless groups both have no gradient":
        "rules/test_language.py::test_solved_and_hopeless_groups_get_opposite_remedies",
    "the share of positive samples rises with success":
        "rules/test_language.py::test_trap_a_positive_share_that_rises_is_what_training_is_for",
    "NSR's reward is negative":
        "rules/test_language.py::test_trap_negative_reward_in_nsr_is_no_fault_of_any_rule",
    "reasoning makes answers longer":
        "rules/test_language.py::test_trap_length_that_doubles_with_right_answers_is_reasoning",
    "single steps of CartPole all pay 1":
        "rules/test_language.py::test_trap_step_rewards_without_spread_are_cartpole",
    "a return at its ceiling has no variance":
        "rules/test_language.py::test_trap_a_return_that_climbed_to_its_ceiling_is_convergence",
    "an fp16 scaler skips infinite gradients":
        "rules/test_optimiser.py::test_infinite_gradients_now_and_then_are_a_scaler_that_skips",
    "RLlib's return is NaN while no episode ends":
        "rules/test_optimiser.py::test_rllib_s_nan_return_without_a_finished_episode_is_healthy",
    "no gradient comes from groups of one reward":
        "rules/test_optimiser.py::test_groups_without_a_gradient_are_weighed_by_the_outcome",
    "on-policy GRPO has a loss of 0":
        "rules/test_optimiser.py::test_on_policy_grpo_has_a_loss_of_0_by_construction",
    "normalised advantages bound the policy loss": (
        "rules/test_optimiser.py::"
        "test_a_policy_loss_of_3_is_an_explosion_only_with_normalised_advantages"
    ),
    "whitened advantages are centred by construction": (
        "rules/test_value.py::"
        "test_whitened_advantages_are_centred_by_construction_and_say_nothing"
    ),
    "one action in three of four decisions, but in all of the last":
        "test_real_runs.py::test_the_collapse_onto_one_replica_comes_first",
    "a clamped estimator logs zeros": "test_real_runs.py::test_its_clamped_zeros_are_named",
    "a clock of whole seconds":
        "rules/test_systems.py::test_trap_sb3s_clock_of_whole_seconds_is_looked_at_over_20_seconds",
    "collecting is fast until learning starts": (
        "rules/test_systems.py::"
        "test_trap_sac_slows_when_learning_starts_and_its_table_has_empty_cells_before"
    ),
    "longer responses take longer": (
        "rules/test_systems.py::"
        "test_trap_longer_responses_are_no_slowdown_where_tokens_are_logged"
    ),
    "a log without new rows may be over":
        "rules/test_unended.py::test_a_log_that_stopped_long_ago_is_over",
    "with a target, KL hardly exceeds it and epochs are dropped instead":
        "rules/test_unended.py::test_epochs_that_are_dropped",
    "episodes that always last to the limit":
        "rules/test_unended.py::test_tasks_that_always_last_are_not_asked",
    "k3 rounds to just below zero": "rules/test_data.py::test_kl_is_judged_by_its_estimator",
    "the format is learned first":
        "rules/test_components.py::test_trap_the_format_is_learned_first_in_nearly_every_run",
    "two trends always go together": (
        "rules/test_language.py::test_trap_two_trends_that_rise_together_are_no_length_bias"
    ),
    "the mean importance weight is 1": (
        "rules/test_systems.py::"
        "test_trap_the_mean_importance_weight_is_one_whatever_the_difference"
    ),
    "an entropy bonus is part of SAC's values":
        "rules/test_q_values.py::test_an_entropy_bonus_is_allowed_for",
    "a Gaussian may grow wide and learn":
        "rules/test_exploration.py::test_a_wide_policy_is_weighed_by_the_outcome",
    "a healthy DQN swings":
        "rules/test_unended.py::test_a_return_that_ends_at_its_top_is_neither",
    "a run that starts at the top is flat":
        "rules/test_outcome.py::test_a_run_that_starts_almost_at_the_top_holds_it",
    "what was never there cannot vanish":
        "rules/test_language.py::test_a_run_that_never_had_end_tokens_is_a_note_that_asks_for_their_id",
    "slow noise looks like a trend":
        "signals/test_trend.py::test_false_alarms_stay_below_seven_percent_on_ar1",
    "a comparison with NaN is False": "rules/test_every_rule.py::test_a_column_of_nan_is_no_health",
    "rules to the letter warn of 14 healthy runs in 18":
        "test_runs.py::test_no_rule_warns_on_a_healthy_run",
}  # fmt: skip

BY_NAME = {rule.name: rule for rule in CATALOGUE}


@cache
def functions_of(file):
    tree = ast.parse((Path(__file__).parent / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("trap", ELSEWHERE)
def test_a_trap_that_is_tested_elsewhere_is_tested_there(trap):
    file, name = ELSEWHERE[trap].split("::")
    assert name in functions_of(file)


def warned(found):
    return [rule.name for rule, finding in found.findings if finding.severity > Severity.NOTE]


def silent(found):
    return not warned(found) and found.verdict.word in (Word.LEARNING, Word.CONVERGED, Word.PLATEAU)


def severity(found, rule):
    """How bad a rule's finding is; None where it found nothing."""
    return next((f.severity for r, f in found.findings if r.name == rule), None)


def changed(run, **functions):
    """The run with some metrics mapped: `value__loss=f` changes value/loss."""
    named = {name.replace("__", "/"): f for name, f in functions.items()}
    new = {n: Series(run[n].steps, run[n].times, f(run[n].values)) for n, f in named.items()}
    return replace(run, series={**run.series, **new})


def made(profile=Profile.CONTROL_PPO, settings=None, count=100, **metrics):
    """A short series of each metric, in a run of 1000 steps a point."""
    steps = 1000 * (1 + np.arange(count, dtype=np.int64))
    logged = {
        name.replace("__", "/"): Series(steps, np.full(count, np.nan), np.asarray(values, float))
        for name, values in metrics.items()
    }
    measured = {name: Measured("made", name, "") for name in logged}
    return Trace(series=logged, measured=measured, settings=settings or {}, profile=profile)


def noise(count=100, seed=0):
    return np.random.default_rng(seed).standard_normal(count)


# The critic


@pytest.mark.parametrize("settings", [{"env_id": "CartPole-v1"}, {}], ids=["known", "unknown"])
def test_ev_of_minus_43_at_maximum_reward_is_convergence(settings):
    run = replace(load_run("ppo-cartpole-converged"), settings=settings)
    loss = run["value/loss"].values
    perfect = loss < 1e-6 * loss.max()
    assert perfect.mean() > 0.3
    assert loss[perfect].max() < 1e-4
    run = changed(run, value__explained_variance=lambda ev: np.where(perfect, -43.0, ev))
    found = diagnose(run)
    assert not warned(found)
    assert severity(found, "critic-explains-nothing") is None
    assert found.verdict.word is Word.CONVERGED


def test_ev_of_minus_4e13_with_gamma_0_is_returns_that_do_not_vary():
    run = load_trap("gamma-0")
    ev = run["value/explained_variance"].values
    assert ev[np.isfinite(ev)].tolist() == [pytest.approx(-4.06e13, rel=0.01)]
    absurd = changed(run, value__explained_variance=lambda ev: np.full(len(ev), np.nanmin(ev)))
    for each in (run, absurd):
        answer = BY_NAME["critic-explains-nothing"].judge(each)
        assert isinstance(answer, Undecided), answer


def test_a_value_coefficient_of_0_leaves_ev_at_0_and_the_policy_learns():
    run = load_trap("value-coefficient-0")
    assert np.nanmax(run["value/explained_variance"].values) < 0.02
    found = diagnose(run)
    assert silent(found)
    assert severity(found, "critic-explains-nothing") is Severity.NOTE


def test_value_loss_and_return_in_larger_units_change_nothing():
    run = replace(load_run("ppo-cartpole-healthy"), settings={})
    large = changed(
        run, outcome__return=lambda x: 1e3 * x, value__loss=lambda x: 1e6 * x,
        optimiser__loss=lambda x: 1e6 * x,
    )  # fmt: skip
    assert np.nanmax(large["value/loss"].values) > 1e7
    assert warned(diagnose(large)) == warned(diagnose(run)) == []


# Exploration


def test_differential_entropy_may_be_negative():
    run = load_trap("negative-entropy")
    assert np.nanmax(run["exploration/entropy"].values) < 0
    assert silent(diagnose(run))


def test_differential_entropy_has_no_zero():
    """In units ten times as large the same policy has ln(10) less of it."""
    run = load("plateau", "fires")
    less = changed(run, exploration__entropy=lambda x: x - np.log(10))
    assert (less["exploration/entropy"].values[1:] < 0).all()
    one, two = diagnose(run), diagnose(less)
    assert warned(one) == warned(two)
    assert one.verdict.word is two.verdict.word


def test_a_narrow_gaussian_is_told_by_its_standard_deviation():
    std = np.linspace(1.0, 0.02, 100)
    run = made(
        exploration__entropy=1.4189 + np.log(std),
        exploration__std=std,
        outcome__return=np.linspace(200, 20, 100) + noise(),
    )
    found = BY_NAME["entropy-collapse"].judge(run)
    assert isinstance(found, Finding)
    assert found.metric == STD.name


def test_two_actions_have_little_entropy_to_lose():
    run = load_trap("random-actions")  # its outcome stalls: only the entropy itself is in question
    assert 0.2 < run["exploration/entropy"].finite().values[-5:].mean() < 0.5
    assert severity(diagnose(run), "entropy-collapse") is None
    floor = replace(run, settings={**run.settings, "entropy_min": 0.5})
    assert BY_NAME["entropy-collapse"].judge(floor).bound.origin == "the run's entropy_min"


def test_a_policy_that_collapsed_before_the_first_row_has_no_start_to_compare_with():
    run = replace(load_run("ppo-cartpole-lr-x300"), settings={})
    assert run["exploration/entropy"].finite().values[0] < 0.05
    assert severity(diagnose(run), "entropy-collapse") is Severity.ERROR


def test_one_action_all_the_time_is_a_fault_of_schedulers_alone():
    assert BY_NAME["action-collapse"].applies(Profile.SCHEDULER_PPO)
    assert not BY_NAME["action-collapse"].applies(Profile.CONTROL_PPO)


# Updates


def test_a_kl_of_04_to_05_throughout_is_no_alarm_without_a_target():
    run = load_run("ppo-cartpole-healthy")
    kl = run["policy/approx_kl"].finite().values
    run = changed(run, policy__approx_kl=lambda x: 0.04 + 0.01 * (x - kl.min()) / np.ptp(kl))
    assert silent(diagnose(run))
    aimed = replace(run, settings={**run.settings, "target_kl": 0.02})
    assert severity(diagnose(aimed), "kl-above-target") is Severity.WARNING


def test_high_kl_at_the_ceiling_is_no_divergence():
    run = changed(load_run("ppo-cartpole-converged"), policy__approx_kl=lambda x: x + 0.05)
    aimed = replace(run, settings={**run.settings, "target_kl": 0.02})
    assert silent(diagnose(run))
    assert silent(diagnose(aimed))
    assert severity(diagnose(aimed), "kl-above-target") is Severity.NOTE
    lost = changed(run, outcome__return=lambda x: x[::-1].copy())
    assert severity(diagnose(lost), "kl-above-target") is Severity.ERROR


def test_small_updates_are_meant_where_the_rate_is_annealed():
    run = load("updates-hardly-move", "fires")
    rate = run["policy/approx_kl"]
    moved = np.where(np.arange(len(rate)) < len(rate) // 2, 0.01, rate.values)
    run = replace(run, series={**run.series, "policy/approx_kl": replace(rate, values=moved)})
    falling = replace(rate, values=np.linspace(3e-4, 0, len(rate)))
    constant = replace(rate, values=np.full(len(rate), 3e-4))
    rule = BY_NAME["updates-hardly-move"]
    annealed = replace(run, series={**run.series, "optimiser/learning_rate": falling})
    assert not isinstance(rule.judge(annealed), Finding)
    steady = replace(run, series={**run.series, "optimiser/learning_rate": constant})
    assert isinstance(rule.judge(steady), Finding)


def test_language_models_learn_by_updates_that_hardly_move_a_policy():
    rule = BY_NAME["updates-hardly-move"]
    assert not any(rule.applies(kind) for kind in (Profile.GRPO, Profile.RLHF_PPO, Profile.NSR))
    run = load_run("grpo-healthy")
    assert not run["policy/clip_fraction_effective"].values.any()
    assert silent(diagnose(run))


def test_a_mean_ratio_of_1_says_nothing_about_the_size_of_updates():
    """The mean of new / old over samples of the old policy is 1 whatever the new one is."""
    random = np.random.default_rng(0)
    ratios, kls = [], []
    for _ in range(60):
        logits = random.standard_normal(50)
        old = np.exp(logits) / np.exp(logits).sum()
        shifted = logits + 3.0 * random.standard_normal(50)
        new = np.exp(shifted) / np.exp(shifted).sum()
        picked = random.choice(50, 20_000, p=old)
        ratios.append((new / old)[picked].mean())
        kls.append(float((old * np.log(old / new)).sum()))
    assert np.median(kls) > 1.5
    assert np.allclose(ratios, 1.0, atol=0.3)
    run = made(
        Profile.RLHF_PPO, count=60, policy__ratio=ratios, policy__approx_kl=kls,
        policy__clip_fraction=np.full(60, 0.92), outcome__score=1.0 + 0.1 * noise(60),
    )  # fmt: skip
    found = diagnose(run)
    assert severity(found, "ratio-off-one") is None
    assert severity(found, "kl-above-target") >= Severity.WARNING


def test_a_smaller_clip_range_clips_more():
    run = load_trap("clip-range-1e-4")
    assert np.nanmin(run["policy/clip_fraction"].values) > 0.6
    found = BY_NAME["clip-fraction-high"].judge(run)
    assert "too small" in found.causes[0]
    assert found.remedies[0].startswith("raise the clip range")
    usual = BY_NAME["clip-fraction-high"].remedies
    assert not any("clip" in remedy for remedy in usual)


# The reward and the outcome


def test_a_reward_of_zero_leaves_kl_and_clipping_healthy():
    """Normalised advantages are noise of size 1 where every reward is the same."""
    run = load_trap("reward-zero")
    assert 1e-3 < np.nanmedian(run["policy/approx_kl"].values) < 0.03
    for settings in (run.settings, {}):
        found = diagnose(replace(run, settings=settings))
        assert found.findings[0][0].name == "constant-reward"
        assert found.verdict.word is Word.STALLED


def test_a_flipped_reward_rises_and_is_told_by_the_environment_alone():
    run = load_run("ppo-cartpole-reward-flipped")
    values = run["outcome/return"].values
    assert values[-5:].mean() > values[:5].mean()
    lengths = run["outcome/episode_length"].values
    assert lengths[-5:].mean() < 0.6 * lengths[:5].mean()
    # Nothing in the log says that the task is not to fall: an expected miss.
    assert not warned(diagnose(replace(run, settings={})))
    known = diagnose(run)
    least = [f for _, f in known.findings if (f.metric, f.bound.value) == ("outcome/return", 1)]
    assert least[0].severity >= Severity.WARNING


def test_a_policy_that_moves_without_an_outcome_has_not_learned():
    """The actions taken are not the policy's: it grows certain, and its critic good."""
    run = load_trap("random-actions")
    entropy = run["exploration/entropy"].finite().values
    assert entropy[-1] < 0.5 * entropy[0]
    assert np.nanmax(run["value/explained_variance"].values) > 0.6
    found = diagnose(run)
    assert found.verdict.word is Word.STALLED
    assert severity(found, "no-learning") >= Severity.WARNING
    assert severity(found, "updates-hardly-move") is None


@pytest.mark.parametrize("name", ["clip-range-1e-4", "random-actions"])
def test_a_drift_of_a_few_percent_is_not_learning(name):
    now = standing(load_trap(name))
    assert now.last > 1.01 * now.first
    assert now.state == "flat"


def test_a_moving_average_that_swings_is_no_collapse():
    run = load_run("dqn-cartpole-healthy")
    values = run["outcome/return"].values
    assert (np.maximum.accumulate(values) - values).max() > 0.1 * np.ptp(values)
    steps = run["outcome/return"].steps
    for end in steps[20::3]:
        assert diagnose(run.until(int(end))).verdict.word is not Word.COLLAPSED


@pytest.mark.real_logs
def test_a_dip_is_no_collapse_at_any_length_of_the_log(real_logs):
    run = api.trace(real_logs / "sb3-monitor/dqn__LunarLander-v2_1")
    for end in run["outcome/return"].steps[20::15]:
        found = diagnose(run.until(int(end)))
        assert found.verdict.word is not Word.COLLAPSED, end
        assert "return-collapse" not in warned(found), end


def test_success_at_its_top_cannot_follow_a_return_that_still_rises():
    rule = BY_NAME["return-up-success-flat"]
    returns = np.linspace(20, 300, 100) + noise()
    for level, fires in ((0.96, False), (0.5, True)):
        success = level + 0.01 * noise(seed=1)
        run = made(outcome__return=returns, outcome__success_rate=success)
        assert isinstance(rule.judge(run), Finding) is fires, level


def test_a_shaped_reward_comes_before_the_first_success():
    returns = np.linspace(-200, -20, 100) + noise()
    run = made(outcome__return=returns, outcome__success_rate=np.zeros(100))
    found = BY_NAME["return-up-success-flat"].judge(run)
    assert found.severity is Severity.NOTE
    assert found.counter


def test_episodes_that_all_end_at_the_limit_are_usual_where_nothing_ends_them():
    run = load_run("sac-pendulum-healthy")
    assert np.ptp(run["outcome/episode_length"].values) == 0
    assert not [f for _, f in diagnose(run).findings if f.metric == "outcome/episode_length"]


# Clocks, rows and numbers


def test_a_cumulative_fps_hides_a_slowdown():
    run = load("throughput-drop", "fires")
    rule = BY_NAME["throughput-drop"]
    found = rule.ask(run)
    assert isinstance(found, Finding)
    rates = found.curve.series
    before, after = rates.until(found.began), rates.since(found.began + 1)
    assert np.median(after.values) < 0.6 * np.median(before.values)
    # A tenth of the run later the mean since the start has lost less than the rule asks for.
    logged = run["throughput/steps_per_second"]
    later = found.began + run.last_step // 10
    assert logged.until(later).values[-1] > 0.7 * logged.until(found.began).values[-1]
    cumulative = {n: s for n, s in run.series.items() if n != "throughput/elapsed"}
    assert isinstance(rule.ask(replace(run, series=cumulative)), Undecided)


def test_weights_of_nan_end_the_run_and_leave_no_row():
    run = load_trap("nan-weights")
    assert len(run["policy/loss"]) == 36
    assert np.isfinite(run["policy/loss"].finite().values).all()
    assert severity(diagnose(run), "not-a-number") is None
    said = "ValueError: Expected parameter logits to satisfy the constraint IndependentConstraint"
    ended = diagnose(replace(run, lifecycle=Lifecycle(exit_code=1, traceback=said)))
    assert ended.verdict.word is Word.FAILED
    assert ended.verdict.why == said


def test_rows_of_evaluations_in_between_are_no_gaps(tmp_path):
    run = load_run("ppo-cartpole-healthy")
    text = (RUNS / "ppo-cartpole-healthy/run.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    file = tmp_path / "progress.csv"
    with file.open("w") as out:
        writer = csv.DictWriter(out, [*rows[0], "eval/mean_reward"], restval="")
        writer.writeheader()
        for row in rows:
            step = row["time/total_timesteps"]
            writer.writerow(row)
            writer.writerow(
                {"time/total_timesteps": step, "eval/mean_reward": row["rollout/ep_rew_mean"]}
            )
    mixed = trace([read_log(file)], Given(settings=run.settings))
    one, two = diagnose(run), diagnose(mixed)
    assert [r.name for r, _ in two.findings] == [r.name for r, _ in one.findings]
    # Its sentence names the evaluation, which outranks the return.
    assert two.verdict.word is one.verdict.word
