"""A rule that raises leaves the judgement of the other rules."""

import made_traces as made
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Rule

RUN = made.trace(outcome__return=made.rising())


def divide(trace):
    return 1 / (trace.first_step - trace.first_step)


def test_a_rule_that_raises_is_undecided_and_the_others_judge():
    rule = Rule("divides", (), divide, "", (), ())
    with pytest.warns(RuntimeWarning, match="divides: the rule failed with ZeroDivisionError"):
        diagnosis = diagnose(RUN, (*CATALOGUE, rule))
    expected = diagnose(RUN, CATALOGUE)
    assert diagnosis.verdict == expected.verdict
    assert [each.name for each in diagnosis.clear] == [each.name for each in expected.clear]
    reason = {each.name: answer.why for each, answer in diagnosis.undecided}["divides"]
    assert "ZeroDivisionError" in reason
    assert "please report" in reason
