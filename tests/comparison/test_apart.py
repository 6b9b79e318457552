"""Two runs are told apart where they part, and seldom where they do not."""

from dataclasses import replace

import numpy as np
import pytest
from seeded import recorded, run

from rlvitals.comparison.diff import diff_runs
from rlvitals.comparison.divergence_step import find_divergence
from rlvitals.types import Series


def series(values, every=10):
    return Series(np.arange(len(values)) * every, np.full(len(values), np.nan), values)


def noise(rng, count, memory):
    """AR(1) of unit variance."""
    found, jumps = np.empty(count), rng.normal(size=count)
    found[0] = jumps[0]
    for i in range(1, count):
        found[i] = memory * found[i - 1] + jumps[i] * np.sqrt(1 - memory**2)
    return found


def climb(count):
    return 20 * (1 - np.exp(-4 * np.linspace(0, 1, count)))


@pytest.mark.parametrize("count", [100, 300])
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8, 0.95])
def test_runs_of_one_curve_seldom_part(count, memory):
    rng = np.random.default_rng(count)
    parted = 0
    for _ in range(100):
        one, other = (series(climb(count) + noise(rng, count, memory)) for _ in range(2))
        parted += find_divergence("m", one, other).step is not None
    assert parted <= 5


@pytest.mark.parametrize(("count", "memory"), [(100, 0.0), (300, 0.5), (1000, 0.8)])
def test_a_shift_is_found_where_it_happens(count, memory):
    rng = np.random.default_rng(0)
    at = []
    for _ in range(40):
        one, other = (climb(count) + noise(rng, count, memory) for _ in range(2))
        other[count // 2 :] += 2.5
        found = find_divergence("m", series(one), series(other))
        if found.step is not None:
            at.append(found.step / (10 * count))
            assert found.size > 0
    assert len(at) >= 36
    assert np.median(at) == pytest.approx(0.5, abs=0.06)


def test_other_steps_are_no_hindrance():
    rng = np.random.default_rng(0)
    one = series(climb(400) + noise(rng, 400, 0), every=10)
    other = series(climb(150) + noise(rng, 150, 0) + 3, every=27)
    assert find_divergence("m", one, one).step is None
    assert find_divergence("m", one, other).step is not None


def test_what_has_no_noise_parts_where_it_differs():
    line = np.linspace(1, 0, 100)
    found = find_divergence(
        "m", series(line), series(np.where(np.arange(100) < 60, line, line * 0.9))
    )
    assert found.unequal == 600
    assert found.step >= 600
    assert find_divergence("m", series(np.full(30, 1.0)), series(np.full(30, 2.0))).step == 0
    assert find_divergence("m", series(np.full(30, 1.0)), series(np.full(30, 1.0))).step is None


def test_nan_is_a_difference_and_too_few_rows_are_told():
    rng = np.random.default_rng(0)
    values = rng.normal(size=50)
    broken = np.where(np.arange(50) < 30, values, np.nan)
    assert find_divergence("m", series(values), series(broken)).unequal == 300
    assert find_divergence("m", series(values), series(np.full(50, np.nan))).why
    few = find_divergence("m", series(values[:10]), series(values[:10]))
    assert "fewer than 20 rows" in few.why
    assert few.step is None
    away = Series(np.arange(50) + 10_000, np.full(50, np.nan), values)
    assert find_divergence("m", series(values), away).why


def test_recorded_runs_of_one_seed_are_the_same_until_the_fault_sets_in():
    """Weights become NaN at 40,960 steps; before, the runs are equal to the last digit."""
    (healthy,) = recorded("ppo-CartPole-v1", "healthy", "", 1)
    (reward,) = recorded("ppo-CartPole-v1", "reward-flipped-mid", "", 1)
    found = diff_runs(healthy.trace, reward.trace)
    first = min(one.unequal for one in found.partings if one.unequal and "time" not in one.metric
                and not one.metric.startswith("throughput"))  # fmt: skip
    assert first > 40_000
    assert any(f"before step {first:,}" in line for line in found.suggests)
    (nan,) = recorded("ppo-CartPole-v1", "weight-nan-mid", "", 1)
    died = diff_runs(healthy.trace, nan.trace)
    assert any("nothing shows that they are two different trainings" in s for s in died.suggests)
    assert any("ends at step 40,960" in line for line in died.suggests)


def test_recorded_runs_of_another_learning_rate_part_at_once_and_the_setting_is_named():
    (plain,) = recorded("ppo-CartPole-v1", "healthy", "", 1)
    (fast,) = recorded("ppo-CartPole-v1", "learning-rate-x300", "", 1)
    one, other = (
        replace(member.trace, settings={**member.trace.settings, "learning_rate": rate})
        for member, rate in ((plain, 1e-3), (fast, 0.3))
    )
    found = diff_runs(one, other)
    assert [(c.area, c.key, c.first, c.second) for c in found.changed] == [
        ("setting", "learning_rate", "0.001", "0.3")
    ]
    parted = {p.metric: p.step for p in found.partings if p.step is not None}
    assert parted["outcome/return"] < 5_000
    assert any(line.startswith("learning_rate differs") for line in found.suggests)


FACTS = {
    "git": {"commit": "a" * 40, "branch": "main", "diff": "diff --git a/x.py b/x.py\n+1\n"},
    "packages": {"torch": "2.12.0", "numpy": "2.1.0"},
    "host": {"name": "one", "cores": 8},
    "python": "CPython 3.11.7",
    "environment": {"OMP_NUM_THREADS": "1"},
    "command": ["python", "train.py"],
}


def changed(**more):
    one, other = run(100, 0).trace, run(100, 0).trace
    return diff_runs(one, other, (FACTS, {**FACTS, **more}))


def test_the_same_facts_are_no_difference():
    found = changed()
    assert found.changed == ()
    assert found.unknown == ()
    assert found.sentence.startswith("nothing that was recorded differs")


def test_code_packages_and_machines_are_told():
    found = changed(
        git={"commit": "b" * 40, "branch": "main", "diff": "diff --git a/y.py b/y.py\n+1\n"},
        packages={"torch": "2.13.0", "numpy": "2.1.0", "rich": "14"},
        host={"name": "two", "cores": 8},
        command=["python", "train.py", "--fast"],
    )
    said = [(one.area, one.key, one.first, one.second) for one in found.changed]
    assert said == [
        ("code", "commit", "a" * 40, "b" * 40),
        ("code", "x.py", "changed here", "as committed"),
        ("code", "y.py", "as committed", "changed here"),
        ("code", "command", "python train.py", "python train.py --fast"),
        ("package", "rich", "", "14"),
        ("package", "torch", "2.12.0", "2.13.0"),
        ("machine", "name", "one", "two"),
    ]
    assert "4 facts of the code, 2 packages, 1 fact of the machine" in found.sentence


def test_a_clean_checkout_has_no_diff():
    clean = {"commit": "a" * 40, "branch": "main"}
    found = changed(git=clean)
    assert [(one.key, one.second) for one in found.changed] == [("x.py", "as committed")]
    one, other = run(1, 0).trace, run(1, 0).trace
    assert diff_runs(one, other, ({**FACTS, "git": clean},) * 2).changed == ()


def test_what_nobody_recorded_is_said():
    one, other = run(1, 0).trace, run(1, 0).trace
    found = diff_runs(one, other, (FACTS, {}))
    assert found.unknown == tuple(
        f"the {what} of {other.name}" for what in ("code", "packages", "machine")
    )
    assert diff_runs(one, other).unknown[0] == "the code of both"


def test_the_seed_alone():
    rng = np.random.default_rng(0)
    one, other = (run(0, s, values=rng.normal(s * 9, 1, 100)).trace for s in (0, 1))
    found = diff_runs(one, other)
    assert found.sentence.startswith("they differ in the seed")
    assert any("compare groups of seeds" in line for line in found.suggests)
    tau = diff_runs(*(replace(t, settings={}) for t in (one, other)))
    assert any("nothing recorded differs" in line for line in tau.suggests)
