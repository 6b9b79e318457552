"""The same run told differently: what must not matter to a diagnosis does not.

Each test changes how a run was logged, by a change whose effect on the answer is known, and
compares the verdict's word and each rule's finding: its severity and the step at which it began.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from effort import cases
from loading import RUNS, TRACES, read_recorded

from rlvitals.diagnosis.engine import diagnose
from rlvitals.metrics import frameworks
from rlvitals.metrics.canonicalize import trace
from rlvitals.metrics.frameworks import lookup
from rlvitals.metrics.reward_names import checks_the_answer
from rlvitals.rules.kinds import CONTROL, GROUPED
from rlvitals.rules.rule import Severity
from rlvitals.types import Budget, Log, Profile, Series

CASES = [
    *(("run", path.parent.name) for path in sorted(RUNS.glob("*/run.toml"))),
    *(("fires", path.parent.name) for path in sorted(TRACES.glob("*/trace.toml"))),
]
CASES = CASES[:: cases(6, 1)]
each_case = pytest.mark.parametrize("case", CASES, ids="/".join)


@cache
def recorded(case):
    return read_recorded(*case)


@cache
def assembled(case):
    log, given = recorded(case)
    return trace([log], given)


def where(holds, but=()):
    """Ask of the cases of which something holds, but for `but`, where it is known not to."""
    chosen = [case for case in CASES if case not in but and holds(case)]
    return pytest.mark.parametrize("case", chosen, ids="/".join)


def logs(name):
    return lambda case: name in assembled(case)


@cache
def told(case):
    """The diagnosis of a case as it was logged."""
    return diagnose(assembled(case))


def said(diagnosis, but=(), at=lambda step: step):
    """A verdict's word, and of each finding its severity and where it began."""
    found = {
        rule.name: (finding.severity, at(finding.began))
        for rule, finding in diagnosis.findings
        if rule.name not in but
    }
    return str(diagnosis.verdict.word), found


def again(case, change):
    """Diagnose a case whose log was changed."""
    log, given = recorded(case)
    return diagnose(trace([change(log)], given))


def each_series(log, change):
    return replace(log, series={key: change(key, s) for key, s in log.series.items()})


def with_values(series, values):
    return Series(series.steps, series.times, values)


# How a log is written


@each_case
def test_the_order_of_the_columns_says_nothing(case):
    def turned(log):
        return replace(log, series=dict(reversed(list(log.series.items()))))

    assert said(again(case, turned)) == said(told(case))


@each_case
def test_a_column_that_nobody_knows_is_listed_and_changes_nothing(case):
    def with_another(log):
        one = next(iter(log.series.values()))
        wild = with_values(one, 1e6 * np.sin(np.arange(len(one))))
        return replace(log, series={**log.series, "someone/own": wild})

    found = again(case, with_another)
    assert said(found) == said(told(case))
    assert set(found.trace.unmapped) - set(told(case).trace.unmapped) == {"someone/own"}


@each_case
def test_rows_that_are_there_twice_count_once(case):
    def repeated(_key, s):
        return Series(*(np.repeat(c, 2) for c in (s.steps, s.times, s.values)))

    assert said(again(case, lambda log: each_series(log, repeated))) == said(told(case))


@each_case
def test_the_clock_may_be_set_to_another_day(case):
    def later(_key, s):
        return Series(s.steps, s.times + 1e6, s.values)

    assert said(again(case, lambda log: each_series(log, later))) == said(told(case))


@each_case
def test_steps_may_be_counted_in_another_unit(case):
    """As steps of one environment or of 64. Step counts are a column too, and so is the budget."""

    def counted(run, factor=64):
        def more(name, s):
            values = factor * s.values if name == "progress/steps" else s.values
            return Series(factor * s.steps, s.times, values)

        budget = run.budget and Budget(factor * run.budget.steps, run.budget.origin)
        series = {name: more(name, s) for name, s in run.series.items()}
        ranks = {name: replace(v, steps=factor * v.steps) for name, v in run.ranks.items()}
        return replace(run, series=series, budget=budget, ranks=ranks)

    found = diagnose(counted(told(case).trace))
    # The first update is known by its step.
    but = ["first-update-off"]
    assert said(found, but) == said(told(case), but, at=lambda step: 64 * step)


# Of its 16 rows, 3 more without a number are a large share.
@where(lambda _: True, but=[("fires", "kl-above-target")])
def test_rows_before_the_first_numbers_say_nothing(case):
    """Columns that start as NaN; the rule that looks for NaN may say that they did."""

    def starts_empty(_key, s):
        every = int(np.median(np.diff(s.steps))) if len(s) > 1 else 1
        before = s.steps[0] - max(every, 1) * np.arange(3, 0, -1)
        nothing = np.full(3, np.nan)
        return Series(
            np.concatenate((before, s.steps)),
            np.concatenate((nothing, s.times)),
            np.concatenate((nothing, s.values)),
        )

    found = again(case, lambda log: each_series(log, starts_empty))
    assert said(found, but=["not-a-number"]) == said(told(case), but=["not-a-number"])


def rows_left(case, every):
    return max(len(s) for s in recorded(case)[0].series.values()) >= 40 * every


@pytest.mark.parametrize(
    ("case", "every"),
    [(case, every) for case in CASES for every in (2, 3, 10) if rows_left(case, every)],
    ids=lambda given: "/".join(given) if isinstance(given, tuple) else str(given),
)
def test_a_log_with_fewer_rows_is_never_clear_of_what_was_wrong(case, every):
    """Of every k-th row, while 40 or more are left.

    A rule that warned finds it again, at any severity, or cannot tell: fewer rows prove less. The
    rules that speak of single rows may lose just those.
    """
    log, given = recorded(case)
    for first in (0, every - 1):
        rows = slice(first, None, every)
        found = diagnose(trace([each_series(log, lambda _, s, rows=rows: s.where(rows))], given))
        clear = {rule.name for rule in found.clear}
        warned = {r.name for r, f in told(case).findings if f.severity >= Severity.WARNING}
        if "return-collapse" in {rule.name for rule, _ in found.findings}:
            clear -= {"no-learning"}  # what was learned and lost
        assert not (warned & clear) - {"accounting-broken", "kl-spike", "value-loss-explosion"}


# What the numbers are measured in

RETURNS = ("outcome/return", "outcome/eval_return")
REWARDS = ("outcome/reward", "reward/std", "language/filtered_reward")
SCORES = ("outcome/score", "outcome/rlhf_reward", "reward/non_score")
SQUARED = ("value/loss",)
VALUES = ("value/mean", "value/return_mean", "value/q_mean")


def in_units(run, factor):
    """The same rewards in another currency: what is made of them scales, the rest stays.

    Advantages are normalised, so that policy, KL and entropy are what they were.
    """
    linear = {
        **dict.fromkeys((*RETURNS, *VALUES, *REWARDS, *SCORES), factor),
        **dict.fromkeys(SQUARED, factor**2),
    }

    def scaled(name, s):
        own = linear.get(name.removesuffix("_min").removesuffix("_max"))
        # A component that is named for right answers is a share of them.
        if own is None and name.startswith("reward/component") and not checks_the_answer(name):
            own = factor
        return s if own is None else with_values(s, own * s.values)

    paid = {
        key: factor * value if key in {"kl_coef", "reward_threshold"} else value
        for key, value in run.settings.items()
        if key != "env_id"
    }
    return replace(run, series={k: scaled(k, s) for k, s in run.series.items()}, settings=paid)


@cache
def told_in_own_units(case):
    return diagnose(in_units(told(case).trace, 1.0))


def unit_hidden(case):
    """Normalised by their group or whitened, advantages hide the unit; A2C's are neither."""
    known = {*CONTROL, *GROUPED, Profile.RLHF_PPO}
    return assembled(case).profile in known and "raw" not in case[1]


@pytest.mark.parametrize("factor", [1000.0, 1e-3])
# A Huber loss grows with the unit's square at first, and linearly then; the norm at which a
# gradient is clipped has no unit, so that a value loss above 1e6 starves the policy.
@where(unit_hidden, but=[
    ("fires", "q-divergence"), ("fires", "exploration-never-ends"),
    ("fires", "critic-explains-nothing"), ("run", "ppo-cartpole-reward-x1000"),
])  # fmt: skip
def test_rewards_have_no_unit(case, factor):
    if case == ("fires", "constant-reward"):
        # A mean reward between 0 and 1 is taken for a share of right answers.
        factor = max(factor, 1.0)
    assert said(diagnose(in_units(told(case).trace, factor))) == said(told_in_own_units(case))


@pytest.mark.parametrize("offset", [-100.0, 3.7])
@where(logs("outcome/score"))
def test_a_reward_models_zero_means_nothing(case, offset):
    run = told(case).trace
    moved = {
        name: with_values(s, s.values + offset)
        for name, s in run.series.items()
        if name in {"outcome/score", "outcome/rlhf_reward"}
    }
    found = diagnose(replace(run, series={**run.series, **moved}))
    assert said(found) == said(told(case))


@where(logs("value/loss"))
def test_a_value_loss_may_be_halved(case):
    """Some frameworks log the mean square, others half of it."""
    run = told(case).trace
    half = with_values(run["value/loss"], run["value/loss"].values / 2)
    found = diagnose(replace(run, series={**run.series, "value/loss": half}))
    # These take its size at its word: beside the returns half of it is sooner nothing.
    but = ("value-drifts-from-return", "value-loss-vanishes")
    assert said(found, but) == said(told(case), but)
    vanished = [
        {r.name: f.severity for r, f in one.findings}.get("value-loss-vanishes")
        for one in (found, told(case))
    ]
    assert vanished[0] == vanished[1]


# Another framework's names

TRANSLATED = {
    "sb3": ("cleanrl", "rllib", "rl-games", "rsl-rl", "baselines", "acme", "tianshou", "skrl"),
    "trl-grpo": ("verl", "slime", "trl-ppo-old"),
    "trl-ppo": ("verl", "openrlhf", "trl-ppo-old"),
    "scheduler": ("sb3", "rllib"),
}
BY_NAME = {table.framework: table for table in frameworks.TABLES}
LEAST_SHARED = 4  # keys that both frameworks have, for a log to be theirs


def spoken(log, own, other):
    """The keys that both frameworks have: the log with these alone, and under the other's names."""
    keys = {}
    for key, name in other.keys.items():
        keys.setdefault(name.metric.name, (key, name))
    known = {key: found for key in log.series if (found := lookup.find(own, key))}
    shared = {key: found for key, found in known.items() if found[0] in keys}
    renamed = {}
    for key, (metric, name) in shared.items():
        new, its = keys[metric]
        renamed[new] = with_values(log.series[key], name.scale * log.series[key].values / its.scale)
    kept = {key: log.series[key] for key in shared}
    settings = {lookup.setting(own, key) or key: value for key, value in log.settings.items()}
    return (
        replace(log, series=kept, settings={}),
        Log(source="csv", series=renamed, step_unit=log.step_unit),
        settings,
    )


def others(case):
    """The frameworks that share enough of a log's keys to have written it."""
    log, _ = recorded(case)
    own = lookup.choose(log.source, log.series, frameworks.TABLES)
    said_by = {
        other: spoken(log, own, BY_NAME[other]) for other in TRANSLATED.get(own.framework, ())
    }
    return {other: told for other, told in said_by.items() if len(told[1].series) >= LEAST_SHARED}


# What a loss says of its errors is known by the framework.
@where(others, but=[("fires", "q-divergence")])
def test_another_frameworks_names_and_signs_for_the_same_numbers(case):
    _, given = recorded(case)
    for framework, (here, there, settings) in others(case).items():
        given = replace(given, settings={**settings, **given.settings})
        known = trace([here], given)
        found = trace([there], replace(given, profile=known.profile))
        assert {m.framework for m in found.measured.values()} == {framework}
        # How KL is estimated, and what counts as an update, is the framework's own, and a rule
        # about either asks for it.
        but = ("kl-clamped", "value-drifts-from-return", "updates-cut-short")
        assert said(diagnose(found), but) == said(diagnose(known), but), framework
