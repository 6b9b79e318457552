"""What is said of a scheduler's temperature and of its choices, and when nothing can be."""

import numpy as np
import pytest

from rlvitals.diagnosis.coupling import coupling, spread
from rlvitals.signals.lagged import lag_correlation
from rlvitals.types import Measured, Profile, Series, Trace

COUNT = 400


def trace(settings=None, profile=Profile.SCHEDULER_PPO, **found):
    steps = np.arange(1, COUNT + 1)
    named = {
        name.replace("__", "/"): Series(steps, np.full(COUNT, np.nan), np.asarray(values, float))
        for name, values in found.items()
    }
    measured = {name: Measured("test", name, name) for name in named}
    return Trace(named, measured, settings or {}, profile)


def driven(delay, seed=0):
    """Latency, and a temperature that answers it so many rows later."""
    rng = np.random.default_rng(seed)
    latency = np.cumsum(rng.standard_normal(COUNT + 40))
    answer = -0.5 * latency[20 - delay : COUNT + 20 - delay] + 0.3 * rng.standard_normal(COUNT)
    return latency[20:-20], answer


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        (0, "temperature and request latency change together, at once: "),
        (1, "temperature follows request latency by 1 row: "),
        (6, "temperature follows request latency by 6 rows: "),
        (-4, "request latency follows temperature by 4 rows: "),
    ],
)
def test_the_lag_is_told_with_an_interval(delay, words):
    latency, temperature = driven(delay)
    found = coupling(trace(outcome__latency=latency, exploration__temperature=temperature))
    assert found.found.lag == delay
    assert found.sentence.startswith(f"{words}correlation of their changes -0.")
    assert found.short.startswith(words)
    low, high = found.found.interval
    assert low < found.found.correlation < high < 0


def test_pulses_do_not_hide_what_the_temperature_follows():
    latency, temperature = driven(2)
    pulsing = np.zeros(COUNT)
    for at in range(40, COUNT, 80):
        pulsing[at : at + 5] = 1
    found = coupling(
        trace(
            outcome__latency=latency,
            exploration__temperature=temperature + 50 * pulsing,
            exploration__is_pulsing=pulsing,
        )
    )
    assert (found.found.lag, found.found.is_significant) == (2, True)


def test_chance_is_called_chance():
    latency, _ = driven(0)
    other, _ = driven(0, seed=1)
    found = coupling(trace(outcome__latency=latency, exploration__temperature=other))
    assert found.sentence.startswith("whether temperature and request latency go together cannot")
    assert found.short.startswith("cannot tell: the strongest, ")
    low, high = found.found.interval
    assert low < 0 < high


def test_too_little_and_nothing():
    latency, temperature = driven(0)
    constant = coupling(trace(outcome__latency=latency, exploration__temperature=np.ones(COUNT)))
    assert "fewer than 50 rows" in constant.sentence
    assert coupling(trace(outcome__latency=latency)) is None
    assert coupling(trace(exploration__temperature=temperature)) is None


def test_the_interval_holds_the_truth():
    """Changes with correlation .5 and memory: 99 % over all lags, so nearly always at one."""
    rng = np.random.default_rng(3)
    held, runs = 0, 200
    for _ in range(runs):
        common, a, b = rng.standard_normal((3, 300))
        first, second = (np.cumsum(common + own) for own in (a, b))
        low, high = lag_correlation(first, second).interval
        held += low <= 0.5 <= high
    assert held / runs >= 0.97


def choices(*shares, seed=0):
    return np.random.default_rng(seed).choice(len(shares), COUNT, p=shares)


def test_choices_are_held_against_the_speeds():
    settings = {"replica_speeds": "[2.0, 1.0, 1.0]", "n_replicas": 3}
    best = spread(trace(settings, policy__action=choices(0.5, 0.25, 0.25)))
    even = spread(trace(settings, policy__action=choices(1 / 3, 1 / 3, 1 / 3)))
    assert best.elsewhere < 0.08
    assert even.elsewhere == pytest.approx(1 / 6, abs=0.07)
    assert even.short.endswith("of the last choices belong elsewhere")
    assert even.sentence.endswith("the best shares follow replica_speeds: 50% 25% 25%")


def test_without_speeds_it_is_said_that_the_best_is_not_known():
    found = spread(trace({"n_replicas": 2}, policy__action=choices(0.9, 0.1)))
    assert found.sentence.startswith("what would be best is not known: no replica_speeds is set")
    assert "were all equal, 4" in found.sentence
    assert found.short == "no replica_speeds is set: which shares are best is not known"


def test_other_agents_have_no_best_shares():
    assert spread(trace(profile=Profile.CONTROL_PPO, policy__action=choices(0.5, 0.5))) is None
    assert spread(trace()) is None
