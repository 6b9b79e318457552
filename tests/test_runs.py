"""Whole runs through the whole catalogue: what a person would be told about each."""

from dataclasses import replace

import pytest
from loading import MEASURED, RUNS, load_run, recipe

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Finding, Severity
from rlvitals.views import terminal

NAMES = sorted(path.parent.name for path in RUNS.glob("*/run.toml"))
HEALTHY = [name for name in NAMES if recipe(name)["healthy"]]
each_run = pytest.mark.parametrize("name", NAMES)


def diagnosed(trace):
    return diagnose(trace, rates=MEASURED)


@each_run
def test_the_report_is_what_it_was(name, golden):
    golden(RUNS / name / "report.txt", terminal.diagnosis(diagnosed(load_run(name)), verbose=True))


@each_run
def test_the_verdict_is_what_a_person_would_say(name):
    assert diagnosed(load_run(name)).verdict.word == recipe(name)["verdict"]


@pytest.mark.parametrize("name", HEALTHY)
def test_no_rule_warns_on_a_healthy_run(name):
    found = diagnosed(load_run(name))
    assert not [rule.name for rule, f in found.findings if f.severity > Severity.NOTE]


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(HEALTHY)))
def test_a_broken_run_is_found_out(name):
    assert diagnosed(load_run(name)).worst >= Severity.WARNING


@each_run
def test_every_rule_ends_in_one_place(name):
    found = diagnosed(load_run(name))
    named = [rule.name for rule, _ in (*found.findings, *found.undecided)]
    named += [rule.name for rule in found.clear]
    assert len(named) == len(set(named)) == found.coverage.asked


@pytest.mark.parametrize("name", HEALTHY)
def test_the_first_rows_alone_are_never_a_pass(name):
    trace = load_run(name)
    steps = sorted({int(s) for series in trace.series.values() for s in series.steps})
    found = diagnosed(trace.until(steps[min(4, len(steps) - 1)]))
    assert found.verdict.word is Word.UNKNOWN
    assert not found.can_tell


def test_a_run_without_series_is_unknown():
    blank = replace(load_run("ppo-cartpole-healthy"), series={}, measured={})
    found = diagnosed(blank)
    assert found.verdict.word is Word.UNKNOWN
    assert not found.can_tell
    assert not found.clear
    assert not any(isinstance(answer, Finding) for _, answer in found.undecided)
