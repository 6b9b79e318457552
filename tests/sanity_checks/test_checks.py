"""The pure checks of a preflight, each made to pass, to fail, and to be impossible."""

import gymnasium as gym
import numpy as np
import pytest
import torch

import rlvitals
from rlvitals.sanity_checks import CouldNotCheck, Failed, Passed, environments, updates


def test_a_ratio_of_one_passes_within_the_rounding_of_its_type():
    assert updates.check_ratio(torch.tensor([1.0, 1.0000002])).outcome == Passed()
    assert updates.check_ratio(torch.ones(3, dtype=torch.bfloat16) + 0.01).outcome == Passed()
    wrong = updates.check_ratio(np.array([1.0, 1.0001])).outcome  # float64 has more digits
    assert isinstance(wrong, Failed)


def test_a_ratio_off_one_names_the_place_and_the_value():
    ratio = torch.ones(2, 3)
    ratio[1, 2] = 1.5
    found = updates.check_ratio(ratio).outcome
    assert isinstance(found, Failed)
    assert (found.variable, found.value) == ("ratio[1, 2]", "1.5")
    assert "17% of 6" in found.why
    nan = updates.check_ratio([1.0, float("nan"), 3.0]).outcome
    assert (nan.variable, nan.value) == ("ratio[1]", "nan")
    assert isinstance(updates.check_ratio([]).outcome, CouldNotCheck)


def test_normalised_advantages_have_mean_zero():
    raw = np.random.default_rng(0).normal(3, 2, 257).astype(np.float32)
    white = (raw - raw.mean()) / (raw.std() + 1e-8)
    assert updates.check_normalised_advantages(white).outcome == Passed()
    off = updates.check_normalised_advantages(white + 0.25).outcome
    assert (off.variable, off.value) == ("mean of advantages", "0.25")
    assert isinstance(updates.check_normalised_advantages([1.0]).outcome, CouldNotCheck)
    broken = updates.check_normalised_advantages([0.0, float("inf")]).outcome
    assert (broken.variable, broken.value) == ("advantages[1]", "inf")


def test_advantages_that_are_all_the_same_teach_nothing():
    assert updates.check_advantages([1.0, 2.0]).outcome == Passed()
    assert updates.check_advantages([2.0, 2.0]).outcome.value == "2"
    assert updates.check_advantages([2.0, float("nan")]).outcome.variable == "advantages[1]"
    assert isinstance(updates.check_advantages([]).outcome, CouldNotCheck)


def test_weights_that_stay_are_named():
    before = {"a": torch.zeros(2), "b": torch.zeros(2)}
    moved = {"a": torch.ones(2), "b": torch.ones(2)}
    assert updates.check_weights(before, moved).outcome == Passed()
    one = updates.check_weights(before, {**moved, "b": torch.zeros(2)}).outcome
    assert (one.variable, one.value) == ("change of b", "0")
    none = updates.check_weights(before, before).outcome
    assert none.variable == "change of the weights"
    nan = updates.check_weights(before, {**moved, "a": torch.tensor([0, float("nan")])}).outcome
    assert (nan.variable, nan.value) == ("a[1]", "nan")
    assert isinstance(updates.check_weights({}, {}).outcome, CouldNotCheck)
    assert isinstance(updates.check_weights(before, {}).outcome, CouldNotCheck)


def test_observations_are_finite_and_vary():
    good = np.random.default_rng(0).normal(size=(8, 3))
    assert [c.outcome for c in environments.check_observations(good)] == [Passed(), Passed()]
    bad = good.copy()
    bad[2, 1] = np.inf
    finite, varies = environments.check_observations(bad)
    assert (finite.outcome.variable, finite.outcome.value) == ("observations[2, 1]", "inf")
    assert varies.outcome == Passed()
    frozen = environments.check_observations(np.full((8, 3), 7.0))[1].outcome
    assert (frozen.value, frozen.why) == ("7", "all 8 observations are the same")
    assert isinstance(environments.check_observations(good[:1])[1].outcome, CouldNotCheck)
    assert isinstance(environments.check_observations(good[:0])[0].outcome, CouldNotCheck)


def test_environments_with_one_seed_are_found():
    assert environments.check_returns([[1, 2], [2, 1], [3, 3]]).outcome == Passed()
    same = environments.check_returns([[1, 2], [3, 3], [1, 2]]).outcome
    assert (same.variable, same.value) == ("returns[2]", "1, 2")
    assert "environments 0 and 2" in same.why
    assert isinstance(environments.check_returns([[1, 2]]).outcome, CouldNotCheck)


def test_environments_that_begin_alike_are_found_where_beginnings_vary():
    apart, alike = [[1.0], [2.0]], [[1.0], [3.0]]
    assert environments.check_starts([apart, [[5.0]]]).outcome == Passed()
    found = environments.check_starts([[[9.0]], apart, alike]).outcome
    assert (found.variable, found.value) == ("first observation of environment 2", "1")
    fixed = environments.check_starts([[[1.0], [1.0]], [[1.0]]]).outcome
    assert fixed == CouldNotCheck("every episode begins alike: no seed shows in it")
    assert isinstance(environments.check_starts([apart]).outcome, CouldNotCheck)


class Lying(gym.Env):
    """Promises observations in [0, 1] and returns 5."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        return np.full(2, 5, np.float32), {}

    def step(self, action):  # noqa: ARG002 - the same
        return np.full(2, 5, np.float32), 0.0, False, False, {}


def test_check_env_is_gymnasium_s_own():
    assert environments.check_environment(gym.make("CartPole-v1"))[0].outcome == Passed()
    (found,) = environments.check_environment(Lying())
    assert found.outcome.variable == "env"
    assert "observation" in found.outcome.why


def test_a_report_answers_first_and_fails_on_demand():
    good = rlvitals.preflight(ratio=[1.0, 1.0], advantages=[0.5, -0.5])
    assert good.ok
    assert good.require() is good
    assert str(good).splitlines()[0] == "preflight: ready (2 passed, 0 failed)"
    bad = rlvitals.preflight(
        updates.check_weights({}, {}),
        env=gym.make("CartPole-v1"),
        observations=np.zeros((4, 2)),
        returns=[[1.0], [2.0]],
        ratio=[1.0, 2.0],
        normalised_advantages=[1.0, -1.0],
        weights=({"w": [0.0]}, {"w": [1.0]}),
    )
    assert not bad.ok
    shown = str(bad).splitlines()
    assert shown[0] == "preflight: not ready (5 passed, 2 failed, 1 could not be checked)"
    assert shown[1].startswith("  failed       observations vary")
    with pytest.raises(rlvitals.VitalsError, match=r"observations = 0: all 4 observations"):
        bad.require()
    assert str(rlvitals.preflight()) == "preflight: nothing was checked (0 passed, 0 failed)"
    assert not rlvitals.preflight().ok
