"""What a watcher would have been told, and what was taken back: every prefix, with its reason."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from loading import MEASURED, load_run

from rlvitals.diagnosis.engine import add_retractions, diagnose
from rlvitals.diagnosis.replay import replay, retractions
from rlvitals.metrics.metric import Bound
from rlvitals.rules.rule import Clear, Finding, Rule, Severity, Undecided
from rlvitals.types import Budget, Lifecycle, Profile, Series, Trace
from rlvitals.views import terminal


def course(name, trace, rules=None):
    found = replay(trace, rates=MEASURED) if rules is None else replay(trace, rules, RINGS)
    return next(one for one in found if one.rule.name == name)


def rings(low, high, severity=Severity.WARNING, after=None):
    """A rule that rings while the run is between two lengths."""

    def check(trace):
        if low <= trace.last_step <= high:
            return Finding("it rings", severity, "outcome/return", low, high, 1.0, BOUND)
        return Clear() if after is None else after

    return Rule("rings", (), check, "", (), ())


BOUND = Bound(1.0, "default")
RINGS = {"rings": MEASURED["no-learning"]}
STEPS = np.arange(1000, 101_000, 1000)
RISING = STEPS / 1000.0 + np.random.default_rng(0).standard_normal(100)
RUN = Trace(
    {"outcome/return": Series(STEPS, np.full(100, np.nan), RISING)}, {}, profile=Profile.CONTROL_PPO
)
LAST = RUN.last_step


def test_a_warning_that_was_taken_back_says_when_and_why():
    found = course("rings", RUN, (rings(LAST // 4, LAST // 2),))
    (one,) = found.retractions
    assert LAST // 4 <= one.said <= 0.3 * LAST
    assert LAST // 2 < one.taken_back <= 0.56 * LAST
    assert one.why.startswith("it no longer holds; return is rising")
    assert found.flips == 2
    assert found.first_warning_step == one.said


def test_an_undecided_answer_is_the_reason():
    rule = rings(LAST // 4, LAST // 2, after=Undecided("too noisy to tell"))
    assert course("rings", RUN, (rule,)).retractions[0].why == "too noisy to tell"


def test_notes_and_what_stands_to_the_end_are_not_taken_back():
    assert course("rings", RUN, (rings(LAST // 4, LAST // 2, Severity.NOTE),)).retractions == ()
    standing = course("rings", RUN, (rings(LAST // 4, LAST),))
    assert standing.retractions == ()
    assert standing.flips == 1


def test_the_future_is_not_known_on_a_prefix():
    seen = []

    def check(trace):
        seen.append((trace.last_step, trace.budget, trace.lifecycle.exit_code))
        return Clear()

    budget, ended = Budget(LAST, "set"), Lifecycle(exit_code=1, ended=True)
    run = replace(RUN, budget=budget, lifecycle=ended)
    replay(run, (Rule("looks", (), check, "", (), ()),))
    assert len(seen) == 20
    assert {(b, code) for _, b, code in seen[:-1]} == {(None, None)}
    assert seen[-1] == (LAST, budget, 1)
    assert np.all(np.diff([step for step, _, _ in seen]) > 0)


def test_what_was_known_is_found_again_unless_it_was_taken_back():
    courses = replay(load_run("ppo-cartpole-lr-spike"), rates=MEASURED)
    for one in courses:
        grave = [isinstance(a, Finding) and a.severity > Severity.NOTE for a in one.answers]
        falls = sum(a and not b for a, b in pairwise(grave))
        assert falls == len(one.retractions)
        assert all(retraction.why for retraction in one.retractions)
    assert course("learning-rate-jump", load_run("ppo-cartpole-lr-spike")).retractions == ()


def test_the_report_shows_what_was_taken_back():
    rule = rings(LAST // 4, LAST // 2)
    found = add_retractions(diagnose(RUN, (rule,), RINGS), (rule,), RINGS)
    assert found.retracted == retractions(replay(RUN, (rule,), RINGS))
    assert "taken back       warning[rings] it rings: said at" in terminal.diagnosis(found, 200)
    assert diagnose(RUN, (rule,), RINGS).retracted == ()
