"""How often rules ring is counted and written as data; what is not measured is held at a note."""

from dataclasses import replace

import pytest
from loading import MEASURED, load_run

from rlvitals.diagnosis.calibration import Judged, rates_module, reduce_diagnosis, tally
from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rate import FAMILIES, MIN_HEALTHY_RUNS, Rate, held_at_note, wilson
from rlvitals.rules.rates import RATES
from rlvitals.rules.rule import Severity
from rlvitals.types import Profile
from rlvitals.views import phrases, terminal

CONTROL = "on-policy control"


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 10, 0.0, 0.2775), (1, 20, 0.0089, 0.2361), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1)],
)
def test_wilson_s_interval_is_the_published_one(hits, count, low, high):
    found = wilson(hits, count)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_runs_are_counted_rule_by_rule():
    runs = [
        Judged(CONTROL, healthy=True, said={"a": None, "b": Severity.WARNING}),
        Judged(CONTROL, healthy=True, said={"a": Severity.NOTE, "b": Severity.ERROR}),
        Judged(CONTROL, healthy=False, said={"a": Severity.ERROR}, first="a", expects=("a",)),
        Judged(CONTROL, healthy=False, said={"a": Severity.WARNING}, first="b", expects=("a",)),
        Judged(CONTROL, healthy=False, said={"b": None}, expects=("b",)),
        Judged("RLHF", healthy=True, said={"b": None}),
    ]
    rates = tally(runs)
    assert rates["a"] == (Rate(CONTROL, 2, 0, 0, faulted=2, caught=2, first=1),)
    assert rates["b"] == (Rate("RLHF", 1), Rate(CONTROL, 2, 2, 1, faulted=1))


def test_frameworks_and_tasks_are_counted_once_of_the_healthy_runs_that_a_rule_could_judge():
    sb3, skrl = ("sb3", "cartpole"), ("skrl", "cartpole")
    runs = [
        *(Judged(CONTROL, True, {"a": None, "b": None}, "", (), *sb3) for _ in range(3)),
        Judged(CONTROL, True, {"a": None}, "", (), *skrl),
        Judged(CONTROL, False, {"b": None}, "", ("b",), "tianshou", "acrobot"),
        Judged(CONTROL, True, {"c": None}),
    ]
    rates = tally(runs)
    assert (rates["a"][0].healthy, rates["a"][0].frameworks, rates["a"][0].tasks) == (4, 2, 2)
    assert (rates["b"][0].healthy, rates["b"][0].frameworks, rates["b"][0].tasks) == (3, 1, 1)
    assert (rates["c"][0].healthy, rates["c"][0].frameworks, rates["c"][0].tasks) == (1, 0, 0)


def test_the_written_module_is_the_same_data():
    rates = {"a": (Rate(CONTROL, 2, 1, 0, 3, 2, 1, 4, 5), Rate("RLHF", 1)), "b": (Rate("RLHF", 7),)}
    names = {}
    exec(compile(rates_module(rates), "rates", "exec"), names)  # noqa: S102 - our own text
    assert names["RATES"] == rates


def test_the_shipped_rates_are_of_rules_that_exist_and_families_that_are_used():
    assert set(RATES) <= {rule.name for rule in CATALOGUE}
    families = {rate.family for rates in RATES.values() for rate in rates}
    assert families <= set(FAMILIES.values())
    assert all(rate.errors <= rate.rang <= rate.healthy for r in RATES.values() for rate in r)


def test_an_unmeasured_rule_is_held_at_a_note_and_says_so():
    run = load_run("ppo-cartpole-lr-spike")
    found = diagnose(run, rates={})
    assert {finding.severity for _, finding in found.findings} == {Severity.NOTE}
    case = next(case for case in found.every if case.rule.name == "return-collapse")
    assert case.said is Severity.ERROR
    assert case.has_severity_cap
    assert "held at a note: measured on no healthy run of this family, 10" in terminal.diagnosis(
        found, 200
    )
    few = {rule.name: (Rate(CONTROL, MIN_HEALTHY_RUNS - 1),) for rule in CATALOGUE}
    assert diagnose(run, rates=few).worst is Severity.NOTE
    assert diagnose(run, rates=MEASURED).worst is Severity.ERROR


def test_an_identity_needs_no_measuring():
    rule = next(rule for rule in CATALOGUE if rule.name == "return-collapse")
    finding = rule.ask(load_run("ppo-cartpole-lr-spike"))
    assert held_at_note(rule, finding, {}).severity is Severity.NOTE
    assert held_at_note(replace(rule, no_threshold=True), finding, {}) is finding


def test_counting_takes_what_the_rule_said_not_what_it_was_held_at():
    found = diagnose(load_run("ppo-cartpole-lr-spike"), rates={})
    counted = reduce_diagnosis(found, healthy=False, expects=("learning-rate-jump",))
    assert counted.said["return-collapse"] is Severity.ERROR
    assert counted.said["not-a-number"] is None
    assert counted.family == CONTROL


def test_a_finding_shows_its_rate_beside_it():
    rates = {rule.name: (Rate(CONTROL, 40, 1),) for rule in CATALOGUE}
    found = diagnose(load_run("ppo-cartpole-lr-spike"), rates=rates)
    profile = found.trace.profile
    assert phrases.false_alarm_rate(found.cases[0], profile) == (
        "fires on 1 of 40 healthy runs of this family (on-policy control)"
    )
    assert phrases.false_alarm_rate(found.cases[0], Profile.UNKNOWN) == (
        "fires on 1 of 40 healthy runs of on-policy control; the kind of this run is not known"
    )
    measured = {name: (replace(rate, frameworks=1, tasks=5),) for name, (rate,) in rates.items()}
    found = diagnose(load_run("ppo-cartpole-lr-spike"), rates=measured)
    assert phrases.false_alarm_rate(found.cases[0], profile) == (
        "fires on 1 of 40 healthy runs of this family (on-policy control; 1 framework, 5 tasks)"
    )
    note = next(
        case for case in found.every if case.severity is Severity.NOTE and not case.has_severity_cap
    )
    assert not phrases.false_alarm_rate(note, profile)
