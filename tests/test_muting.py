"""A mute holds for a rule, some runs, a time; what it hides is told, and so is its end."""

from datetime import date

import pytest
from loading import load_run

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.suppressions import mute, stale
from rlvitals.options import Mute
from rlvitals.rules.rule import Severity

TODAY = date(2026, 5, 10)
RUN = "ppo-cartpole-lr-spike"
CAUSE = "learning-rate-jump"  # it explains the collapse that follows


@pytest.fixture(scope="module")
def found():
    return diagnose(load_run(RUN))


def names(diagnosis):
    return {rule.name for rule, _ in diagnosis.findings}


def accepted(rule=CAUSE, **limits):
    return Mute(rule, "a warm restart", where="rlvitals.toml, muted 1", **limits)


def test_a_muted_finding_is_set_apart_and_its_symptoms_stay(found):
    after = mute(found, RUN, [accepted()], TODAY)
    assert CAUSE in names(found)
    assert names(after) == names(found) - {CAUSE}
    assert [(one.rule.name, one.reason) for one in after.muted] == [(CAUSE, "a warm restart")]
    assert after.verdict == found.verdict
    worst = [case.severity for case in after.cases]
    assert worst == sorted(worst, reverse=True)


def test_with_everything_muted_nothing_is_worse_than_nothing(found):
    after = mute(found, RUN, [accepted(name) for name in names(found)], TODAY)
    assert after.worst is None
    assert after.can_tell
    assert {one.rule.name for one in after.muted} == names(found)
    assert max(one.finding.severity for one in after.muted) is Severity.ERROR


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({}, True),
        ({"run": "ppo-*"}, True),
        ({"run": "PPO-*"}, False),
        ({"run": "sac-*"}, False),
        ({"until": date(2026, 5, 10)}, True),
        ({"until": date(2026, 5, 9)}, False),
        ({"until_step": 10**9}, True),
        ({"until_step": 10}, False),
        ({"until": date(2027, 1, 1), "until_step": 10}, False),
    ],
)
def test_how_long_and_for_which_runs_it_holds(found, limits, holds):
    after = mute(found, RUN, [accepted(**limits)], TODAY)
    assert (CAUSE not in names(after)) is holds
    assert bool(after.muted) is holds


def told(found, *mutes, runs=(RUN,)):
    judged = [(run, mute(found, run, mutes, TODAY)) for run in runs]
    return list(stale(mutes, judged, TODAY))


def test_what_holds_and_hits_needs_no_word(found):
    assert told(found, accepted()) == []


def test_an_end_is_said(found):
    (said,) = told(found, accepted(until=date(2026, 5, 1)))
    assert said.startswith("muted until 2026-05-01, which is over: learning-rate-jump (rlvitals")
    assert said.endswith("counts again")
    (said,) = told(found, accepted("kl-clamped", until_step=10))
    assert said.startswith("muted until step 10, which is over: kl-clamped")
    assert "take the mute out" in said


def test_one_that_fits_nothing_is_said(found):
    (said,) = told(found, accepted("kl-clamped"))
    assert said.startswith("muted but not found: kl-clamped (rlvitals.toml, muted 1)")


def test_a_pattern_for_other_runs_is_said_only_where_several_are_judged(found):
    other = accepted(run="sac-*")
    assert told(found, other) == []
    (said,) = told(found, other, runs=(RUN, "b"))
    assert said.startswith("muted for no run here")
