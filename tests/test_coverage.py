"""What is said to be missing is missing."""

from dataclasses import replace

import pytest
from loading import MEASURED, load_run

from rlvitals.diagnosis.coverage import coverage
from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.causes import OUTCOME_RULES
from rlvitals.views import terminal


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, True),
        ({"batch_size": 2048}, False),
        ({"n_steps": 512, "minibatch_size": 64}, False),  # Stable-Baselines3's PPO
        ({"minibatch_size": 8}, False),  # a Hugging Face Trainer's, its batch_size
        ({"gamma": 0.99}, True),
    ],
)
def test_a_batch_size_that_is_stated_in_other_words_is_not_missing(settings, missing):
    run = replace(load_run("ppo-cartpole-healthy"), settings=settings)
    assert ("batch_size" in coverage(run, 0, ()).unknown_settings) is missing


def flat_run(**metrics):
    """A control run whose return never moves, with further metrics."""
    run = load_run("ppo-cartpole-lr-1e-7")
    kept = {"outcome/return", *metrics}
    return replace(
        run, series={name: s for name, s in run.series.items() if name in kept} | metrics
    )


def test_a_flat_outcome_names_the_causes_that_the_log_does_not_exclude():
    (case,) = (
        c for c in diagnose(flat_run(), rates=MEASURED).cases if c.rule.name in OUTCOME_RULES
    )
    (unlock,) = (u for u in case.open_causes if u.names == ("exploration/entropy",))
    assert "entropy-collapse" in unlock.rules
    assert f"log {unlock.names[0]} to tell" in terminal.diagnosis(
        diagnose(flat_run(), rates=MEASURED), width=200
    )


def test_a_cause_is_excluded_by_the_metric_that_it_lacked():
    entropies = load_run("ppo-cartpole-healthy").series["exploration/entropy"]
    result = diagnose(flat_run(**{"exploration/entropy": entropies}), rates=MEASURED)
    (case,) = (c for c in result.cases if c.rule.name in OUTCOME_RULES)
    names = {rule for unlock in case.open_causes for rule in unlock.rules}
    assert "entropy-collapse" not in names
    assert names


def test_what_is_explained_or_healthy_has_no_open_causes():
    for name in ("ppo-cartpole-lr-1e-7", "ppo-cartpole-healthy"):
        cases = diagnose(load_run(name), rates=MEASURED).cases
        assert not [case for case in cases if case.open_causes]
