"""What the guides want to be said together: two symptoms that mean more than each alone."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.exploration import entropy_collapse
from rlvitals.rules.policy import kl_above_target, ratio_off_one
from rlvitals.rules.rule import Clear, Severity
from rlvitals.types import Profile

ENTROPY = entropy_collapse.RULE
KL = kl_above_target.RULE
RATIO = ratio_off_one.RULE
COLD = "lower qps_sensitivity or raise min_temperature"


def entropy_of_4_actions(count=200):
    return np.concatenate((np.full(count // 4, 1.3), np.full(count - count // 4, 0.03)))


def collapsed(temperature):
    return ENTROPY.ask(
        made.trace(
            Profile.SCHEDULER_PPO,
            {"n_actions": 4},
            exploration__entropy=entropy_of_4_actions(),
            exploration__temperature=np.full(200, temperature),
            outcome__reward=made.falling(200),
        )
    )


def test_entropy_that_collapses_under_a_low_temperature_names_the_controller():
    assert any(COLD in said for said in collapsed(0.2).evidence)
    assert not any(COLD in said for said in collapsed(1.0).evidence)


def high_kl(outcome, kl=0.1):
    return KL.ask(
        made.trace(
            settings={"target_kl": 0.02},
            policy__approx_kl=kl * np.exp(0.1 * made.noise(100)),
            outcome__return=outcome,
        )
    )


def test_high_kl_with_a_falling_return_is_divergence_an_error():
    assert high_kl(made.falling()).severity is Severity.ERROR
    assert high_kl(made.rising()).severity is Severity.WARNING
    assert isinstance(high_kl(made.falling(), kl=0.01), Clear)


@pytest.mark.parametrize(
    ("nats", "outcome", "severity"),
    [(1.5, "noise", Severity.WARNING), (0.1, "noise", None), (1.5, "rising", Severity.NOTE)],
)
def test_a_kl_far_beyond_any_clip_range_needs_no_target(nats, outcome, severity):
    returns = {"noise": 1.0 + made.noise(24, 4).cumsum() / 4, "rising": made.rising(24)}
    kl = nats * np.exp(0.5 * made.noise(24))
    found = KL.ask(made.trace(policy__approx_kl=kl, outcome__return=returns[outcome]))
    assert getattr(found, "severity", None) is severity


def off_ratio(kl, clip, counted="policy__clip_fraction"):
    return RATIO.ask(
        made.trace(
            Profile.RLHF_PPO,
            policy__ratio=3.0 + 0.1 * made.noise(100),
            policy__approx_kl=np.full(100, kl),
            outcome__rlhf_reward=made.flat(100),
            **{counted: np.full(100, clip)},
        )
    )


# TRL counts as clipped what loses its gradient alone.
@pytest.mark.parametrize("counted", ["policy__clip_fraction", "policy__clip_fraction_effective"])
def test_a_ratio_off_one_beside_high_kl_and_clipping_is_one_cause(counted):
    together = off_ratio(kl=0.2, clip=0.5, counted=counted)
    assert [said.split()[0] for said in together.evidence] == ["KL", "50%"]
    assert "too drastic" in together.causes[0]
    alone = off_ratio(kl=0.001, clip=0.01, counted=counted)
    assert not alone.evidence
    assert not any("too drastic" in cause for cause in (*alone.causes, *RATIO.causes))


def test_a_jump_of_the_ratio_s_variance_is_a_note():
    variance = 0.005 * np.exp(0.1 * made.noise(100))
    variance[70] = 2.0
    found = RATIO.ask(made.trace(policy__ratio=np.full(100, 1.0), policy__ratio_var=variance))
    assert found.severity is Severity.NOTE
    assert (found.began, found.observed) == (71 * made.STEP, 2.0)


def test_the_median_of_a_stretch_may_be_zero():
    """Most updates are skipped and have a KL of 0: that is its median, not its worst."""
    kl = np.zeros(400)
    kl[100:115], kl[300:315] = 0.5, 0.5
    found = KL.ask(made.trace(settings={"target_kl": 0.01}, policy__approx_kl=kl))
    assert "in 14% of 215 updates: median 0, 0.5 at most" in found.summary
