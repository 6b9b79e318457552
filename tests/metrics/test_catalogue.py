"""The catalogue holds together: names, families, bands, and every file registered."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from rlvitals import metrics
from rlvitals.metrics import CATALOGUE
from rlvitals.metrics.catalogue import exploration, optimiser, policy, value
from rlvitals.types import Profile, Trace

FOLDER = Path(metrics.__file__).parent
SETTINGS = {metric.name for metric in CATALOGUE if metric.kind == "setting"}
NAMES = {metric.name for metric in CATALOGUE}

# Others build on exactly these.
PROMISED = """
outcome/return outcome/eval_return outcome/success_rate outcome/win_rate_ema outcome/reward
outcome/score outcome/rlhf_reward outcome/episode_length outcome/throughput outcome/latency
outcome/accuracy reward/mean reward/std reward/min reward/max reward/component reward/absolute
reward/delta reward/non_score reward/group_zero_std reward/step policy/approx_kl
policy/clip_fraction policy/ratio policy/ratio_var policy/loss policy/action policy/action_count
policy/advantage_mean policy/advantage_std policy/kl_to_reference
policy/kl_to_reference_per_token policy/kl_coef exploration/entropy exploration/entropy_sequence
exploration/entropy_coef exploration/temperature exploration/is_pulsing exploration/std
exploration/epsilon value/loss value/explained_variance value/mean value/var value/error
value/clip_fraction value/return_mean value/return_var value/q_mean optimiser/loss
optimiser/grad_norm optimiser/learning_rate optimiser/updates language/length_mean
language/length_std language/length_max language/length_min language/truncated_share
language/eos_tokens language/positive_samples language/positive_share language/negative_samples
language/negative_share language/pos_neg_ratio language/filtered_reward
language/query_length_mean language/logprobs language/ref_logprobs scheduler/balance_penalty
scheduler/queue_length scheduler/qps_pressure scheduler/latency_pressure
scheduler/selected_replica throughput/steps_per_second throughput/updates_per_second
throughput/step_time throughput/elapsed throughput/tokens throughput/episodes_per_second
progress/epoch progress/episode progress/iteration
learning_rate clip_range clip_range_value target_kl n_epochs n_steps batch_size minibatch_size
gamma gae_lambda entropy_coef value_coef max_grad_norm seed total_steps n_envs kl_coef beta
entropy_min min_temperature max_temperature num_generations num_iterations reward_threshold
lambda_psr max_completion_length env_id algorithm mode n_actions action_dim goal price_per_hour
""".split()  # noqa: SIM905 - words read best as words


def with_settings(**settings):
    return Trace({}, {}, settings=settings)


def test_names_are_unique():
    twice = [name for name, count in Counter(m.name for m in CATALOGUE).items() if count > 1]
    assert twice == []


def test_every_entry_is_well_formed():
    for metric in CATALOGUE:
        shape = r"[a-z][a-z0-9_]*" if metric.kind == "setting" else r"[a-z]+/[a-z][a-z0-9_]*"
        assert re.fullmatch(shape, metric.name), metric
        assert metric.title[0].isupper(), metric
        assert metric.meaning.endswith("."), metric
        assert len(metric.meaning) <= 320, metric
        assert set(metric.see_also) <= NAMES - {metric.name}, metric
        if metric.kind != "setting":
            assert metric.unit, f"a number needs its unit: {metric}"


def test_promised_names_exist():
    assert [name for name in PROMISED if name not in NAMES] == []


def test_a_family_does_not_swallow_another_metric():
    families = [m.name + "/" for m in CATALOGUE if m.family]
    assert [n for n in NAMES if n.startswith(tuple(families))] == []


def test_every_family_file_is_in_the_catalogue():
    for path in FOLDER.glob("*.py"):
        if "\nMETRICS = (" in path.read_text():
            module = import_module(f"rlvitals.metrics.{path.stem}")
            assert set(map(id, module.METRICS)) <= set(map(id, CATALOGUE)), path.name


def test_bands_name_real_settings_and_are_not_empty():
    for metric in CATALOGUE:
        for band in (metric.healthy, *metric.healthy_in.values()):
            for setting in (band.low_from, band.high_from):
                assert setting is None or setting in SETTINGS, (metric.name, setting)
            if band.low is not None and band.high is not None:
                assert band.low < band.high, metric.name


def test_find_knows_metrics_and_members_of_families():
    assert metrics.find("policy/approx_kl") is policy.APPROX_KL
    assert metrics.find("policy/action_count/3") is policy.ACTION_COUNT
    assert metrics.find("policy/approx_kl/3") is None
    assert metrics.find("no/such") is None


@pytest.mark.parametrize(
    ("profile", "low", "high"),
    [
        (Profile.CONTROL_PPO, 0.05, 0.3),
        (Profile.SCHEDULER_PPO, 0.1, 0.3),
        (Profile.RLHF_PPO, 0.0, 0.2),
        (Profile.GRPO, None, 0.2),
    ],
)
def test_clip_fraction_is_judged_by_profile(profile, low, high):
    band = policy.CLIP_FRACTION.band(profile)
    assert (band.low, band.high) == (low, high)


def test_kl_ceiling_is_the_runs_target_and_says_so():
    band = policy.APPROX_KL.band(Profile.CONTROL_PPO)
    own = band.ceiling(with_settings(target_kl=0.05))
    default = band.ceiling(with_settings())
    assert (own.value, own.origin) == (0.05, "the run's target_kl")
    assert (default.value, default.origin) == (0.02, "default")


def test_entropy_has_a_floor_only_where_the_run_sets_one():
    band = exploration.ENTROPY.band(Profile.SCHEDULER_PPO)
    assert band.floor(with_settings()) is None
    assert band.floor(with_settings(entropy_min=0.5)).value == 0.5


def test_temperature_limits_are_the_guides_unless_the_run_sets_its_own():
    band = exploration.TEMPERATURE.band(Profile.SCHEDULER_PPO)
    run = with_settings(min_temperature=0.8, max_temperature=3.0)
    assert (band.floor(with_settings()).value, band.ceiling(with_settings()).value) == (0.5, 2.0)
    assert (band.floor(run).value, band.ceiling(run).value) == (0.8, 3.0)


def test_explained_variance_alone_condemns_nobody():
    for profile in Profile:
        assert value.EXPLAINED_VARIANCE.band(profile).floor(with_settings()) is None


def test_a_gradient_norm_is_only_held_to_the_runs_own_limit():
    assert optimiser.GRAD_NORM.band(Profile.CONTROL_PPO).ceiling(with_settings()) is None
    run = with_settings(max_grad_norm=0.5)
    assert optimiser.GRAD_NORM.band(Profile.CONTROL_PPO).ceiling(run).value == 0.5
