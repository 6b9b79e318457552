"""Groups on the way: profiles with honest bands, scores place by place, who held the level."""

import math

import numpy as np
import pytest
from matplotlib.image import imread
from seeded import recorded, run, runs

from rlvitals.comparison import statistics
from rlvitals.comparison.compare import CompareOptions, compare
from rlvitals.comparison.learning_curves import learning_curves
from rlvitals.types import Lifecycle
from rlvitals.views.drawing import files
from rlvitals.views.figures.groups import pictures

BY_PATH = CompareOptions(by=("path",))


def followed(members, asked=BY_PATH):
    told = compare(members, asked)
    return told, learning_curves(members, asked, told)


def test_a_profile_falls_from_all_runs_to_none_and_says_who_is_above():
    told, (low, high) = followed(runs("a", 10, 20, 30) + runs("b", 40, 50, 60, 70))
    assert (told.groups[0].label, low.group) == ("a", "a")
    for one in (low, high):
        assert (one.better[0], one.better[-1]) == (1.0, 0.0)
        assert (np.diff(one.better) <= 0).all()
        assert (one.better_low <= one.better).all()
        assert (one.better <= one.better_high).all()
    at = low.level.searchsorted(25.0)
    assert (low.better[at], high.better[at]) == (pytest.approx(1 / 3), 1.0)
    assert high.better_low[at] == pytest.approx(0.510, abs=0.001)  # Wilson: 4 of 4


@pytest.mark.parametrize("seeds", [3, 10, 30])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_band_holds_the_true_share(seeds, share):
    rng = np.random.default_rng(seeds)
    held, trials = 0, 400
    for _ in range(trials):
        low, high = statistics.profile_band([rng.random(seeds)], np.array([1 - share]))
        held += low[0] <= share <= high[0]
    # Wilson's coverage goes up and down with the share: 95 % on average, .83 at its worst here.
    assert held / trials >= 0.83


def test_a_metric_that_should_fall_is_drawn_as_logged():
    members = runs("a", 0.1, 0.2, 0.3, metric="optimiser/loss") + runs(
        "b", 1.0, 1.1, 1.2, metric="optimiser/loss"
    )
    _, (good, bad) = followed(members, CompareOptions(by=("path",), metric="optimiser/loss"))
    assert (np.diff(good.level) > 0).all()
    at = good.level.searchsorted(0.6)
    assert (good.better[at], bad.better[at]) == (1.0, 0.0)  # all of a are lower than .6


def test_scores_on_the_way_and_the_runs_that_held_the_level():
    told, (slow, fast) = followed(runs("a", 90, 95, 100) + runs("b", 190, 200, 210))
    assert slow.place[-1] == told.tasks[0].end == 100_000
    middle = len(slow.place) // 2
    assert slow.score[middle] < slow.score[-1] == pytest.approx(95)
    assert (fast.score[1:] > slow.score[1:]).all()
    assert (slow.score_low[5:] <= slow.score[5:]).all()
    assert (slow.score[5:] <= slow.score_high[5:]).all()
    soon = [one.place[np.argmax(one.held >= 0.5)] for one in (slow, fast)]
    assert soon[1] < soon[0]
    half = sorted(r.steps_to_level for r in told.groups[0].runs if math.isfinite(r.steps_to_level))
    assert soon[0] >= half[0]


def test_a_run_that_crashed_counts_as_the_worst_from_there_on():
    crashed = Lifecycle(traceback="RuntimeError: out of memory", exit_code=1)
    gone = run(100, 3, path="a", end=50_000, rows=50, lifecycle=crashed)
    told, (with_it, _) = followed([*runs("a", 100, 100, 100), gone, *runs("b", 50, 50, 50)])
    assert told.groups[0].failures == 1
    assert with_it.score[-1] == pytest.approx(told.groups[0].mean)
    assert 75 < with_it.score[-1] < 76  # a fourth run that stands where all began


def test_several_tasks_stand_on_one_scale():
    members = [
        run(level, seed, path=path, env_id=task)
        for path, levels in (("a", (100, 120, 110)), ("b", (300, 320, 310)))
        for task in ("CartPole-v1", "Acrobot-v1")
        for seed, level in enumerate(levels)
    ]
    told, found = followed(members)
    assert len(told.tasks) == 2
    assert all(len(one.score) == 0 for one in found)
    assert found[0].place[-1] == 1.0
    (profile, efficiency) = pictures(told, found)
    assert [panel.x_label for panel in profile.panels] == ["score, each task on its own scale"]
    assert len(efficiency.panels) == 1


@pytest.mark.parametrize("axis", ["steps", "time"])
def test_recorded_runs_are_drawn(axis, tmp_path):
    asked = CompareOptions(by=("path",), axis=axis)
    members = [*recorded("ppo-CartPole-v1", "healthy", "healthy", 12), *runs_of_a_fault()]
    told, found = followed(members, asked)
    names = ["performance_profile", f"{'time' if axis == 'time' else 'sample'}_efficiency"]
    drawn = pictures(told, found)
    assert [one.name for one in drawn] == names
    for one in drawn:
        for theme in ("light", "dark"):
            files.write(one, tmp_path / f"{one.name}-{theme}.png", theme, 40)
            assert imread(tmp_path / f"{one.name}-{theme}.png")[..., :3].std() > 0.01
        files.write(one, tmp_path / f"{one.name}.json", "light", 40)


def runs_of_a_fault():
    return recorded("ppo-CartPole-v1", "learning-rate-x300-mid", "fault", 5)
