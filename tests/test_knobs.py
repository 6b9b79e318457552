"""Remedies name the settings of the run's own framework, and what they are now."""

import numpy as np
import pytest
from loading import load_run

from rlvitals import metrics
from rlvitals.diagnosis import remedies
from rlvitals.rules import CATALOGUE
from rlvitals.types import Measured, Series, Trace


def made(framework, **settings):
    measured = {"outcome/return": Measured(framework, "x", "")}
    return Trace(series={}, measured=measured, settings=settings)


def test_a_remedy_names_the_framework_s_setting_and_the_run_s_value():
    (said,), (knob,) = remedies.fill_in(["raise {entropy_coef}"], made("sb3", entropy_coef=0.0))
    assert said == "raise the entropy coefficient (ent_coef, now 0)"
    assert knob == remedies.Knob("entropy_coef", "Stable-Baselines3", "ent_coef", 0.0)
    (said,), _ = remedies.fill_in(["raise {entropy_coef}"], made("verl"))
    assert said == "raise the entropy coefficient (actor_rollout_ref.actor.entropy_coeff)"


def test_a_setting_is_told_once_and_in_the_remedy_s_own_words():
    tries = ["run {n_epochs:fewer epochs per batch}", "or halve {n_epochs}"]
    said, found = remedies.fill_in(tries, made("cleanrl", n_epochs=10))
    assert said == (
        "run fewer epochs per batch (update_epochs, now 10)",
        "or halve the epochs per batch",
    )
    assert len(found) == 1


def test_of_several_names_the_one_that_the_run_has():
    assert remedies.fill_in(["lower {kl_coef|beta}"], made("trl-grpo", beta=0.04))[0] == (
        "lower the KL coefficient (beta, now 0.04)",
    )
    assert remedies.fill_in(["lower {kl_coef|beta}"], made("trl-ppo"))[0] == (
        "lower the KL coefficient (kl_coef)",
    )
    assert remedies.neutral("lower {kl_coef|beta} by ten") == "lower the KL coefficient by ten"


def test_what_is_logged_beside_the_metrics_is_the_setting_s_value_now():
    (said,), _ = remedies.fill_in(["lower {learning_rate}"], load_run("ppo-cartpole-lr-1e-7"))
    assert said == "lower the learning rate (learning_rate, now 1e-07)"


def scheduled(values, **settings):
    name = "optimiser/learning_rate"
    n = len(values)
    rates = Series(np.arange(n), np.full(n, np.nan), np.array(values, dtype=float))
    measured = {name: Measured("trl-grpo", "learning_rate", "")}
    return Trace(series={name: rates}, measured=measured, settings=settings)


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (scheduled([5e-4, 2e-4, 1e-6], learning_rate=5e-4), "0.0005, scheduled, now 1e-06"),
        (scheduled([1e-4, 1e-3], learning_rate=1e-4), "0.0001, scheduled, now 0.001"),
        (scheduled([0.0, 5e-4, 1e-6]), "0.0005 at its highest, now 1e-06"),
        (scheduled([5e-4, 0.0], learning_rate="auto"), "0.0005 at its highest, now 0"),
        (scheduled([1e-4, 5e-4]), "now 0.0005"),
        (scheduled([5e-4, 5e-4 * (1 + 1e-9)], learning_rate=5e-4), "now 0.0005"),
        (scheduled([3e-4], learning_rate=5e-4), "now 0.0003"),
    ],
)
def test_of_a_schedule_what_was_set_is_named(trace, said):
    """What is turned is where it begins: to lower the 1e-6 that it ends at would change nothing."""
    (told,), _ = remedies.fill_in(["lower {learning_rate}"], trace)
    assert told == f"lower the learning rate (learning_rate, {said})"


def test_an_unknown_framework_leaves_everybody_s_words():
    assert remedies.fill_in(["lower {learning_rate}"], made("yours"))[0] == (
        "lower the learning rate",
    )


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_every_place_is_a_setting(rule):
    for remedy in rule.remedies:
        for name in remedies.setting_names(remedy):
            assert metrics.find(name).kind == "setting", name
        assert "{" not in remedies.neutral(remedy)
