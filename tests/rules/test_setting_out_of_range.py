"""Settings that no tuned run uses: what is odd, for which training, and when it is a warning."""

from dataclasses import replace

import numpy as np
import pytest
from loading import load

from rlvitals.rules.data.setting_out_of_range import RULE
from rlvitals.rules.practice import PRACTICES, odd
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Budget, Lifecycle, Profile, Series


def run(which="fires", profile=Profile.CONTROL_PPO, budget=None, **settings):
    trace = load(RULE.name, which)
    given = {"env_id": "CartPole-v1", **settings}
    return replace(trace, settings=given, profile=profile, budget=budget)


@pytest.mark.parametrize(
    ("settings", "profile", "which"),
    [
        ({"gamma": 0.0}, Profile.CONTROL_PPO, "gamma"),
        ({"gamma": 0.0}, Profile.OFF_POLICY, "gamma"),
        ({"learning_rate": 0.3}, Profile.ON_POLICY, "learning_rate"),
        ({"learning_rate": 1e-7}, Profile.CONTROL_PPO, "learning_rate"),
        ({"value_coef": 0.0}, Profile.RLHF_PPO, "value_coef"),
        ({"entropy_coef": -0.1}, Profile.CONTROL_PPO, "entropy_coef"),
        ({"entropy_coef": 5.0}, Profile.OFF_POLICY, "entropy_coef"),
        ({"clip_range": 1e-4}, Profile.CONTROL_PPO, "clip_range"),
        ({"target_kl": 1e-6}, Profile.CONTROL_PPO, "target_kl"),
        ({"n_steps": 2}, Profile.CONTROL_PPO, "n_steps"),
        ({"tau": 1.0, "algorithm": "SAC"}, Profile.OFF_POLICY, "tau"),
        ({"tau": 0.0, "algorithm": "td3"}, Profile.OFF_POLICY, "tau"),
        ({"buffer_size": 64}, Profile.OFF_POLICY, "buffer_size"),
        ({"num_generations": 1}, Profile.GRPO, "num_generations"),
        ({"learning_rate": 0.02}, Profile.PSR, "learning_rate"),
        ({"learning_rate": 0.0}, Profile.RLHF_PPO, "learning_rate"),
        ({"temperature": 1e-6}, Profile.GRPO, "temperature"),
        ({"temperature": 100.0}, Profile.NSR, "temperature"),
        ({"ratio_threshold": 1e-9}, Profile.RLHF_PPO, "ratio_threshold"),
    ],
)
def test_what_takes_the_algorithm_apart_is_odd(settings, profile, which):
    found = odd(run(profile=profile, **settings))
    assert [one.setting for one in found] == [which]
    assert found[0].value == settings[which]


@pytest.mark.parametrize(
    ("settings", "profile"),
    [
        ({"learning_rate": 1e-7}, Profile.GRPO),  # language models are trained with such rates
        ({"learning_rate": 1e-3}, Profile.GRPO),  # and tiny ones with such
        ({"temperature": 0.0}, Profile.CONTROL_PPO),  # it is no sampling's
        ({"entropy_coef": -0.01}, Profile.ON_POLICY),  # RLlib's examples of A2C
        ({"n_steps": 2}, Profile.ON_POLICY),  # A2C's default is 5
        ({"tau": 1.0, "algorithm": "DQN"}, Profile.OFF_POLICY),  # it copies, now and then
        ({"tau": 1.0}, Profile.OFF_POLICY),  # which algorithm is not said
        ({"value_coef": 0.0}, Profile.GRPO),  # it has no critic
        ({"gamma": 1.0}, Profile.GRPO),
        ({"ratio_threshold": None}, Profile.RLHF_PPO),
        ({"clip_range": "lin_0.2"}, Profile.CONTROL_PPO),
    ],
)
def test_what_others_use_is_not(settings, profile):
    assert odd(run(profile=profile, **settings)) == ()


def test_a_target_network_is_judged_by_the_runs_length_and_by_how_it_is_copied():
    steps = Budget(50_000, "test")
    off = {"profile": Profile.OFF_POLICY, "budget": steps, "algorithm": "DQN"}
    assert odd(run(**off, target_update_interval=1000)) == ()
    (never,) = odd(run(**off, target_update_interval=10**9))
    assert "not updated within this run" in never.does
    (always,) = odd(run(**off, target_update_interval=1, tau=1.0))
    assert "nothing holds the values down" in always.does
    assert odd(run(**off, target_update_interval=1, tau=0.005)) == ()


def test_the_outcome_decides_whether_it_warns():
    flat, learning = run("fires", gamma=0.0), run("quiet", gamma=0.0)
    assert RULE.ask(flat).severity is Severity.WARNING
    assert RULE.ask(learning).severity is Severity.WARNING, "it is over, and short of its task"
    growing = replace(learning, lifecycle=Lifecycle(live=True))
    returns = learning["outcome/return"]
    solved = replace(returns, values=500.0 * returns.values / returns.values.max())
    solving = replace(learning, series={**learning.series, "outcome/return": solved})
    atari = replace(learning, settings={**learning.settings, "env_id": "ALE/Qbert-v5"})
    for learns in (growing, solving, atari):
        answer = RULE.ask(learns)
        assert isinstance(answer, Finding)
        assert answer.severity is Severity.NOTE
        assert answer.counter


def test_several_are_told_in_one_finding():
    answer = RULE.ask(run(gamma=0.0, value_coef=0.0))
    assert "gamma is 0" in answer.summary
    assert any("value_coef is 0" in line for line in answer.evidence)


def test_without_settings_it_cannot_tell():
    assert isinstance(RULE.ask(run()), Undecided)
    assert isinstance(RULE.ask(run(gamma=0.99)), Clear)


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [
        (Profile.CONTROL_PPO, ("learning_rate", "gamma")),
        (Profile.GRPO, ("learning_rate",)),  # no discount
        (Profile.SCHEDULER_PPO, ("gamma",)),
    ],
)
def test_only_settings_of_the_kind_of_training_are_asked_for(profile, wanted):
    answer = RULE.ask(run(profile=profile))
    assert isinstance(answer, Undecided)
    assert answer.wants == wanted


def test_no_limit_lies_within_what_is_seen():
    for one in PRACTICES:
        numbers = [float(n.replace(",", "")) for n in one.usual.split() if n[0].isdigit()]
        assert all(one.allows(n) for n in numbers), one
        assert not np.isinf(one.low) or not np.isinf(one.high)
        assert bool(one.below) == np.isfinite(one.low)
        assert bool(one.above) == np.isfinite(one.high)


def test_a_language_model_is_judged_by_its_right_answers():
    """As where a part of the reward is paid for noise: 75 of 100 are cut off, and none is right."""
    steps = np.arange(1, 61)
    noise = np.random.default_rng(0).normal(0.08, 0.03, 60)
    series = {
        name: Series(steps, steps.astype(float), values)
        for name, values in (
            ("outcome/reward", noise), ("reward/component/accuracy_reward", np.zeros(60)),
        )
    }  # fmt: skip
    found = RULE.check(replace(run(profile=Profile.NSR, temperature=100.0), series=series))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(("gradient", "severity"), [(0.0, Severity.WARNING), (1.0, Severity.NOTE)])
def test_where_nothing_was_taught_it_is_a_warning_though_the_outcome_is_noise(gradient, severity):
    """As where completions are drawn without a temperature: a group holds one answer."""
    steps = np.arange(1, 41)
    noise = np.random.default_rng(0).normal(0.4, 0.05, 40)
    series = {
        name: Series(steps, steps.astype(float), values)
        for name, values in (
            ("outcome/reward", noise), ("optimiser/grad_norm", np.full(40, gradient)),
        )
    }  # fmt: skip
    found = RULE.check(replace(run(profile=Profile.GRPO, temperature=1e-6), series=series))
    assert isinstance(found, Finding)
    assert found.severity is severity
