"""A number that a rule judges by can be set, and then says that it was."""

from dataclasses import replace

import pytest
from loading import load

from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Finding, Threshold
from rlvitals.types import Budget, Trace

FAR = 1e9  # further than any number of a run
# Their traces show the fault from end to end.
ALWAYS = ("setting-out-of-range", "total-negative-absolute-positive")
# Once they are set, the kind of run and its settings have no say.
BY_PROFILE = {
    "clip-fraction-high.share",
    "temperature-out-of-range.high",
    "temperature-out-of-range.low",
    "value-clip-high.share",
}

LOW = Threshold("entropy-collapse.low", 0.25, "share of what entropy could be")


def test_the_default_holds_until_another_is_set():
    assert LOW.on(Trace({}, {})) == 0.25
    assert LOW.on(Trace({}, {}, thresholds={LOW.name: 0.1})) == 0.1


def test_a_bound_says_where_it_came_from():
    own = LOW.bound(Trace({}, {}), "25% of ln(actions)", scale=2.0)
    assert (own.value, own.origin) == (0.5, "25% of ln(actions)")
    told = LOW.bound(Trace({}, {}, thresholds={LOW.name: 0.1}), "25% of ln(actions)", scale=2.0)
    assert (told.value, told.origin) == (0.2, "entropy-collapse.low as set")


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_a_threshold_is_named_by_its_rule(rule):
    for threshold in rule.thresholds:
        assert threshold.name.startswith(f"{rule.name}."), threshold
        assert threshold.doc
        assert threshold.allows(threshold.default), threshold
        assert threshold.low < threshold.high, threshold
    names = [threshold.name for threshold in rule.thresholds]
    assert len({*names}) == len(names)


def test_what_means_nothing_is_not_allowed():
    share = Threshold("a.share", 0.5, "share of the updates", high=1.0)
    assert [share.allows(x) for x in (0.0, 1.0, 1.1, -0.1, float("nan"), float("inf"))] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


SET = [rule for rule in CATALOGUE if rule.thresholds]


@pytest.mark.parametrize("rule", SET, ids=lambda rule: rule.name)
def test_numbers_that_are_set_change_the_answer(rule):
    """At the ends of what may be set a rule finds less on its fault, or something on health."""
    fires, quiet = load(rule.name, "fires"), load(rule.name, "quiet")
    if rule.name == "no-learning":  # its number counts only where a budget is known
        fires = replace(fires, budget=Budget(round(fires.last_step / 0.9), "made up"))
    before = rule.judge(fires).severity
    lows = {one.name: max(one.low, -FAR) for one in rule.thresholds}
    highs = {one.name: min(one.high, FAR) for one in rule.thresholds}
    each = [{name: end} for ends in (lows, highs) for name, end in ends.items()]
    less = [rule.judge(replace(fires, thresholds=said)) for said in (*each, lows, highs)]
    more = [rule.judge(replace(quiet, thresholds=said)) for said in (*each, lows, highs)]
    changed = [a for a in less if not isinstance(a, Finding) or a.severity < before]
    assert changed or any(isinstance(a, Finding) for a in more) or rule.name in ALWAYS


@pytest.mark.parametrize("rule", SET, ids=lambda rule: rule.name)
def test_a_default_that_is_set_changes_no_more_than_the_origin(rule):
    trace = load(rule.name, "fires")
    before = rule.judge(trace)
    for one in rule.thresholds:
        if one.name in BY_PROFILE:
            continue
        after = rule.judge(replace(trace, thresholds={one.name: one.default}))
        assert (after.summary, after.bound.value) == (before.summary, before.bound.value), one.name
        assert after.bound.origin in {before.bound.origin, f"{one.name} as set"}
