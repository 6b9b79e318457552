"""A temperature that follows the load down: what proves it, and what only looks like it."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.scheduler import exploration_cut_under_load
from rlvitals.types import Profile

RULE = exploration_cut_under_load.RULE
COUNT = 400


def sluggish(seed, rho=0.98, count=COUNT):
    values = made.noise(count + 300, seed)
    for i in range(1, values.size):
        values[i] += rho * values[i - 1]
    return values[300:]


def pressure(seed=1):
    """Load that comes at a fifth of the run and stays."""
    return np.where(np.arange(COUNT) < COUNT // 5, 0.2, 4.0) + 0.1 * sluggish(seed)


def answer(load, lag=0):
    """The temperature a controller with base 1 and sensitivity 0.1 answers with, `lag` later."""
    return np.clip(1.0 - 0.1 * np.roll(load, lag), 0.5, 2.0)


def run(temperature, load, **metrics):
    return made.trace(
        Profile.SCHEDULER_PPO,
        metrics.pop("settings", {}),
        exploration__temperature=temperature,
        exploration__base_temperature=np.full(COUNT, 1.0),
        scheduler__latency_pressure=load,
        **metrics,
    )


@pytest.mark.parametrize("lag", [0, 3])
def test_a_temperature_that_follows_the_load_is_a_note_with_its_lag(lag):
    load = pressure()
    found = RULE.judge(run(answer(load, lag), load))
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    assert ("at the same decision" if lag == 0 else f"{lag} decisions later") in found.evidence[0]
    assert found.bound.value == pytest.approx(0.75)
    assert abs(found.began - (COUNT // 5) * made.STEP) <= 10 * made.STEP


def test_a_temperature_that_goes_ahead_of_the_load_is_not_caused_by_it():
    load = pressure()
    assert isinstance(RULE.judge(run(answer(load, -5), load)), Clear)


@pytest.mark.parametrize("seed", range(10))
def test_two_independent_sluggish_series_are_not_related(seed):
    """AR(.98) each: their levels correlate by chance, their changes do not."""
    temperature = np.clip(0.6 + 0.01 * sluggish(100 + seed), 0.5, 2.0)
    load = 3.0 + 0.1 * sluggish(200 + seed)
    assert isinstance(RULE.judge(run(temperature, load)), Clear)


def test_a_temperature_that_rises_with_the_load_is_another_controller():
    load = pressure()
    temperature = 0.6 + 0.02 * (load - load.min())
    assert isinstance(RULE.judge(run(temperature, load)), Clear)


def test_a_cut_that_helps_is_what_the_controller_is_for():
    load = pressure() + np.where(np.arange(COUNT) < COUNT // 5, 0.0, 1.0)
    latency = np.linspace(20, 4, COUNT) + 0.1 * made.noise(COUNT, 9)
    assert isinstance(RULE.judge(run(answer(load), load, outcome__latency=latency)), Clear)
    stuck = RULE.judge(run(answer(load), load, outcome__latency=latency[::-1].copy()))
    assert isinstance(stuck, Finding)


def test_light_load_moves_the_temperature_a_little_and_rightly():
    load = 0.5 + 0.1 * sluggish(4)
    assert isinstance(RULE.judge(run(answer(load), load)), Clear)


def test_the_lowest_temperature_is_the_run_s_own():
    load = 1.0 + 0.05 * sluggish(5)
    quiet = run(answer(load), load)
    assert isinstance(RULE.judge(quiet), Clear)
    near = replace(quiet, settings={"min_temperature": 0.85})
    assert isinstance(RULE.judge(near), Finding)
    nothing_to_cut = replace(quiet, settings={"min_temperature": 1.0})
    assert isinstance(RULE.judge(nothing_to_cut), Undecided)


def test_a_temperature_at_its_clamp_has_no_changes_to_compare():
    load = 9.0 + 0.1 * sluggish(6)
    assert isinstance(RULE.judge(run(np.full(COUNT, 0.5), load)), Undecided)


def test_pulses_are_left_out():
    load = pressure()
    temperature, pulsing = answer(load), np.zeros(COUNT)
    pulsing[::8] = 1
    temperature[::8] = 3.0
    found = RULE.judge(run(temperature, load, exploration__is_pulsing=pulsing))
    assert isinstance(found, Finding)


def test_latency_itself_stands_in_for_its_pressure():
    load = pressure()
    latency = 6.0 * (1 + load)
    without = made.trace(
        Profile.SCHEDULER_PPO, exploration__temperature=answer(load), outcome__latency=latency
    )
    found = RULE.judge(without)
    assert isinstance(found, Finding)
    assert "request latency" in found.summary


def test_a_load_of_nan_is_undecided():
    assert isinstance(RULE.judge(run(answer(pressure()), np.full(COUNT, np.nan))), Undecided)


def test_a_rising_outcome_speaks_against_it():
    load = pressure()
    found = RULE.judge(run(answer(load), load, outcome__reward=made.rising(COUNT)))
    assert found.counter


def test_its_numbers_can_be_set():
    load = pressure()
    quiet = {"exploration-cut-under-load.depth": 0.95}
    assert isinstance(RULE.judge(replace(run(answer(load), load), thresholds=quiet)), Clear)
    noisy = answer(load) + 0.01 * made.noise(COUNT, 7)
    strict = {"exploration-cut-under-load.strength": 0.99}
    assert isinstance(RULE.judge(replace(run(noisy, load), thresholds=strict)), Clear)
