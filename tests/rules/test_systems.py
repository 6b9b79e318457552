"""The rules on a language run's system: what must not be called a fault, and the patterns."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis import engine
from rlvitals.rules.language import (
    experts_collapse,
    generation_starved,
    responses_truncated,
    sampler_mismatch,
    tool_use_fades,
)
from rlvitals.rules.optimiser import learning_rate_jump
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.throughput import memory_grows, throughput_drop, updates_slow
from rlvitals.types import Budget, Lifecycle, Measured, Profile, Series, Trace

COUNT = 120
WORSE = np.linspace(0.6, 0.1, COUNT) + 0.02 * made.noise(COUNT, 5)
BETTER = np.linspace(0.1, 0.8, COUNT) + 0.02 * made.noise(COUNT, 5)


def grpo(settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, **metrics)


def near(level, count=COUNT, seed=1, spread=0.1):
    """Positive numbers around a level."""
    return level * np.exp(spread * made.noise(count, seed))


# sampler-mismatch


def test_trap_the_mean_importance_weight_is_one_whatever_the_difference():
    run = grpo(
        policy__sampler_ratio_mean=near(1.0, spread=0.002),
        policy__sampler_kl=near(0.5),
        reward__component__correct=WORSE,
    )
    found = sampler_mismatch.RULE.judge(run)
    assert found.metric == "policy/sampler_kl"
    only = grpo(policy__sampler_ratio_mean=near(1.0, spread=0.002))
    assert isinstance(sampler_mismatch.RULE.judge(only), Undecided)


def test_trap_single_tokens_near_one_are_healthy_with_long_responses():
    run = grpo(
        policy__sampler_prob_difference_max=near(0.95, spread=0.02),
        policy__sampler_prob_difference_mean=near(0.006),
        policy__sampler_kl=near(8e-4),
    )
    assert isinstance(sampler_mismatch.RULE.judge(run), Clear)


def test_a_gap_that_grows_and_never_closes_means_that_weights_do_not_arrive():
    grows = np.linspace(1e-3, 0.4, COUNT) * near(1.0)
    run = grpo(policy__sampler_kl=grows, reward__component__correct=WORSE)
    found = sampler_mismatch.RULE.judge(run)
    assert found.severity is Severity.WARNING
    assert found.causes[0] == sampler_mismatch.NO_SYNC_CAUSE
    assert "never closes" in found.evidence[0]


def test_a_gap_that_closes_again_and_again_means_rare_synchronisation():
    saw = (0.2 * (np.arange(COUNT) % 20) / 20 + 0.001) * near(1.0)
    found = sampler_mismatch.RULE.judge(grpo(policy__sampler_kl=saw))
    assert found.causes[0] == sampler_mismatch.STALE_CAUSE
    assert "about every" in found.evidence[0]


def test_a_gap_from_the_first_update_on_is_another_distribution_or_in_turns_another_text():
    run = grpo(policy__sampler_kl=near(0.1))
    assert sampler_mismatch.RULE.judge(run).causes[0] == sampler_mismatch.DISTRIBUTION_CAUSE
    turns = grpo(policy__sampler_kl=near(0.1), language__turns_mean=near(5.0))
    assert sampler_mismatch.RULE.judge(turns).causes[0] == sampler_mismatch.TEXT_CAUSE


def test_a_few_tokens_far_off_are_the_engines_numerics():
    run = grpo(
        policy__sampler_logp_difference_mean=near(0.15),
        policy__sampler_logp_difference_max=near(12.0),
    )
    assert sampler_mismatch.RULE.judge(run).causes[0] == sampler_mismatch.NUMERICS_CAUSE


def test_without_an_outcome_that_stalls_or_a_second_measure_it_is_a_note():
    alone = grpo(policy__sampler_kl=near(0.06), reward__component__correct=WORSE)
    assert sampler_mismatch.RULE.judge(alone).severity is Severity.NOTE
    two = replace(alone, series={**alone.series, "policy/sampler_ess": made.series(near(0.4))})
    assert sampler_mismatch.RULE.judge(two).severity is Severity.WARNING
    fine = replace(two, series={**two.series, "reward/component/correct": made.series(BETTER)})
    assert sampler_mismatch.RULE.judge(fine).severity is Severity.NOTE


@pytest.mark.parametrize(
    ("settings", "metrics"),
    [
        ({"rollout/quantization": "fp8"}, {}),
        ({}, {"optimiser__router_loss": near(2.0)}),
        ({}, {"optimiser__policy_lag": near(1.5)}),
        ({"max_policy_lag": 4}, {}),
    ],
)
def test_8_bits_experts_and_old_samples_are_judged_loosely(settings, metrics):
    assert isinstance(sampler_mismatch.RULE.judge(grpo(policy__sampler_kl=near(0.03))), Finding)
    loose = grpo(settings, policy__sampler_kl=near(0.03), **metrics)
    assert isinstance(sampler_mismatch.RULE.judge(loose), Clear)


def test_a_version_of_the_weights_that_stands_still():
    stuck = np.minimum(np.arange(COUNT), 30).astype(float)
    found = sampler_mismatch.RULE.judge(grpo(policy__sampler_version=stuck))
    assert found.causes[0] == sampler_mismatch.NO_SYNC_CAUSE
    assert found.severity is Severity.NOTE
    rises = grpo(policy__sampler_version=np.arange(COUNT, dtype=float))
    assert isinstance(sampler_mismatch.RULE.judge(rises), Clear)


# generation-starved


def test_more_batches_as_prompts_are_solved_is_a_note_that_counts_the_waste():
    batches = np.round(np.linspace(1, 6, COUNT))
    run = grpo(
        language__generation_batches=batches,
        reward__component__correct=np.linspace(0.3, 0.97, COUNT),
        throughput__phase_time__gen=60.0 * batches,
    )
    found = generation_starved.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert found.causes[0] == generation_starved.EASY_PROMPTS_CAUSE
    assert any("thrown away" in said for said in found.evidence)
    assert any("h of generation" in said for said in found.evidence)


def test_two_batches_for_each_update_are_daily_bread():
    batches = np.random.default_rng(0).integers(1, 4, COUNT).astype(float)
    assert isinstance(
        generation_starved.RULE.judge(grpo(language__generation_batches=batches)), Clear
    )


def test_ever_fewer_groups_kept_while_nothing_is_learned_is_a_warning():
    run = grpo(
        language__kept_share=np.linspace(0.7, 0.05, COUNT) * near(1.0),
        reward__group_all_wrong=np.linspace(0.2, 0.9, COUNT),
        reward__group_all_right=np.full(COUNT, 0.05),
        reward__component__correct=WORSE,
    )
    found = generation_starved.RULE.judge(run)
    assert found.severity is Severity.WARNING
    assert found.causes[0] == generation_starved.HARD_PROMPTS_CAUSE


def test_stragglers_are_a_note():
    run = grpo(
        language__response_time_p99=near(200.0),
        language__response_time_median=near(9.0),
        reward__component__correct=WORSE,
    )
    found = generation_starved.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert found.observed == pytest.approx(200 / 9, rel=0.2)


# tool-use-fades


def test_fewer_calls_with_more_right_answers_are_a_saving():
    calls = np.linspace(1.5, 0.0, COUNT) ** 3
    saving = grpo(language__tool_calls=calls, reward__component__correct=BETTER)
    assert tool_use_fades.RULE.judge(saving).severity is Severity.NOTE
    loss = grpo(language__tool_calls=calls, reward__component__correct=WORSE)
    assert tool_use_fades.RULE.judge(loss).severity is Severity.WARNING


def test_a_run_without_tools_gives_none_up():
    assert isinstance(tool_use_fades.RULE.judge(grpo(language__tool_calls=np.zeros(COUNT))), Clear)


def test_failing_calls_come_first_where_the_first_ones_failed():
    run = grpo(
        language__tool_calls=np.linspace(1.5, 0.0, COUNT) ** 3,
        language__tool_failures=near(0.9, spread=0.02),
    )
    assert tool_use_fades.RULE.judge(run).causes[0] == tool_use_fades.FAILING_CALLS_CAUSE


def test_a_format_that_is_being_learned_is_no_fault():
    run = grpo(language__tool_failures=np.linspace(0.95, 0.55, COUNT))
    assert isinstance(tool_use_fades.RULE.judge(run), Clear)


def test_episodes_that_come_to_end_at_the_turn_limit():
    most = np.full(COUNT, 10.0)
    mean = np.minimum(np.linspace(3, 18, COUNT), 9.9)
    loops = grpo(language__turns_mean=mean, language__turns_max=most)
    assert isinstance(tool_use_fades.RULE.judge(loops), Finding)
    fixed = grpo(language__turns_mean=most, language__turns_max=most)
    assert isinstance(tool_use_fades.RULE.judge(fixed), Clear)


# experts-collapse


def test_an_uneven_load_from_the_start_is_the_models_own():
    run = grpo(optimiser__expert_imbalance=near(2.5), reward__component__correct=WORSE)
    assert isinstance(experts_collapse.RULE.judge(run), Clear)


def test_a_load_that_rises_below_twice_the_fair_share_is_no_collapse():
    run = grpo(optimiser__expert_imbalance=np.linspace(0.1, 0.6, COUNT))
    assert isinstance(experts_collapse.RULE.judge(run), Clear)


@pytest.mark.parametrize(("course", "severity"), [(WORSE, "WARNING"), (BETTER, "NOTE")])
def test_the_outcome_says_how_bad_it_is(course, severity):
    run = grpo(
        optimiser__expert_imbalance=np.linspace(0.8, 3.0, COUNT), reward__component__correct=course
    )
    assert experts_collapse.RULE.judge(run).severity is Severity[severity]


# memory-grows


def memory(values, **settings):
    return made.trace(Profile.CONTROL_PPO, settings, throughput__memory__host=values)


def test_trap_memory_grows_at_first_and_flattens_in_every_run():
    x = np.linspace(0, 6, 200)
    assert isinstance(memory_grows.RULE.judge(memory(4 + 8 * (1 - np.exp(-x)))), Clear)
    assert isinstance(memory_grows.RULE.judge(memory(4 + 0.3 * np.sqrt(x))), Clear)


def test_trap_an_allocator_rises_by_steps_to_what_it_once_needed():
    steps = np.maximum.accumulate(near(20.0, 200, spread=0.2))
    assert isinstance(memory_grows.RULE.judge(memory(steps)), Clear)


def test_noise_of_a_slow_walk_is_seldom_a_leak():
    fired = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        walk = np.zeros(300)
        for i in range(1, 300):
            walk[i] = 0.98 * walk[i - 1] + rng.normal()
        fired += isinstance(memory_grows.RULE.judge(memory(30 + walk)), Finding)
    assert fired <= 6


def test_a_share_that_fills_up_within_the_budget_is_a_warning_that_names_the_step():
    share = np.linspace(20, 70, 200)
    run = made.trace(throughput__machine__ram_util=share, throughput__machine__cpu_util=share)
    assert memory_grows.RULE.judge(run).severity is Severity.NOTE
    found = memory_grows.RULE.judge(replace(run, budget=Budget(400_000, "told")))
    assert found.severity is Severity.WARNING
    assert "319,400" in found.evidence[0]  # 0.251 points each 1,000 steps from 20 on
    short = memory_grows.RULE.judge(replace(run, budget=Budget(250_000, "told")))
    assert short.severity is Severity.NOTE


def test_a_total_can_be_told():
    run = replace(memory(np.linspace(10, 30, 200)), budget=Budget(400_000, "told"))
    assert memory_grows.RULE.judge(run).severity is Severity.NOTE
    told = replace(run, thresholds={"memory-grows.total": 40.0})
    assert memory_grows.RULE.judge(told).severity is Severity.WARNING


def test_a_processor_that_is_busier_is_no_memory():
    run = made.trace(throughput__machine__cpu_util=np.linspace(20, 90, 200))
    assert isinstance(memory_grows.RULE.judge(run), Clear)


def test_a_replay_buffer_that_still_fills_is_said():
    found = memory_grows.RULE.judge(memory(np.linspace(10, 30, 200), buffer_size=1_000_000))
    assert "replay buffer" in found.counter[0]


# responses-truncated


def test_prompts_at_their_limit_are_a_note():
    run = grpo(
        {"max_prompt_length": 512},
        language__truncated_share=np.zeros(COUNT),
        language__query_truncated_share=near(0.4),
    )
    found = responses_truncated.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert "512" in found.evidence[0]


def test_responses_of_which_none_ever_ended_lack_an_end_token():
    run = grpo(language__truncated_share=np.ones(COUNT))
    assert responses_truncated.RULE.judge(run).causes[0] == responses_truncated.NO_EOS_CAUSE
    later = grpo(language__truncated_share=np.linspace(0.1, 1.0, COUNT))
    assert responses_truncated.NO_EOS_CAUSE not in responses_truncated.RULE.judge(later).causes


def test_a_reward_that_ended_responses_do_not_get_either_is_not_the_limit_s_fault():
    nothing = {"outcome__reward": np.zeros(COUNT), "reward__std": np.zeros(COUNT)}
    run = grpo(language__truncated_share=near(0.6), **nothing)
    found = responses_truncated.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert "40% of responses end by themselves, and every response earns 0" in found.counter[0]
    assert engine.diagnose(run).cases[0].rule.name == "constant-reward"
    none_ends = responses_truncated.RULE.judge(
        grpo(language__truncated_share=np.ones(COUNT), **nothing)
    )
    assert none_ends.severity is Severity.ERROR
    assert "score a right answer by hand" in none_ends.counter[0]
    rising = {"outcome__reward": np.linspace(0, 0.1, COUNT)}
    found = responses_truncated.RULE.judge(grpo(language__truncated_share=near(0.6), **rising))
    assert not any("every response" in sentence for sentence in found.counter)


def test_right_answers_among_the_cut_ones_are_counted():
    run = grpo(
        language__truncated_share=np.full(COUNT, 0.9),
        reward__component__correct=np.full(COUNT, 0.6),
    )
    assert any("at least 50%" in said for said in responses_truncated.RULE.judge(run).evidence)


# throughput-drop


def timed(rates, seconds=60.0, whole=False, **metrics):
    """A run that logs every `seconds`, and its steps go by at these rates."""
    steps = np.cumsum(np.asarray(rates) * seconds).astype(np.int64)
    clock = seconds * (1 + np.arange(len(rates)))
    clock = np.floor(clock) if whole else clock
    return made.trace(
        throughput__elapsed=made.series(clock, steps),
        **{name: made.series(values, steps) for name, values in metrics.items()},
    )


def by_rate(rates, framework, steps_in_a_row=10_000):
    """A run that logs steps per second, and wall times that an evaluation in each row fills."""
    steps = steps_in_a_row * (1 + np.arange(len(rates)))
    times = 1.7e9 + np.cumsum(steps_in_a_row / np.asarray(rates) + 600.0)
    name = "throughput/steps_per_second"
    logged = Series(steps, times, np.asarray(rates, float))
    source = Measured(framework, "sps", "of the update")
    return Trace({name: logged}, {name: source}, profile=Profile.SCHEDULER_PPO)


def test_a_rate_of_each_interval_shows_a_drop_that_evaluations_hide():
    slow = by_rate(np.where(np.arange(60) < 30, 1000.0, 300.0), "rlvitals-ppo")
    found = throughput_drop.RULE.judge(slow)
    assert isinstance(found, Finding)
    assert found.metric == "throughput/steps_per_second"
    assert "per second fell from 1,000 to 300 and stay there" in found.summary
    assert isinstance(throughput_drop.RULE.judge(by_rate([1000.0] * 60, "rlvitals-ppo")), Clear)


def test_a_mean_rate_since_the_start_is_no_clock():
    slow = by_rate(np.where(np.arange(60) < 30, 1000.0, 300.0), "cleanrl")
    assert not isinstance(throughput_drop.RULE.judge(slow), Finding)


def test_trap_sb3s_clock_of_whole_seconds_is_looked_at_over_20_seconds():
    # An update every 0.7 s reads as 0 or 1 s: rates of infinity and of half the truth.
    run = timed(np.full(400, 1000.0), seconds=0.7, whole=True)
    assert isinstance(throughput_drop.RULE.judge(run), Clear)


def test_trap_a_clock_with_fractions_is_looked_at_over_20_seconds_too():
    slow = np.where(np.arange(60) < 30, 1000.0, 100.0)
    assert isinstance(throughput_drop.RULE.judge(timed(slow, seconds=0.5)), Undecided)
    assert isinstance(throughput_drop.RULE.judge(timed(slow, seconds=60.0)), Finding)


def test_the_phase_that_takes_longer_is_the_bottleneck():
    late = np.arange(60) >= 30
    slow = np.where(late, 100.0, 1000.0)
    collect, learn = np.where(late, 9.0, 0.9), np.full(60, 0.1)
    run = timed(
        slow,
        throughput__phase_time__collect=collect,
        throughput__phase_time__learn=learn,
        throughput__recorder_share=np.full(60, 0.001),
    )
    said = throughput_drop.RULE.judge(run).evidence
    slower = "the bottleneck is collect: 9 s of an iteration, 0.9 s before"
    assert said[1] == f"{slower} (simulation, inference or communication)"
    assert said[2] == "recording takes 0.1% of the time, too little to explain it"
    logs = timed(
        slow,
        throughput__phase_time__collect=np.full(60, 0.9),
        throughput__phase_time__learn=learn,
        throughput__recorder_share=np.where(late, 0.8, 0.01),
    )
    said = throughput_drop.RULE.judge(logs).evidence
    assert said[1].startswith("no phase takes much longer")
    assert said[2] == "recording takes 80.0% of the time, which may explain it"
    assert len(throughput_drop.RULE.judge(timed(slow)).evidence) == 1


def test_a_machine_that_others_keep_busy_is_named_and_no_alarm():
    late = np.arange(60) >= 30
    slow = np.where(late, 100.0, 1000.0)
    cores = np.full(60, 4.0)

    def found(load):
        machine = {"throughput__load": load, "throughput__cores": cores}
        return throughput_drop.RULE.judge(timed(slow, **machine))

    busy = found(np.where(late, 30.0, 2.0))
    assert busy.severity is Severity.NOTE
    assert busy.summary.endswith(": the machine was busy, load 30 on 4 cores, 2 before")
    assert busy.causes == ("another job on the machine, or fewer cores",)
    # Not: fewer processes than make a machine slow, nor one that was as busy all the time.
    for load in (np.where(late, 5.0, 1.0), np.full(60, 30.0)):
        assert found(load).severity is Severity.WARNING
        assert "busy" not in found(load).summary


def test_trap_sac_slows_when_learning_starts_and_its_table_has_empty_cells_before():
    rates = np.where(np.arange(100) < 25, 325.0, 50.0)
    loss = np.where(np.arange(100) < 25, np.nan, 0.3)
    assert isinstance(throughput_drop.RULE.judge(timed(rates)), Finding)
    assert isinstance(throughput_drop.RULE.judge(timed(rates, value__loss=loss)), Clear)


def test_trap_longer_responses_are_no_slowdown_where_tokens_are_logged():
    # Updates take three times as long, for three times the tokens.
    seconds = np.cumsum(np.where(np.arange(100) < 50, 60.0, 180.0))
    steps = 1 + np.arange(100)
    clock = made.series(seconds, steps)
    tokens = made.series(1e4 * seconds, steps)
    run = made.trace(Profile.GRPO, throughput__elapsed=clock)
    assert isinstance(throughput_drop.RULE.judge(run), Finding)
    told = made.trace(Profile.GRPO, throughput__elapsed=clock, throughput__tokens=tokens)
    assert isinstance(throughput_drop.RULE.judge(told), Clear)
    lengths = made.series(np.where(np.arange(100) < 50, 500.0, 1500.0), steps)
    told = made.trace(Profile.GRPO, throughput__elapsed=clock, language__length_mean=lengths)
    assert isinstance(throughput_drop.RULE.judge(told), Clear)


def test_trap_updates_that_begin_after_learning_starts_are_no_slowdown():
    updates = np.maximum(np.arange(100) - 25, 0).astype(float)
    run = timed(np.where(np.arange(100) < 25, 325.0, 50.0), optimiser__updates=updates)
    assert isinstance(updates_slow.RULE.judge(run), Clear)


@pytest.mark.parametrize("share", [0.52, 0.87])
def test_trap_collecting_that_always_took_most_of_the_time_is_no_news(share):
    collecting = share + 0.02 * made.noise(100)
    run = made.trace(
        throughput__phase_share__collect=collecting, throughput__phase_share__learn=1 - collecting
    )
    assert isinstance(updates_slow.RULE.judge(run), Clear)


def test_collecting_that_takes_more_of_the_time_than_it_did_is_told():
    slower = made.trace(
        throughput__phase_time__sample=np.where(np.arange(100) < 60, 1.0, 8.0),
        throughput__phase_time__learn=np.full(100, 2.0),
    )
    found = updates_slow.RULE.judge(slower)
    assert found.severity is Severity.NOTE
    assert found.summary.startswith("collecting data takes 80% of the time, 33% before")
    assert 55_000 <= found.began <= 62_000
    assert found.observed == pytest.approx(0.8)
    # Not: most of the time still goes into learning.
    faster = made.trace(
        throughput__phase_time__sample=np.where(np.arange(100) < 60, 0.1, 1.5),
        throughput__phase_time__learn=np.full(100, 2.0),
    )
    assert isinstance(updates_slow.RULE.judge(faster), Clear)


# learning-rate-jump


def rate(values, seams=(), **metrics):
    run = made.trace(optimiser__learning_rate=values, **metrics)
    return replace(run, lifecycle=Lifecycle(seams=seams))


def test_warm_restarts_are_no_fault_even_where_kl_spikes():
    cycle = 1e-3 * (0.5 + 0.5 * np.cos(np.linspace(0, np.pi, 40))) + 1e-5
    spiky = 0.01 * np.ones(120)
    spiky[[42, 82]] = 1.0
    run = rate(np.tile(cycle, 3), policy__approx_kl=spiky, outcome__return=made.falling(120))
    found = learning_rate_jump.RULE.judge(run)
    assert found.severity is Severity.NOTE
    assert any("warm restarts" in said for said in found.counter)


@pytest.mark.parametrize("after", [1e-3, 1e-6])
def test_a_rate_that_differs_after_a_resume_was_not_restored(after):
    values = np.linspace(3e-4, 1e-4, 100)
    values[60:] = after
    found = learning_rate_jump.RULE.judge(rate(values, seams=(61 * made.STEP,)))
    assert found.began == 61 * made.STEP
    assert found.causes[0] == learning_rate_jump.SCHEDULER_LOST_CAUSE
    whole = rate(np.linspace(3e-4, 1e-4, 100), seams=(61 * made.STEP,))
    assert isinstance(learning_rate_jump.RULE.judge(whole), Clear)


def test_a_clock_in_wall_times_alone_is_enough():
    rates = np.where(np.arange(60) < 30, 100.0, 20.0)
    steps = np.cumsum(rates * 60).astype(np.int64)
    times = 1.7e9 + 60.0 * np.arange(60)
    run = made.trace(outcome__return=Series(steps, times, made.rising(60)))
    assert isinstance(throughput_drop.RULE.judge(run), Finding)
