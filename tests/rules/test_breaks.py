"""Whether the world broke or the policy did, and what else stops in the middle of a run."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.data import frozen_metric
from rlvitals.rules.exploration import entropy_collapse
from rlvitals.rules.outcome import environment_changed
from rlvitals.rules.reward import constant_reward
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.throughput import throughput_drop
from rlvitals.types import Profile

HALF, COUNT = 60, 120
AT = made.STEP * (HALF + 1)  # the first step of the second half


def broken(before=200.0, after=10.0, rows=HALF):
    """Returns that rise, then fall within three rows."""
    up = np.linspace(20.0, before, HALF) + made.noise(HALF)
    down = np.concatenate((np.linspace(before, after, 4)[1:], np.full(rows - 3, after)))
    return np.concatenate((up, down))


def halves(first, second, spread=0.1, seed=3):
    level = np.repeat([first, second], HALF)
    return level * (1.0 + spread * made.noise(COUNT, seed))


def world(**changed):
    logged = {
        "outcome__return": broken(),
        "policy__approx_kl": halves(0.01, 0.008),
        "value__loss": halves(1.0, 40.0),
        "optimiser__learning_rate": np.full(COUNT, 3e-4),
        "exploration__entropy": np.full(COUNT, 0.5),
    }
    logged |= changed
    return made.trace(**{name: values for name, values in logged.items() if values is not None})


def test_a_world_that_breaks_is_named():
    found = environment_changed.RULE.ask(world())
    assert isinstance(found, Finding)
    assert (found.severity, found.began) == (Severity.ERROR, AT)


def at_the_top(*creeps):
    """A critic with nothing left to err about, whose loss goes through `creeps` before it jumps."""
    learned = 0.5 * np.exp(-np.arange(HALF) / 1.5) + 5e-6
    return np.concatenate((learned[: HALF - len(creeps)], creeps, np.full(COUNT - HALF, 0.2)))


def test_a_loss_that_crept_up_from_nothing_is_the_policys_own_doing():
    found = environment_changed.RULE.ask(world(value__loss=at_the_top()))
    assert isinstance(found, Finding)
    creeping = at_the_top(2e-5, 3e-5, 7e-5, 1e-4, 1e-4, 6e-5, 1e-4, 7e-5)
    assert isinstance(environment_changed.RULE.ask(world(value__loss=creeping)), Clear)
    faint = np.where(np.arange(COUNT) < HALF, at_the_top(), 1e-4)
    assert isinstance(environment_changed.RULE.ask(world(value__loss=faint)), Clear)


def spiked(at):
    kl = halves(0.01, 0.008)
    kl[at] = 1.0
    return kl


@pytest.mark.parametrize(
    "changed",
    [
        {"policy__approx_kl": spiked(HALF)},
        {"policy__approx_kl": spiked(HALF - 4)},
        {"policy__approx_kl": halves(0.1, 0.1)},
        {"optimiser__learning_rate": np.repeat([3e-4, 3e-2], HALF)},
        {"exploration__entropy": np.repeat([0.5, 0.5, 0.2, 0.1], [HALF - 4, 1, 3, HALF])},
        {"value__loss": halves(1.0, 1.2)},
        {"outcome__return": np.linspace(20.0, 200.0, COUNT)},
    ],
    ids=["spike", "spike before", "large steps", "new rate", "more certain", "critic", "no fall"],
)
def test_the_world_is_not_blamed_for(changed):
    assert isinstance(environment_changed.RULE.ask(world(**changed)), Clear)


def test_without_a_measure_of_the_policy_nobody_can_tell():
    blind = world(policy__approx_kl=None, exploration__entropy=None)
    assert isinstance(environment_changed.RULE.ask(blind), Undecided)
    found = environment_changed.RULE.ask(world(policy__approx_kl=None))
    assert found.severity is Severity.NOTE
    assert "no KL is logged" in found.counter[-1]


def test_a_world_that_was_mended_is_a_warning():
    back = np.concatenate((broken()[: HALF + 25], np.linspace(10.0, 200.0, 35)))
    assert environment_changed.RULE.ask(world(outcome__return=back)).severity is Severity.WARNING


def slight(later):
    """A loss of a tenth of the gain; the critic's loss and explained variance after the break."""
    loss, explained = later
    up = np.minimum(np.linspace(20.0, 300.0, HALF), 200.0)
    down = np.concatenate((np.linspace(200.0, 182.0, 6)[1:], np.full(HALF - 5, 182.0)))
    return world(
        outcome__return=np.concatenate((up, down)) + 0.2 * made.noise(COUNT),
        value__loss=halves(1.0, loss),
        value__explained_variance=np.repeat([0.9, explained], HALF),
    )


def test_a_slight_loss_counts_where_the_critic_never_gets_over_it():
    found = environment_changed.RULE.ask(slight((10.0, 0.1)))
    assert isinstance(found, Finding)
    assert (found.severity, found.began) == (Severity.WARNING, AT)
    mended = slight((10.0, 0.1))
    explained = mended["value/explained_variance"].values
    explained[-HALF // 2 :] = 0.9
    assert isinstance(environment_changed.RULE.ask(mended), Clear)


def test_a_critic_that_has_nothing_left_to_explain_is_no_sign_of_a_new_world():
    sinking = np.concatenate((np.linspace(20.0, 200.0, 40), np.linspace(200.0, 150.0, 20)))
    returns = np.concatenate((sinking, np.linspace(150.0, 20.0, 6), np.full(HALF - 6, 20.0)))
    explained = np.repeat([0.9, 0.0], HALF)
    lost = {"outcome__return": returns + made.noise(COUNT), "value__loss": halves(1.0, 0.01)}
    run = world(**lost, value__explained_variance=explained)
    assert isinstance(environment_changed.RULE.ask(run), Clear)


def test_rows_without_an_episode_do_not_delay_a_break():
    held = np.concatenate((broken()[:HALF], np.full(8, broken()[HALF - 1]), broken()[HALF:-8]))
    assert isinstance(environment_changed.RULE.ask(world(outcome__return=held)), Finding)


def test_entropy_that_falls_with_the_outcome_is_a_note():
    entropy = np.repeat([0.6, 0.05], HALF)
    told = {"settings": {"n_actions": 2}, "exploration__entropy": entropy}
    found = entropy_collapse.RULE.ask(made.trace(outcome__return=broken(), **told))
    assert found.severity is Severity.NOTE
    assert "may have done this too" in found.counter[0]
    early = np.repeat([0.6, 0.02], [HALF - 20, HALF + 20])
    told["exploration__entropy"] = early
    assert entropy_collapse.RULE.ask(made.trace(outcome__return=broken(), **told)).severity > 0


def test_a_policy_that_is_no_longer_trained():
    stopped = np.concatenate((np.abs(made.noise(HALF)) * 0.01 + 1e-3, np.zeros(HALF)))
    logged = {"policy__approx_kl": stopped, "value__loss": np.exp(made.noise(COUNT, 5))}
    found = frozen_metric.RULE.ask(made.trace(**logged))
    assert (found.severity, found.began) == (Severity.WARNING, AT)
    logged["policy__approx_kl"] = np.zeros(COUNT)  # one update a batch: it is always 0
    assert isinstance(frozen_metric.RULE.ask(made.trace(**logged)), Clear)


@pytest.mark.parametrize(("last", "rings"), [(0.0, True), (300.0, False)])
def test_a_return_that_became_one_number(last, rings):
    run = np.concatenate((made.rising(HALF), np.full(HALF, last)))
    found = constant_reward.RULE.ask(made.trace(outcome__return=run))
    assert isinstance(found, Finding) is rings
    assert not rings or found.began == AT


def test_a_run_that_became_ten_times_slower_is_seen():
    elapsed = np.cumsum(np.repeat([4.0, 56.0], HALF))
    run = made.trace(Profile.CONTROL_PPO, throughput__elapsed=elapsed, value__loss=np.ones(COUNT))
    found = throughput_drop.RULE.ask(run)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


def test_rewards_of_0_and_1_are_not_constant_however_rare_a_1_is():
    rare = (np.random.default_rng(0).random(400) < 0.15).astype(float)
    found = constant_reward.RULE.ask(made.trace(outcome__return=rare))
    assert not isinstance(found, Finding)
    never = np.where(np.arange(400) < 40, rare, 0.0)
    assert isinstance(constant_reward.RULE.ask(made.trace(outcome__return=never)), Finding)


def test_a_critic_that_erred_before_without_a_fall_does_not_hide_the_break():
    loss = np.concatenate((np.full(HALF // 2, 1.0), np.full(HALF - HALF // 2, 40.0)))
    loss = np.concatenate((loss, np.full(COUNT - HALF, 1600.0))) * (1 + 0.1 * made.noise(COUNT, 3))
    found = environment_changed.RULE.ask(world(value__loss=loss))
    assert isinstance(found, Finding)
    assert abs(found.began - AT) <= 2 * made.STEP
