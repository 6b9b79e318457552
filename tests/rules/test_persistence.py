"""A run that goes on is warned of what has stood for a while; a finished one as it is."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis import engine
from rlvitals.metrics.metric import Bound
from rlvitals.rules import CATALOGUE
from rlvitals.rules.going_on import GRACE_UPDATES, goes_on, in_grace, is_provisional
from rlvitals.rules.outcome import no_learning
from rlvitals.rules.rule import Clear, Finding, Rule, Severity, Undecided, persistence
from rlvitals.rules.value import critic_explains_nothing
from rlvitals.types import Budget, Lifecycle
from rlvitals.views import phrases

JUST_NOW = Lifecycle(live=True)
PERSISTS = persistence("rings")
RUN = made.trace(outcome__return=made.rising(), optimiser__loss=np.ones(100))
LAST = RUN.last_step


def rule(since, severity=Severity.WARNING):
    """A rule that rings from a step on, and persists."""

    def check(trace):
        if trace.last_step < since:
            return Clear()
        bound = Bound(1.0, "default")
        return Finding("it rings", severity, "outcome/return", since, trace.last_step, 1.0, bound)

    return Rule("rings", (), check, "", (), (), persists=PERSISTS, thresholds=(PERSISTS,))


def live(trace=RUN, **known):
    return replace(trace, lifecycle=replace(JUST_NOW, **known))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, True),
        ({"live": None}, False),
        ({"live": None, "silence": 1.0}, False),
        ({"live": None, "alive": True}, True),
        ({"live": False}, False),
        ({"ended": True}, False),
        ({"exit_code": 0}, False),
        ({"traceback": "ValueError: nan"}, False),
    ],
)
def test_what_goes_on(known, expected):
    assert goes_on(live(**known)) is expected


def test_a_spent_budget_ends_a_run():
    assert not goes_on(replace(live(), budget=Budget(LAST, "set")))
    assert not goes_on(replace(live(), budget=Budget(LAST + made.STEP - 1, "set")))
    assert goes_on(replace(live(), budget=Budget(LAST + made.STEP, "set")))


def test_what_has_not_stood_is_a_note_that_says_so():
    found = rule(round(0.95 * LAST)).ask(live())
    assert found.severity is Severity.NOTE
    assert "the run goes on: not a warning yet" in found.counter[-1]
    assert rule(round(0.85 * LAST)).ask(live()).severity is Severity.WARNING
    assert rule(round(0.85 * LAST), Severity.ERROR).ask(live()).severity is Severity.ERROR


def test_a_note_and_silence_stay_what_they_are():
    found = rule(round(0.95 * LAST), Severity.NOTE).ask(live())
    assert (found.severity, found.counter) == (Severity.NOTE, ())
    assert isinstance(rule(2 * LAST).ask(live()), Clear)


@pytest.mark.parametrize("known", [{"ended": True}, {"live": None}, {"exit_code": 1}])
def test_a_run_that_is_over_is_judged_as_it_is(known):
    found = rule(round(0.95 * LAST)).ask(live(**known))
    assert (found.severity, found.counter) == (Severity.WARNING, ())


def test_how_long_it_must_stand_can_be_set():
    late = rule(round(0.95 * LAST))
    told = replace(live(), thresholds={PERSISTS.name: 0.02})
    assert late.ask(told).severity is Severity.WARNING


def test_no_warning_while_learning_has_only_begun():
    updates = np.where(np.arange(100) < 100 - GRACE_UPDATES, np.nan, 1.0)
    begun = live(made.trace(outcome__return=made.rising(), optimiser__loss=updates))
    assert in_grace(begun)
    found = rule(0).ask(begun)
    assert found.severity is Severity.NOTE
    assert "learning has only begun" in found.counter[-1]
    assert not in_grace(RUN)
    assert not in_grace(made.trace(outcome__return=made.rising()))


def test_a_warm_up_counts_by_its_share_as_well():
    """Many updates within a moment after a long warm-up are no time to learn."""
    run = made.trace(outcome__return=made.rising(), optimiser__loss=np.ones(100))
    series = run["optimiser/loss"]
    late = series.steps[-1] - np.arange(100)[::-1]
    packed = replace(run, series={**run.series, "optimiser/loss": replace(series, steps=late)})
    assert in_grace(packed)


@pytest.mark.parametrize(
    ("budget", "known", "expected"),
    [(30, {}, True), (10, {}, False), (30, {"ended": True}, False), (30, {"live": None}, False)],
)
def test_a_twentieth_of_the_budget_is_provisional(budget, known, expected):
    trace = replace(live(**known), budget=Budget(budget * LAST, "set"))
    assert is_provisional(trace) is expected
    assert ("provisional" in phrases.headline(engine.diagnose(trace))) is expected


def test_known_is_when_it_could_be_seen_not_when_it_had_stood():
    since = round(0.5 * LAST)
    assert rule(since).ask(live()).known == rule(since).ask(live(ended=True)).known


def test_a_rule_that_persists_says_how_long():
    found = [rule for rule in CATALOGUE if rule.persists is not None]
    assert {"return-collapse", "no-learning"} <= {rule.name for rule in found}
    for one in found:
        assert one.persists in one.thresholds
        assert one.persists.name == f"{one.name}.persists"


def test_a_flat_start_is_no_news_while_a_run_goes_on():
    flat = made.trace(settings=made.POOR, outcome__return=made.flat(), optimiser__loss=np.ones(100))
    assert isinstance(no_learning.RULE.ask(flat), Finding)
    assert isinstance(no_learning.RULE.ask(live(flat)), Undecided)


def test_a_critic_that_starts_so_is_a_note_while_a_run_goes_on():
    run = made.trace(
        settings={"env_id": "CartPole-v1", "n_steps": 2048, "n_envs": 1},
        outcome__return=made.flat(),
        value__explained_variance=0.01 * made.noise(100),
        value__loss=np.ones(100),
    )
    assert critic_explains_nothing.RULE.ask(run).severity is Severity.WARNING
    found = critic_explains_nothing.RULE.ask(live(run))
    assert found.severity is Severity.NOTE
    assert "the run goes on" in found.counter[-1]
    assert critic_explains_nothing.RULE.ask(live(run, ended=True)).severity is Severity.WARNING
