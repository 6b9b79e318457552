"""Which finding stands under which: cause before symptom, and nothing under a note but notes."""

from dataclasses import replace

import pytest
from loading import load

from rlvitals.diagnosis.root_cause import group_by_cause
from rlvitals.metrics.metric import Bound
from rlvitals.rules import CATALOGUE, causes
from rlvitals.rules.rule import Finding, Severity
from rlvitals.views import phrases

RULES = {rule.name: rule for rule in CATALOGUE}
CAUSE, SYMPTOM = "learning-rate-jump", "kl-spike"


@pytest.fixture(scope="module")
def pair():
    cause = RULES[CAUSE].ask(load(CAUSE, "fires"))
    symptom = RULES[SYMPTOM].ask(load(SYMPTOM, "fires"))
    cause = replace(cause, severity=Severity.WARNING, began=1000, known=1000, ended=1000)
    return cause, replace(symptom, severity=Severity.WARNING, began=1000, known=1200, ended=9000)


def folded(cause, symptom, slack=0):
    cases = group_by_cause([(RULES[CAUSE], cause), (RULES[SYMPTOM], symptom)], slack=slack)
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
    (case,) = group_by_cause(
        [(RULES[CAUSE], cause), (RULES[SYMPTOM], replace(symptom, severity=Severity.ERROR))]
    )
    assert case.severity is Severity.ERROR


def made(name, began, severity=Severity.WARNING, known=None):
    """A finding of a rule, with what folding looks at."""
    known = began if known is None else known
    bound = Bound(1.0, "default")
    return RULES[name], Finding(name, severity, "x/y", began, 99_000, 2.0, bound, known=known)


def names(cases):
    return [case.rule.name for case in cases]


def test_lr_too_high_is_one_case_with_its_symptoms_in_time():
    found = [
        made("no-learning", 0, Severity.ERROR, known=40_000),
        made("entropy-collapse", 12_000, Severity.ERROR),
        made("kl-spike", 11_000),
        made("learning-rate-jump", 10_000),
    ]
    (case,) = group_by_cause(found, slack=500)
    assert case.rule.name == "learning-rate-jump"
    assert names(case.symptoms) == ["kl-spike", "entropy-collapse", "no-learning"]


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [
        ("component-dominates", "zero-variance-groups"),  # every answer earns the easy part
        ("tool-use-fades", "zero-variance-groups"),
        ("turns-inflate", "responses-truncated"),
        ("length-is-paid", "responses-truncated"),
        ("judge-outage", "tool-use-fades"),
        ("sampler-mismatch", "gradient-explosion"),
    ],
)
def test_what_a_language_policy_learned_explains_what_its_groups_and_lengths_show(cause, symptom):
    found = [made(symptom, 11, Severity.ERROR, known=15), made(cause, 9)]
    (case,) = group_by_cause(found)
    assert (case.rule.name, names(case.symptoms)) == (cause, [symptom])


def test_of_two_causes_the_deepest_is_taken_then_the_first_then_the_gravest():
    outcome = made("return-collapse", 20_000, Severity.ERROR)
    deep = made("kl-above-target", 9_500)
    deepest = group_by_cause([outcome, made("entropy-collapse", 9_000, known=9_900), deep])
    assert names(deepest) == ["kl-above-target"]
    first = group_by_cause(
        [outcome, made("constant-reward", 12_000), made("kl-above-target", 9_000)]
    )
    assert first[0].rule.name == "kl-above-target"
    assert names(first[0].symptoms) == ["return-collapse"]
    error = made("kl-spike", 9_000, Severity.ERROR)
    gravest = group_by_cause([outcome, made("impossible-value", 9_000), error])
    assert gravest[0].rule.name == "kl-spike"
    assert names(gravest[0].symptoms) == ["return-collapse"]


def test_a_weak_cause_explains_nothing_graver_than_itself_and_only_what_no_other_does():
    error = made("no-learning", 0, Severity.ERROR, known=9_000)
    weak = made("critic-explains-nothing", 0)
    assert names(group_by_cause([error, weak])) == ["no-learning", "critic-explains-nothing"]
    warning = made("no-learning", 0, known=9_000)
    assert names(group_by_cause([warning, weak])) == ["critic-explains-nothing"]
    other = made("clip-fraction-high", 5_000)
    parents = {
        case.rule.name: names(case.symptoms) for case in group_by_cause([warning, weak, other])
    }
    assert parents == {"critic-explains-nothing": [], "clip-fraction-high": ["no-learning"]}


def test_causes_stand_before_what_only_the_outcome_shows():
    late = made("kl-spike", 50_000)
    outcome = made("return-collapse", 20_000)
    assert names(group_by_cause([outcome, late])) == ["kl-spike", "return-collapse"]
    grave = made("return-collapse", 20_000, Severity.ERROR)
    assert names(group_by_cause([grave, late])) == ["return-collapse", "kl-spike"]


def test_alternatives_are_ranked_and_say_why_they_rank_lower():
    found = [
        made("kl-above-target", 9_000),
        made("constant-reward", 12_000),
        made("action-collapse", 50_000),
        made("impossible-value", 1_000, Severity.NOTE),
        made("return-collapse", 20_000, Severity.ERROR),
    ]
    case = next(case for case in group_by_cause(found) if case.rule.name == "kl-above-target")
    assert [(other.rule.name, other.why) for other in case.alternatives] == [
        ("constant-reward", "it began later, at 12,000"),
        ("impossible-value", "it is milder: a note"),
    ]


def test_what_set_in_too_late_is_an_alternative_that_is_ruled_out():
    found = [made("kl-spike", 50_000), made("return-collapse", 20_000, Severity.ERROR)]
    (other,) = group_by_cause(found)[0].alternatives
    assert other.why == "it set in at 50,000, when this was detectable already"


def test_a_note_that_could_explain_a_graver_case_stands_before_other_notes():
    found = [
        made("no-learning", 0, Severity.ERROR, known=9_000),
        made("kl-clamped", 0, Severity.NOTE),
        made("updates-hardly-move", 3_000, Severity.NOTE),
    ]
    assert names(group_by_cause(found)) == ["no-learning", "updates-hardly-move", "kl-clamped"]


def test_every_rule_is_known_to_harm_the_outcome_or_not_to():
    """A new rule goes into `causes.LEARNING` where its fault can keep an outcome from rising."""
    placed = (*causes.OUTCOME_RULES, *causes.MECHANISM_RULES, *causes.INDEPENDENT_RULES)
    assert sorted(placed) == sorted(RULES)
    assert set(causes.WEAK_CAUSE_RULES) <= set(causes.MECHANISM_RULES)


def said(found):
    first = group_by_cause(found)[0]
    return [line.text for line in phrases.consequences(first) if line.label == "or perhaps"]


def test_an_outcome_that_nothing_explains_names_its_likeliest_note():
    outcome = made("return-collapse", 20_000, Severity.ERROR)
    hint = made("environment-changed", 19_000, Severity.NOTE)
    assert said([outcome, hint]) == ["note[environment-changed], but it is milder: a note"]
    later = made("environment-changed", 21_000, Severity.NOTE)
    assert said([outcome, later]) == []
    weak = made("critic-explains-nothing", 1_000, Severity.NOTE)
    assert said([outcome, weak]) == []
    assert said([made("kl-above-target", 1_000), hint]) == []
