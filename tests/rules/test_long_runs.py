"""Long runs: judged as short ones are, and each answer about the outcome worked out once."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose, thin_trace
from rlvitals.rules.rule import Severity
from rlvitals.signals.thin import MAX_THIN_POINTS


def collapsing(count, seed=0):
    """Learns, and loses all of it at 60 % of the run, its entropy first."""
    draw = np.random.default_rng(seed)
    t = np.linspace(0, 1, count)
    learned = np.where(t < 0.6, 20 + 400 * t, 12.0)
    return made.trace(
        outcome__return=learned + draw.normal(0, 8, count),
        exploration__entropy=np.where(t < 0.6, 0.6, 0.001) + np.abs(draw.normal(0, 1e-4, count)),
        policy__approx_kl=np.abs(0.01 + draw.normal(0, 0.002, count)),
        value__loss=40 + draw.normal(0, 2, count),
    )


def warned(run):
    found = diagnose(run)
    names = {r.name for r, f in found.findings if f.severity >= Severity.WARNING}
    return found.verdict.word, names


@pytest.mark.parametrize("count", [MAX_THIN_POINTS + 1, 50_000, 300_000])
def test_a_long_run_has_the_findings_of_a_short_one(count):
    assert warned(collapsing(count)) == warned(collapsing(2_000))


def test_one_spike_in_a_long_run_is_still_seen():
    run = collapsing(100_000)
    kl = run["policy/approx_kl"].values
    kl[77_777] = 5.0
    assert 5.0 in thin_trace(run)["policy/approx_kl"].values


def test_a_short_run_is_judged_as_it_is_and_a_long_one_is_shown_whole():
    short, long = collapsing(MAX_THIN_POINTS), collapsing(MAX_THIN_POINTS + 1)
    assert thin_trace(short) is short
    assert diagnose(long).trace is long
