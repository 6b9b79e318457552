"""What is missing is never read as health: not NaN, not a column that a run does not log."""

from dataclasses import replace

import numpy as np
import pytest
from loading import RUNS, load, load_run

from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Clear, Finding, Undecided

each_rule = pytest.mark.parametrize("rule", CATALOGUE, ids=lambda r: r.name)
each_trace = pytest.mark.parametrize("which", ["fires", "quiet"])
RUN_NAMES = sorted(path.parent.name for path in RUNS.glob("*/run.toml"))
# These judge every column that they can for itself: without the one that is wrong, the others are
# still in order.
BY_COLUMN = {
    "accounting-broken",
    "answers-copied",
    "chosen-likelihood-falls",
    "constant-reward",
    "experts-collapse",
    "first-update-off",
    "frozen-metric",
    "impossible-value",
    "judge-outage",
    "not-a-number",
    "ratio-off-one",
    "stop-reason-shifts",
    "task-regresses",
    "tasks-without-signal",
}
# A break shows in the critic's loss or in its explained variance: each is looked at for itself.
EITHER = {
    ("environment-changed", "value/explained_variance"),
    ("environment-changed", "value/loss"),
}


def without(trace, *names):
    return replace(trace, series={k: s for k, s in trace.series.items() if k not in names})


def of_nan(trace, *names):
    nothing = {k: _nan(s) for k, s in trace.series.items() if k in names}
    ranks = {k: replace(v, values=v.values * np.nan) for k, v in trace.ranks.items() if k in names}
    return replace(trace, series={**trace.series, **nothing}, ranks={**trace.ranks, **ranks})


def _nan(series):
    return replace(series, values=np.full(len(series), np.nan))


def members(trace, metric):
    inside = f"{metric.name}/"
    return [k for k in trace.series if k == metric.name or (metric.family and k.startswith(inside))]


@each_rule
@each_trace
def test_a_run_of_nan_is_never_clear(rule, which):
    if rule.name in {"rank-stopped", "rank-clocks-differ"}:
        return  # rows tell them, whatever their numbers
    trace = load(rule.name, which)
    assert not isinstance(rule.judge(of_nan(trace, *trace.series)), Clear)


@each_rule
@each_trace
def test_a_needed_metric_of_nan_is_never_clear(rule, which):
    trace = load(rule.name, which)
    needed = [members(trace, metric) for metric in rule.needs]
    if rule.needs_any:
        needed.append([name for metric in rule.needs_any for name in members(trace, metric)])
    for names in needed:
        assert not isinstance(rule.judge(of_nan(trace, *names)), Clear)


@each_rule
@each_trace
def test_a_rule_never_clears_what_it_found_once_a_column_is_gone(rule, which):
    _never_clears(rule, load(rule.name, which))


@pytest.mark.parametrize("name", RUN_NAMES[::6])
def test_no_rule_clears_a_run_once_a_column_is_gone(name):
    _all(name)


@pytest.mark.soak
@pytest.mark.parametrize("name", RUN_NAMES)
def test_no_rule_clears_any_run_once_a_column_is_gone(name):
    _all(name)


def _all(name):
    trace = load_run(name)
    for rule in CATALOGUE:
        if rule.applies(trace.profile):
            _never_clears(rule, trace)


def _never_clears(rule, trace):
    answer = rule.judge(trace)
    if isinstance(answer, Clear):
        return
    for name in trace.series:
        if rule.name in BY_COLUMN and isinstance(answer, Finding) and name == answer.metric:
            continue
        if (rule.name, name) in EITHER and isinstance(answer, Finding):
            continue
        for less in (without(trace, name), of_nan(trace, name)):
            now = rule.judge(less)
            assert isinstance(now, Finding | Undecided), f"{rule.name} without {name}"
