"""From judged runs to numbers, on runs whose answers are made by hand."""

from dataclasses import replace

import pytest
from test_labels import HEALTHY, LEVEL, RUN

import rlvitals
from rlvitals.cli import main
from rlvitals.faults import bench
from rlvitals.faults.run_diagnosis import Judged, Said
from rlvitals.faults.score import label_runs, score

KNOWN = {RUN.task: LEVEL}
BROKEN = replace(RUN, name="x", fault="clip-range-tiny", outcome=25.0, best=30.0, onset=200)


def said(rule, severity=1, root=True, known=300):
    return Said(rule, severity, root, known)


def judged(run, *findings, verdict="learning", visible=True):
    names = tuple(sorted({"no-learning", *(f.rule for f in findings)}))
    counts = rlvitals.lab.Judged("on-policy control", not run.fault, dict.fromkeys(names))
    return Judged(run, verdict, findings, names, visible and bool(run.fault), counts)


def test_the_first_case_that_names_the_cause_counts():
    runs = [
        judged(BROKEN, said("clip-fraction-high"), verdict="stalled"),
        judged(BROKEN, said("no-learning"), said("clip-fraction-high")),
        judged(BROKEN, said("no-learning")),
        judged(BROKEN, said("clip-fraction-high", severity=0)),
    ]
    found = score(label_runs(runs, KNOWN))
    assert (found.broken, found.visible) == (4, 4)
    assert found.recall_1.value == 0.25
    assert found.recall_3.value == 0.5
    assert found.any_alarm.value == 0.75
    assert found.delay == pytest.approx(0.1)
    assert found.verdicts.value == 0.25


def test_what_was_known_before_the_onset_does_not_name_the_fault():
    early = [judged(BROKEN, said("clip-fraction-high", known=100))]
    found = score(label_runs(early, KNOWN))
    assert (found.recall_1.value, found.any_alarm.value) == (0.0, 1.0)


def test_a_cause_folded_under_another_is_not_named():
    runs = [judged(BROKEN, said("no-learning"), said("clip-fraction-high", root=False))]
    assert score(label_runs(runs, KNOWN)).recall_3.value == 0.0


def test_a_fault_that_no_log_shows_counts_for_the_whole_alone():
    found = score(label_runs([judged(BROKEN, said("no-learning"), visible=False)], KNOWN))
    assert (found.visible, found.recall_1.count) == (0, 0)
    assert found.recall_1_all.value == 0.0
    assert found.any_alarm.value == 1.0


def test_false_alarms_are_counted_per_healthy_run():
    runs = [judged(run) for run in HEALTHY[:8]]
    runs.append(judged(HEALTHY[8], said("kl-spike"), said("no-learning", severity=2)))
    runs.append(judged(HEALTHY[9], said("kl-spike", severity=0)))
    found = score(label_runs(runs, KNOWN))
    assert (found.healthy, found.warnings.value, found.errors.value) == (10, 0.1, 0.1)
    ring = found.by_rule["no-learning"]
    assert (ring.healthy, ring.warned, ring.errors) == (10, 1, 1)
    assert found.by_rule["kl-spike"].healthy == 2


def test_a_crash_is_named_by_the_verdict():
    run = replace(BROKEN, fault="weight-nan", ended="ValueError: nan")
    found = score(label_runs([judged(run, verdict="failed")], KNOWN))
    assert (found.recall_1.value, found.verdicts.value) == (1.0, 1.0)


def test_precision_counts_runs_with_an_alarm():
    own = replace(RUN, outcome=60.0)
    runs = [
        judged(BROKEN, said("no-learning")),
        judged(own, said("return-collapse")),
        judged(RUN, said("kl-spike")),
        judged(replace(BROKEN, outcome=440.0), said("kl-spike")),
    ]
    found = score(label_runs(runs, KNOWN))
    assert found.precision.value == pytest.approx(2 / 3)
    assert (found.benign, found.own_failures) == (1, 1)


def test_the_interval_draws_whole_tasks():
    other = replace(BROKEN, task="b")
    runs = [judged(BROKEN, said("clip-fraction-high"))] * 3 + [judged(other)] * 3
    found = score(label_runs(runs, {**KNOWN, "b": LEVEL}))
    assert (found.recall_1.value, found.recall_1.low, found.recall_1.high) == (0.5, 0.0, 1.0)


def test_rates_that_have_changed_ask_for_a_second_run(monkeypatch, tmp_path, capsys):
    rates = tmp_path / "rates.py"
    rates.write_text("old")
    monkeypatch.setattr(bench, "RATES_MODULE", rates)
    monkeypatch.setattr(bench, "diagnose_split", lambda *_: [])
    monkeypatch.setattr(rlvitals.lab, "tally", lambda *_: None)
    monkeypatch.setattr(rlvitals.lab, "rates_module", lambda *_: "new")
    assert main(["faults", "score", "--write"]) == 1
    assert rates.read_text() == "new"
    assert "once more" in capsys.readouterr().out
