"""Promises that every rule keeps on any data at all: what a trainer logs is nobody's to choose."""

import math
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from effort import cases
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rlvitals import metrics
from rlvitals.metrics import environments
from rlvitals.metrics.metric import Metric
from rlvitals.rules import CATALOGUE
from rlvitals.rules.curves import MAX_GAP_SPANS
from rlvitals.rules.rule import Clear, Finding, Undecided
from rlvitals.rules.standing import OUTCOME_NAMES
from rlvitals.types import Budget, Lifecycle, Measured, Profile, Series, Trace

each_rule = pytest.mark.parametrize("rule", CATALOGUE, ids=lambda r: r.name)
SETTINGS = tuple(m.name for m in metrics.CATALOGUE if m.kind == "setting")
NAMES = tuple(m.name for m in metrics.CATALOGUE if m.kind != "setting" and not m.family)
BIG, TINY = 1e308, 5e-324
LENGTHS = (0, 1, 2, 3, 9, 10, 11, 12, 20, 37, 64, 150)
ENVIRONMENTS = ("", "CartPole-v1", "MountainCar-v0", "Pendulum-v1", "Acrobot-v1", "ALE/Pong-v5")
# Strategies are made once: Hypothesis checks each new one, which takes longer than to draw from it.
one_of = cache(st.sampled_from)
NUMBERS = st.sampled_from([0, 1, -1, 0.02, 0.5, 1.0, 4, 1e-300, 1e308, 1000, math.inf, math.nan])
GIVEN = st.dictionaries(st.sampled_from(SETTINGS), NUMBERS | st.just("auto"), max_size=4)
LIVES = (Lifecycle(), *(Lifecycle(live=True, silence=s) for s in (None, 0.0, 1e9)))


def _sawtooth(n, rng):
    return np.arange(n) % max(1, int(rng.integers(2, 9))) * 10.0 ** rng.integers(-3, 6)


# Every kind of column seen in a log, and the ones that only a broken program writes.
SHAPES = {
    "nan": lambda n, _: np.full(n, np.nan),
    "infinite": lambda n, _: np.full(n, np.inf),
    "minus infinite": lambda n, _: np.full(n, -np.inf),
    "constant": lambda n, rng: np.full(n, rng.normal()),
    "zero": lambda n, _: np.zeros(n),
    "one": lambda n, _: np.ones(n),
    "largest": lambda n, rng: np.where(rng.random(n) < 0.5, BIG, -BIG),
    "all largest": lambda n, _: np.full(n, BIG),
    "grows to the largest": lambda n, _: np.logspace(0, 308, n),
    "subnormal": lambda n, rng: TINY * rng.integers(-3, 4, n),
    "sawtooth": _sawtooth,
    "noise": lambda n, rng: rng.normal(0, 1, n),
    "share": lambda n, rng: rng.random(n),
    "heavy tails": lambda n, rng: rng.standard_cauchy(n),
    "rising": lambda n, rng: np.linspace(0, 1, n) + 0.02 * rng.normal(0, 1, n),
    "falling": lambda n, rng: np.linspace(200, -50, n) + rng.normal(0, 1, n),
    "walk": lambda n, rng: np.cumsum(rng.normal(0, 1, n)),
    "grows": lambda n, rng: np.exp(np.linspace(-12, 12, n) + rng.normal(0, 0.5, n)),
    "decays": lambda n, rng: np.exp(np.linspace(3, -30, n) + rng.normal(0, 0.1, n)),
    "whole numbers": lambda n, rng: rng.integers(0, 4, n).astype(np.float64),
    "collapses": lambda n, rng: np.where(np.arange(n) < n / 2, 1.0, 0.0) + 1e-3 * rng.random(n),
}
STEPS = {
    "even": lambda n, _: 1 + np.arange(n),
    "large and even": lambda n, _: 2048 * (1 + np.arange(n)),
    "equal": lambda n, _: np.full(n, 7),
    "huge": lambda n, rng: np.sort(rng.integers(0, 2**61, n)),
    "negative": lambda n, _: np.arange(n) - n // 2,
    "uneven": lambda n, rng: np.cumsum(rng.integers(0, 4, n) ** 3),
}


def _series(kind, spread, n, seed, spoilt):
    rng = np.random.default_rng(seed)
    values = np.array(SHAPES[kind](n, rng), dtype=np.float64)
    if spoilt and n:
        at = rng.random(n) < 0.1
        values[at] = rng.choice([np.nan, np.inf, -np.inf, BIG, 0.0], int(at.sum()))
    steps = np.asarray(STEPS[spread](n, rng), dtype=np.int64)
    clock = rng.integers(4)
    times = 1.7e9 + np.cumsum(rng.random(n)) if clock else np.full(n, np.nan)
    return Series(steps, times, values)


def looked_at(rule):
    """The metrics that a rule's own module names, by the catalogue."""
    said = vars(sys.modules[rule.check.__module__]).values()
    named = {m.name for m in said if isinstance(m, Metric) and not m.family}
    families = {m.name for m in (*rule.needs, *rule.needs_any) if m.family}
    families |= {m.name for m in said if isinstance(m, Metric) and m.family}
    members = {f"{name}/{part}" for name in families for part in ("0", "1", "format")}
    # Asked for by other modules, for many rules.
    named |= {"throughput/elapsed", "outcome/return", "exploration/entropy"} & set(NAMES)
    return tuple(sorted(named | members))


LOOKED_AT = {rule.name: looked_at(rule) for rule in CATALOGUE}


@cache
def columns(lengths):
    """Draw a series of one of the lengths."""
    return st.builds(
        _series,
        one_of(tuple(SHAPES)),
        one_of(tuple(STEPS)),
        one_of(lengths),
        st.integers(0, 2**32 - 1),
        spoilt=st.integers(0, 3).map(lambda n: n == 0),
    )


OWN = st.integers(0, 4)
MORE = (st.lists(one_of(OUTCOME_NAMES), max_size=2), st.lists(one_of(NAMES), max_size=3))


@st.composite
def traces(draw, rule, lengths=LENGTHS):
    """A run that logs what the rule looks at, most likely, an outcome, and anything else."""
    own = [name for name in LOOKED_AT[rule.name] if draw(OWN)]
    for names in MORE:
        own += draw(names)
    logged = {name: draw(columns(lengths)) for name in dict.fromkeys(own)}
    shared = draw(st.booleans())
    if shared and logged:
        longest = max(logged.values(), key=len)
        logged = {
            n: s if len(s) != len(longest) else Series(longest.steps, longest.times, s.values)
            for n, s in logged.items()
        }
    told = draw(GIVEN)
    for name in LOOKED_AT[rule.name]:
        if name in SETTINGS and draw(st.booleans()):
            told[name] = draw(NUMBERS)
    told["env_id"] = draw(one_of(ENVIRONMENTS))
    budget = draw(one_of((None, 1, 100, 10**6, 2**62)))
    return Trace(
        series={n: s for n, s in logged.items() if len(s)},
        measured={
            n: Measured(
                "made",
                n,
                draw(one_of(("", "max", "mean over epochs"))),
                draw(one_of(("", "k1", "k1 clamped", "k3"))),
                draw(one_of((1, 1, 100))),
            )
            for n in logged
        },
        settings=told,
        profile=draw(one_of(rule.profiles or tuple(Profile))),
        budget=None if budget is None else Budget(budget, "the run's total_steps"),
        lifecycle=draw(one_of(LIVES)),
    )


def same(one, other):
    """Equal, with NaN equal to itself."""
    return repr(one) == repr(other)


hard = settings(
    max_examples=cases(3, 60),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@each_rule
@hard
@given(data=st.data())
def test_no_data_makes_a_rule_raise_or_lie_about_where(rule, data):
    trace = data.draw(traces(rule))
    answer = rule.ask(trace)
    assert same(rule.ask(trace), answer), "a second look says something else"
    if isinstance(answer, Clear):
        return
    if isinstance(answer, Undecided):
        assert answer.why
        return
    assert isinstance(answer, Finding)
    assert trace.first_step <= answer.began <= answer.known <= trace.last_step
    assert answer.began <= answer.ended <= trace.last_step
    assert answer.bound.origin
    assert answer.summary
    assert answer.metric in trace
    assert isinstance(answer.observed, float | int)
    for text in (answer.summary, *answer.evidence, *answer.counter):
        assert "nan" not in text.lower().split() or rule.name == "not-a-number", text


@each_rule
@hard
@given(data=st.data())
def test_a_column_of_nan_is_no_health(rule, data):
    trace = data.draw(traces(rule, lengths=(12, 64)))
    needed = rule.needs or rule.needs_any
    if not needed:
        return  # it reads clocks, or NaN itself
    gone = {
        name: Series(s.steps, s.times, np.full(len(s), np.nan)) if _is(name, needed) else s
        for name, s in trace.series.items()
    }
    answer = rule.ask(replace(trace, series=gone))
    assert isinstance(answer, Undecided), answer


def _is(name, needed):
    return any(name == m.name or (m.family and name.startswith(f"{m.name}/")) for m in needed)


@each_rule
@hard
@given(data=st.data())
def test_where_steps_start_is_no_matter(rule, data):
    trace = replace(data.draw(traces(rule, lengths=(12, 64, 150))), budget=None)
    # A log that begins far beyond its own span is the tail of a run: then it does matter.
    span = trace.last_step - trace.first_step
    by = data.draw(st.integers(1, max(1, 2 * span)))
    assume(trace.first_step + by <= MAX_GAP_SPANS * span)
    moved = {n: Series(s.steps + by, s.times, s.values) for n, s in trace.series.items()}
    one, two = rule.ask(trace), rule.ask(replace(trace, series=moved))
    assert type(one) is type(two), (one, two)
    if isinstance(one, Finding):
        assert (two.began - by, two.ended - by) == (one.began, one.ended)
        # Its first points alone may be such a tail: then a rule may speak earlier or later.
        shortest = trace.first_step + rule.at_least - 1
        if trace.first_step + by <= MAX_GAP_SPANS * (shortest - trace.first_step):
            assert two.known - by == one.known
        assert same(two.severity, one.severity)


@each_rule
@hard
@given(data=st.data())
def test_another_metric_changes_nothing(rule, data):
    trace = data.draw(traces(rule, lengths=(12, 64)))
    steps = next((s.steps for s in trace.series.values()), None)
    if steps is None:
        return
    other = Series(steps, np.full(len(steps), np.nan), np.linspace(0, 9, len(steps)))
    more = replace(trace, series={**trace.series, "yours/other": other})
    assert same(rule.ask(more), rule.ask(trace))


def test_the_environments_asked_are_known_ones():
    assert sum(environments.lookup(name) is not None for name in ENVIRONMENTS) >= 4
