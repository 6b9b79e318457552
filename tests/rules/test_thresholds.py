"""A number that a rule judges by can be set, and then says that it was."""

import pytest

from rlvitals.records import Trace
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Threshold

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
