"""Runs judged as they grow, on answers made by hand: what counts as named, raised, taken back."""

from dataclasses import replace

import numpy as np
import pytest
from test_labels import HEALTHY, LEVEL, RUN

from rlvitals.faults import table
from rlvitals.faults.online_eval import Heard, Watched, summarise

KNOWN = {RUN.task: LEVEL}
BROKEN = replace(RUN, name="x", fault="clip-range-tiny", outcome=25.0, best=30.0)
RIGHT, WRONG = "clip-fraction-high", "no-learning"


def watched(run, *said, updates=100, visible=True, verdict="stalled"):
    """Four prefixes of a run of 1,000 steps; each is the rules that ring, the first case first."""
    heard = tuple(
        Heard(250 * (i + 1), verdict, rules[0] if rules else "", frozenset(rules))
        for i, rules in enumerate(said)
    )
    return Watched(run, visible and bool(run.fault), updates, heard)


def test_the_first_prefix_that_names_the_cause_counts():
    runs = [
        watched(BROKEN, (), (RIGHT, WRONG), (RIGHT, WRONG), (WRONG, RIGHT)),
        watched(BROKEN, (), (WRONG,), (WRONG, RIGHT), (RIGHT,)),
        watched(BROKEN, (), (WRONG,), (WRONG, RIGHT), (WRONG, RIGHT)),
        watched(BROKEN, (RIGHT,), (), (), (), visible=False),
    ]
    found = summarise(runs, KNOWN)
    assert (found.runs, found.visible) == (4, 3)
    assert found.named.value == pytest.approx(2 / 3)
    assert found.at_the_end.value == pytest.approx(1 / 3)
    assert found.delay == pytest.approx((0.5 + 1.0) / 2)


def test_a_naming_before_the_onset_is_none():
    run = replace(BROKEN, onset=500)
    assert summarise([watched(run, (RIGHT,), (RIGHT,), (), ())], KNOWN).named.value == 0.0
    found = summarise([watched(run, (RIGHT,), (RIGHT,), (RIGHT,), ())], KNOWN)
    assert (found.named.value, found.delay) == (1.0, 0.25)


def test_a_crash_is_named_by_the_verdict():
    run = replace(BROKEN, fault="weight-nan", ended="ValueError: nan")
    assert (
        summarise([watched(run, (), (), (), (), verdict="failed")], KNOWN).at_the_end.value == 1.0
    )
    assert summarise([watched(run, (), (), (), ())], KNOWN).at_the_end.value == 0.0


def test_what_is_raised_again_counts_again():
    one = watched(BROKEN, (WRONG,), (), (WRONG, RIGHT), (RIGHT,))
    assert one.raised == {WRONG: 2, RIGHT: 1}
    assert one.taken_back == {WRONG: 2}
    found = summarise([one, watched(BROKEN, (), (RIGHT,), (RIGHT,), (RIGHT,))], KNOWN)
    assert (found.taken_back.value, found.flips.value) == (0.5, 1.0)


def test_to_be_folded_under_another_is_not_to_be_taken_back():
    one = watched(BROKEN, (WRONG,), (RIGHT, WRONG), (RIGHT, WRONG), (RIGHT, WRONG))
    assert one.taken_back.total() == 0


def test_alarms_of_healthy_runs_are_counted_by_run_and_by_update():
    runs = [watched(run, (), (), (), ()) for run in HEALTHY[:3]]
    runs.append(watched(HEALTHY[3], (WRONG,), (), (WRONG, RIGHT), (), updates=700))
    runs.append(watched(BROKEN, (WRONG,), (WRONG,), (), (), updates=9000))
    found = summarise(runs, KNOWN)
    assert (found.healthy, found.updates) == (4, 1000)
    assert (found.rung.value, found.alarms.value, found.per_thousand) == (0.25, 0.75, 3.0)
    bell = found.by_rule[WRONG]
    assert (bell.raised, bell.taken_back, bell.healthy, bell.healthy_back) == (3, 3, 2, 2)


def test_runs_of_an_unmeasured_task_are_left_out():
    found = summarise([watched(replace(BROKEN, task="other"), (WRONG,), (), (), ())], KNOWN)
    assert (found.runs, found.by_rule) == (0, {})
    assert np.isnan(found.delay)
    assert np.isnan(found.per_thousand)


def test_the_tables_have_a_cell_for_every_column():
    found = summarise(
        [watched(RUN, (WRONG,), (), (), ()), watched(BROKEN, (), (), (), (RIGHT,))], KNOWN
    )
    for lines in (table.live_summary(found), table.live_rule_rows(found)):
        assert {len(line) for line in lines} == {len(lines[0])}
    assert table.live_rule_rows(found)[1] == (WRONG, "1", "1", "1", "1")
    assert table.live_rule_rows(found)[2] == (RIGHT, "1", "-", "-", "-")
