"""When an outcome fell, and whether a mean over episodes can have fallen so by a single break."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.curves import never_improves
from rlvitals.rules.falling import fall, falls_by, memory
from rlvitals.rules.policy import kl_spike
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.types import Profile

HALF, COUNT = 60, 160
NAME = "outcome/return"


def returns(rows, before=200.0, after=10.0):
    """A mean that rises, falls in a line for so many rows, and stays down."""
    up = np.linspace(20.0, before, HALF)
    down = np.linspace(before, after, rows + 1)[1:]
    return np.concatenate((up, down, np.full(COUNT - HALF - rows, after)))


def run(rows, window=100, length=100.0, **more):
    made_of = {"outcome__return": returns(rows), "outcome__episode_length": np.full(COUNT, length)}
    trace = made.trace(**made_of, **more)
    windowed = {k: replace(m, window=window) for k, m in trace.measured.items()}
    return replace(trace, measured=windowed)


def fell(trace, row=HALF):
    return fall(trace, NAME, trace[NAME], made.STEP * (row + 1))


def test_a_mean_forgets_after_as_many_episodes_as_it_spans():
    trace = run(10)
    assert memory(trace, NAME, made.STEP * 100) == 100 * 100
    assert memory(run(10, window=1), NAME, made.STEP * 100) == 0


@pytest.mark.parametrize(("rows", "slow"), [(10, False), (40, True)])
def test_what_falls_for_longer_than_the_mean_needs_is_slow(rows, slow):
    assert fell(run(rows)).slow is slow


def test_without_a_known_mean_nothing_is_called_slow():
    assert not fell(run(40, window=1)).slow


@pytest.mark.parametrize(("row", "late"), [(HALF, False), (HALF - 20, True)])
def test_a_fall_long_after_a_step_does_not_come_from_it(row, late):
    assert fell(run(10), row).late is late


def test_a_fall_that_had_begun_is_told():
    assert fell(run(10), HALF + 6).earlier
    assert not fell(run(10)).earlier


def test_what_sets_in_with_the_fall_did_not_bring_it_about():
    assert falls_by(run(3), made.STEP * (HALF + 1))
    assert not falls_by(run(3), made.STEP * (HALF - 9))


@pytest.mark.parametrize(
    ("row", "began", "severity"),
    [(HALF, HALF, Severity.WARNING), (HALF - 25, HALF - 25, Severity.NOTE)],
    ids=["at the fall", "long before it"],
)
def test_a_spike_is_blamed_for_the_fall_that_follows_it(row, began, severity):
    kl = 0.01 * (1.0 + 0.1 * made.noise(COUNT))
    kl[row] = 1.0
    found = kl_spike.RULE.ask(run(3, policy__approx_kl=kl))
    assert (found.began, found.severity) == (made.STEP * (began + 1), severity)


def test_no_single_update_lost_what_sank_slowly():
    assert kl_spike._describe_loss(run(3), made.STEP * (HALF + 1))
    assert kl_spike._describe_loss(run(60), made.STEP * (HALF + 3)) == ()


def climbing(count):
    return np.linspace(0.4, 0.9, count) + 0.02 * made.noise(count)


FEW = {"clipped": 0.02, "clip_range": 0.2, "profile": Profile.RLHF_PPO}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({}, Clear),
        ({"clipped": 0.3}, Finding),  # it was the policy that moved
        ({"clip_range": 0.9}, Finding),  # nothing is clipped there, however far it moved
        ({"clip_range": None}, Finding),
        ({"profile": Profile.CONTROL_PPO}, Finding),
    ],
)
def test_a_jump_of_a_few_tokens_is_none_of_the_policy(said, kind):
    """Of a healthy run: one token of 155 left by 7.7 nats, which is 98 % of the mean."""
    how = FEW | said
    kl, clipped = np.full(120, 0.002), np.full(120, 0.001)
    kl[HALF], clipped[HALF] = 0.106, how["clipped"]
    run_of = made.trace(
        how["profile"], {"clip_range": how["clip_range"]}, policy__approx_kl=kl,
        policy__clip_fraction_effective=clipped, outcome__reward=climbing(120),
    )  # fmt: skip
    assert isinstance(kl_spike.RULE.ask(run_of), kind)


def test_a_few_tokens_at_which_the_outcome_falls_are_told():
    kl = np.full(120, 0.002)
    kl[HALF] = 0.106
    score = np.concatenate((climbing(HALF), np.full(HALF, 0.1)))
    run_of = made.trace(
        Profile.RLHF_PPO, {"clip_range": 0.2}, policy__approx_kl=kl,
        policy__clip_fraction_effective=np.full(120, 0.02), outcome__reward=score,
    )  # fmt: skip
    assert kl_spike.RULE.ask(run_of).severity is Severity.WARNING


def test_an_outcome_that_wanders_about_its_start_was_never_better():
    wave = 10.0 * np.sin(np.arange(120) / 9.0)
    assert never_improves(wave - 1200.0, -1200.0, -1200.0, 100.0)
    assert not never_improves(wave[:50] - 1200.0, -1200.0, -1200.0, 100.0)
    risen = np.concatenate((wave[:60] - 1200.0, wave[60:] - 900.0))
    assert not never_improves(risen, -1200.0, -1200.0, 100.0)
