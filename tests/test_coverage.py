"""What is said to be missing is missing."""

from dataclasses import replace

import pytest
from loading import load_run

from rlvitals.diagnosis.coverage import coverage


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
