"""Which finding stands under which: cause before symptom, and nothing under a note but notes."""

from dataclasses import replace

import pytest
from loading import load

from rlvitals.folding import fold
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Severity

RULES = {rule.name: rule for rule in CATALOGUE}
CAUSE, SYMPTOM = "learning-rate-jump", "kl-spike"


@pytest.fixture(scope="module")
def pair():
    cause = RULES[CAUSE].ask(load(CAUSE, "fires"))
    symptom = RULES[SYMPTOM].ask(load(SYMPTOM, "fires"))
    cause = replace(cause, severity=Severity.WARNING, began=1000, known=1000, ended=1000)
    return cause, replace(symptom, severity=Severity.WARNING, began=1000, known=1200, ended=9000)


def folded(cause, symptom, slack=0):
    cases = fold([(RULES[CAUSE], cause), (RULES[SYMPTOM], symptom)], slack=slack)
    return {case.rule.name: [s.rule.name for s in case.symptoms] for case in cases}


def test_a_symptom_stands_under_its_cause(pair):
    assert folded(*pair) == {CAUSE: [SYMPTOM]}


def test_what_began_after_a_symptom_was_known_did_not_cause_it(pair):
    cause, symptom = pair
    late = replace(cause, began=1300, known=1300, ended=1300)
    assert folded(late, symptom) == {CAUSE: [], SYMPTOM: []}
    assert folded(late, symptom, slack=100) == {CAUSE: [SYMPTOM]}


def test_a_note_explains_nothing_graver_than_a_note(pair):
    cause, symptom = pair
    note = replace(cause, severity=Severity.NOTE)
    assert folded(note, symptom) == {CAUSE: [], SYMPTOM: []}
    assert folded(note, replace(symptom, severity=Severity.NOTE)) == {CAUSE: [SYMPTOM]}


def test_the_gravest_symptom_ranks_its_cause(pair):
    cause, symptom = pair
    (case,) = fold(
        [(RULES[CAUSE], cause), (RULES[SYMPTOM], replace(symptom, severity=Severity.ERROR))]
    )
    assert case.severity is Severity.ERROR
