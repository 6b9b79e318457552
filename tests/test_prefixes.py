"""What was known at one step is found again on every longer prefix, or taken back with a reason."""

from itertools import pairwise

import pytest
from loading import MEASURED, RUNS, TRACES, load, load_run

from rlvitals.diagnosis.replay import prefixes, replay, retractions
from rlvitals.rules.rule import Finding, Severity
from rlvitals.types import Budget, Lifecycle

PARTS = 10
RECORDED = [("run", path.parent.name) for path in sorted(RUNS.glob("*/run.toml"))]
RECORDED += [("fires", path.parent.name) for path in sorted(TRACES.glob("*/trace.toml"))]
SAMPLE = sorted({one for i, one in enumerate(RECORDED) if one[0] == "run" or i % 7 == 0})
EVERY = pytest.mark.parametrize(("which", "name"), RECORDED, ids=["-".join(r) for r in RECORDED])


def recorded(which, name):
    return load_run(name) if which == "run" else load(name, "fires")


def grave(answer):
    return isinstance(answer, Finding) and answer.severity > Severity.NOTE


def lost(courses):
    """Every warning that a longer prefix no longer gives: its rule, since when, until when."""
    for one in courses:
        since = None
        for step, answer in zip(one.steps, one.answers, strict=True):
            if grave(answer):
                since = step if since is None else since
            elif since is not None:
                yield one.rule.name, since, step
                since = None


def check(which, name):
    courses = replay(recorded(which, name), rates=MEASURED, parts=PARTS)
    taken = retractions(courses)
    assert [(r.rule.name, r.said, r.taken_back) for r in taken] == sorted(
        lost(courses), key=lambda one: (one[1], one[2], one[0])
    )
    assert all(r.why.strip() for r in taken)
    assert all(r.finding.severity > Severity.NOTE for r in taken)


@pytest.mark.parametrize(("which", "name"), SAMPLE, ids=["-".join(s) for s in SAMPLE])
def test_what_was_known_is_found_again_or_taken_back(which, name):
    check(which, name)


@pytest.mark.soak
@EVERY
def test_the_same_of_every_recorded_run(which, name):
    check(which, name)


@EVERY
def test_a_prefix_knows_nothing_of_what_comes(which, name):
    whole = recorded(which, name)
    *grown, last = prefixes(whole, PARTS)
    assert last is whole
    assert all(one.budget is None and one.lifecycle.live for one in grown)
    assert all(before.last_step < after.last_step for before, after in pairwise(grown))
    assert all(len(series) for one in grown for series in one.series.values())


def test_the_end_is_known_of_the_whole_alone():
    run = load_run("ppo-cartpole-healthy")
    over = Lifecycle(silence=5.0, exit_code=1, ended=True, attempts=3)
    *grown, last = prefixes(
        type(run)(run.series, run.measured, budget=Budget(9, "set"), lifecycle=over), PARTS
    )
    assert last.lifecycle is over
    assert {(one.lifecycle.exit_code, one.lifecycle.attempts) for one in grown} == {(None, 3)}
