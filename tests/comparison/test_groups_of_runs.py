"""Runs are grouped, aligned and scored as they should be, and the verdict is right."""

import math
from dataclasses import replace

import numpy as np
import pytest
from seeded import recorded, run, runs

import rlvitals
from rlvitals.comparison import scores
from rlvitals.comparison.compare import CompareOptions, compare
from rlvitals.comparison.grouping import groups, is_experiment_setting
from rlvitals.errors import UsageError
from rlvitals.types import Lifecycle, Series

CRASHED = Lifecycle(traceback="Traceback\nRuntimeError: out of memory", exit_code=1)


def labels(found):
    return [(one.label, len(one.members)) for one in found]


def test_every_setting_but_the_seed_makes_a_group():
    members = [
        run(1, seed, lr=lr, run_name=f"it-{seed}-{lr}", output_dir=f"out/{seed}")
        for lr in (1e-3, 3e-4)
        for seed in range(3)
    ]
    assert labels(groups(members)) == [("lr=0.001", 3), ("lr=0.0003", 3)]


@pytest.mark.parametrize(
    "key",
    ["rlvitals/id", "wandb/name", "run_name", "exp_name", "output_dir", "log_dir", "save_steps",
     "args/output_dir", "train_runtime", "train_samples_per_second", "device", "seed", "env_seed",
     "logging_steps", "config/log_frequency"],
)  # fmt: skip
def test_what_names_a_run_makes_no_experiment(key):
    assert not is_experiment_setting(key)


@pytest.mark.parametrize(
    "key",
    ["learning_rate", "agent/name", "optimizer/name", "model_path", "dataset_file", "model_id",
     "total_steps", "n_steps", "warmup_steps", "lr", "config/num_workers", "max_grad_norm"],
)  # fmt: skip
def test_what_trains_otherwise_is_another_experiment(key):
    assert is_experiment_setting(key)


def test_a_label_names_each_setting_that_differs():
    members = runs("", 1, lr=1e-3, ent_coef=0.01) + runs("", 1, lr=3e-4, ent_coef=0.0)
    assert labels(groups(members)) == [("lr=0.001, ent_coef=0.01", 1), ("lr=0.0003, ent_coef=0", 1)]
    many = [run(1, 0, **{f"a_long_setting_{i}": value for i in range(9)}) for value in (1, 2)]
    first = "a_long_setting_0=1, a_long_setting_1=1 and 7 more"
    assert labels(groups(many)) == [(first, 1), (first.replace("=1", "=2"), 1)]


def test_by_names_the_settings_and_a_wrong_one_is_told():
    members = [run(1, 0, lr=1, width=w) for w in (8, 8, 16)] + [run(1, 0, lr=2, width=8)]
    assert labels(groups(members)) == [
        ("lr=1, width=8", 2),
        ("lr=1, width=16", 1),
        ("lr=2, width=8", 1),
    ]
    assert labels(groups(members, ["lr"])) == [("lr=1", 3), ("lr=2", 1)]
    with pytest.raises(UsageError, match="no run has a setting 'widht'") as error:
        groups(members, ["widht"])
    assert "width" in error.value.hint


def test_paths_of_several_runs_are_groups_though_nothing_else_differs():
    members = runs("a", 1, 2) + runs("b", 1, 2)
    assert labels(groups(members)) == [("a", 2), ("b", 2)]
    alone = [run(1, 0, path="x"), run(1, 1, path="y")]
    assert labels(groups(alone)) == [("x", 1), ("y", 1)]
    by_lr = [run(1, i, path=str(i), lr=i // 2) for i in range(4)]
    assert labels(groups(by_lr)) == [("lr=0", 2), ("lr=1", 2)]
    by_rate = [run(1, i, path=str(i), learning_rate=i // 2) for i in range(4)]
    assert len(groups(by_rate, ["lr"])) == len(groups(by_rate, ["learning_rate"])) == 2


def test_recorded_runs_a_learning_rate_of_300_times_is_worse():
    plain, fast = (
        recorded("ppo-CartPole-v1", kind, path)
        for kind, path in (("healthy", "plain"), ("learning-rate-x300", "fast"))
    )
    found = compare([*plain[:5], *fast], CompareOptions())
    (told,) = found.against
    assert (told.word, told.reference, told.group) == ("worse", "plain", "fast")
    assert told.difference.approximate
    assert told.difference.high < -400
    assert "fast is worse than plain" in found.sentence
    assert [one.seeds for one in found.groups] == [5, 5]
    assert all(math.isinf(one.steps_to_level) for one in found.groups[1].runs)
    assert found.groups[0].steps_to_level < found.tasks[0].end
    assert found.groups[0].seconds_to_level > 0


def test_recorded_runs_of_one_group_split_in_two_are_not_told_apart():
    healthy = recorded("ppo-CartPole-v1", "healthy", "")
    for n in (3, 5, 10):
        split = [
            replace(one, path="b" if i >= n else "a") for i, one in enumerate(healthy[: 2 * n])
        ]
        (told,) = compare(split, CompareOptions()).against
        assert told.word == "cannot tell"
        assert told.difference.approximate is (n < 10)
        assert told.more_seeds is None or told.more_seeds > 0


def test_ten_seeds_get_an_interquartile_mean():
    rng = np.random.default_rng(0)
    a, b = 100 + rng.normal(size=10), 110 + rng.normal(size=10)
    found = compare(runs("a", *a) + runs("b", *b), CompareOptions())
    assert [one.typical.approximate for one in found.groups] == [False, False]
    middle = np.sort(a)[2:8].mean()
    assert found.groups[0].typical.value == pytest.approx(middle, rel=1e-3)
    assert found.against[0].word == "better"
    assert found.against[0].improvement.value == 1


def test_one_seed_and_one_group_say_nothing():
    found = compare([run(100, 0, path="a"), run(200, 0, path="b")], CompareOptions())
    assert found.against[0].word == "cannot tell"
    assert "from 1 seed" in found.sentence
    alone = compare([run(100, seed) for seed in range(4)], CompareOptions())
    assert alone.against == ()
    assert "nothing to compare with: 4 runs" in alone.sentence


def test_runs_that_are_left_out_are_counted():
    other = run(100, 1, path="b")
    loss = {"value/loss": other.trace.series["outcome/return"]}
    without = replace(other, trace=replace(other.trace, series=loss))
    found = compare([run(100, 0, path="a"), without], CompareOptions())
    assert found.sentence.startswith(
        "nothing to compare with: only 1 of 2 runs logs outcome/return, return "
    )


def test_identical_runs_do_not_differ():
    found = compare(runs("a", *[100] * 5) + runs("b", *[100] * 5), CompareOptions())
    assert found.against[0].word == "cannot tell"
    assert "there is no difference at all" in found.sentence


def test_a_crashed_seed_counts_as_the_worst_and_is_not_left_out():
    whole = runs("a", 100, 101, 99, 100)
    half = run(100, 4, path="a", rows=50, end=50_000, lifecycle=CRASHED)
    found = compare([*whole, half, *runs("b", 100, 101, 99, 100, 100)], CompareOptions())
    crashed = found.groups[0].runs[-1]
    assert crashed.failed == "RuntimeError: out of memory"
    assert crashed.score < 5  # where the runs began
    assert found.groups[0].failures == 1
    assert found.groups[0].mean == pytest.approx(80, abs=1)
    assert found.tasks[0].end == 100_000  # it does not cut the others


def test_all_runs_that_crash_at_one_place_have_failed_by_their_budget():
    more = {"end": 50_000, "budget": 100_000, "lifecycle": CRASHED}
    members = [*runs("a", 100, 100, 100, **more), *runs("b", 50, 50, 50, **more)]
    found = compare(members, CompareOptions())
    assert [one.failures for one in found.groups] == [3, 3]
    done = [replace(one, trace=replace(one.trace, budget=None)) for one in members]
    assert [one.failures for one in compare(done, CompareOptions()).groups] == [0, 0]


def test_a_fast_run_is_not_a_short_one():
    slow, fast = run(100, 0, path="a"), run(100, 0, path="b")
    hurried = fast.trace["outcome/return"]
    series = {"outcome/return": replace(hurried, times=1e9 + hurried.steps / 500)}
    fast = replace(fast, trace=replace(fast.trace, series=series))
    found = compare([slow, fast], CompareOptions(axis="time", short_fails=True))
    assert [one.failures for one in found.groups] == [0, 0]
    assert found.tasks[0].end == 200
    assert "--short" not in " ".join(found.notes)


def test_a_run_that_crashed_before_its_first_row_is_counted():
    empty = replace(run(1, 9, path="a").trace, series={}, lifecycle=CRASHED)
    member = replace(run(1, 9, path="a"), trace=empty)
    found = compare([*runs("a", 100, 100, 100), member, *runs("b", 1, 2, 3)], CompareOptions())
    assert [bool(one.failed) for one in found.groups[0].runs] == [False, False, False, True]


def test_a_run_that_ends_as_nan_has_failed():
    values = np.append(np.linspace(0, 100, 60), np.full(40, np.nan))
    found = compare([run(0, 0, path="a", values=values), *runs("b", 100, 100)], CompareOptions())
    assert found.groups[0].runs[0].failed == "its outcome is NaN at the end"
    assert found.tasks[0].end == 100_000


def test_a_nan_on_the_way_is_left_out_of_the_mean():
    values = np.full(100, 50.0)
    values[95] = np.nan
    found = compare([run(0, 0, path="a", values=values), *runs("b", 50, 50)], CompareOptions())
    assert found.groups[0].runs[0].score == 50
    assert found.groups[0].failures == 0


def test_all_runs_nan():
    nothing = [run(0, s, path=p, values=np.full(50, np.nan)) for p in "ab" for s in range(3)]
    found = compare(nothing, CompareOptions())
    assert found.against[0].word == "cannot tell"
    assert [one.failures for one in found.groups] == [3, 3]


def test_a_group_of_nan_is_worse_than_one_that_learns():
    nothing = [run(0, s, path="b", values=np.full(50, np.nan)) for s in range(3)]
    assert (
        compare([*runs("a", 100, 104, 97), *nothing], CompareOptions()).against[0].word == "worse"
    )


def test_a_run_that_stopped_before_its_budget_has_failed_where_it_is_known_to_be_over():
    gone = Lifecycle(live=False)
    short = run(100, 3, path="a", rows=40, end=40_000, budget=100_000, lifecycle=gone)
    found = compare([*runs("a", 100, 100, 100), short, *runs("b", 1, 2, 3)], CompareOptions())
    assert found.groups[0].runs[-1].failed == "stopped at 40,000 of 100,000 steps"
    for cycle in (Lifecycle(live=True), Lifecycle(), Lifecycle(last_row=1.7e9)):
        other = replace(short, trace=replace(short.trace, lifecycle=cycle))
        found = compare([*runs("a", 100, 100, 100), other, *runs("b", 1, 2, 3)], CompareOptions())
        assert not found.groups[0].failures
        assert found.tasks[0].end == 40_000


@pytest.mark.parametrize(("later", "failures"), [(500.0, 0), (7200.0, 1), (2e4, 1)])
def test_a_run_of_which_nothing_is_known_is_over_once_others_logged_on_without_it(later, failures):
    """Rows are held against rows: no clock, and no file's time."""
    cycle = Lifecycle(last_row=1.7e9)
    short = run(100, 3, path="a", rows=40, end=40_000, budget=100_000, lifecycle=cycle)
    others = [
        run(100, seed, path="a", budget=100_000, lifecycle=Lifecycle(last_row=1.7e9 + later))
        for seed in range(3)
    ]
    found = compare([short, *others, *runs("b", 1, 2, 3)], CompareOptions())
    assert found.groups[0].failures == failures


def test_a_short_run_of_no_known_budget_cuts_the_others_and_says_so():
    members = [*runs("a", 100, 100), run(100, 2, path="a", end=60_000), *runs("b", 90, 90, 90)]
    found = compare(members, CompareOptions())
    assert found.tasks[0].end == 60_000
    assert "a-2 ends there" in found.notes[0]
    failing = compare(members, CompareOptions(short_fails=True))
    assert failing.tasks[0].end == 100_000
    assert failing.groups[0].failures == 1


def test_recorded_runs_that_died_are_worse_where_a_person_says_they_failed():
    plain = recorded("ppo-CartPole-v1", "healthy", "plain", 5)
    died = recorded("ppo-CartPole-v1", "weight-nan-mid", "died")
    found = compare([*plain, *died], CompareOptions(short_fails=True))
    assert found.against[0].word == "worse"
    assert found.groups[1].failures == 5


def test_the_order_of_runs_changes_no_verdict():
    rng = np.random.default_rng(0)
    a, b = runs("a", *rng.normal(100, 5, 4)), runs("b", *rng.normal(120, 5, 4))
    straight = compare([*a, *b], CompareOptions())
    turned = compare([*a[::-1], *b[::-1]], CompareOptions())
    assert straight.sentence == turned.sentence
    back = compare([*b, *a], CompareOptions())
    assert straight.against[0].difference.value == pytest.approx(-back.against[0].difference.value)
    assert (straight.against[0].word, back.against[0].word) == ("better", "worse")


def test_less_is_better_of_a_loss():
    more = {"metric": "optimiser/loss"}
    up = np.linspace(5, 1, 100)
    a = [run(0, s, path="a", values=up + 0.01 * s, **more) for s in range(4)]
    b = [run(0, s, path="b", values=up - 0.5 + 0.01 * s, **more) for s in range(4)]
    found = compare([*a, *b], CompareOptions(metric="loss"))
    assert found.against[0].word == "better"
    assert found.groups[0].mean > found.groups[1].mean
    low = found.groups[0].typical
    assert low.low <= low.value <= low.high


def test_tasks_are_strata_and_each_counts_on_its_own_scale():
    """CartPole's returns are 500 and Acrobot's -85: neither may drown the other."""
    members = [
        *recorded("ppo-CartPole-v1", "healthy", "ppo", 4),
        *recorded("ppo-Acrobot-v1", "healthy", "ppo", 4),
        *recorded("a2c-CartPole-v1", "healthy", "a2c", 4),
        *recorded("a2c-Acrobot-v1", "healthy", "a2c", 4),
    ]
    found = compare(members, CompareOptions(by=("path",)))
    assert {one.name: one.is_known for one in found.tasks} == {
        "CartPole-v1": True,
        "Acrobot-v1": True,
    }
    assert [one.seeds for one in found.groups] == [4, 4]
    assert 0.9 < found.groups[0].mean < 1.1
    assert found.against[0].word == "cannot tell"


def test_groups_without_a_task_in_common_are_not_compared():
    members = runs("a", 1, 2, 3, env_id="CartPole-v1") + runs("b", 5, 6, 7, env_id="Acrobot-v1")
    (told,) = compare(members, CompareOptions(by=("path",))).against
    assert told.word == "cannot tell"
    assert "no task in common" in told.why


def test_many_groups_are_compared_at_a_stricter_level():
    members = [m for p in "abcd" for m in runs(p, 100, 101, 99)]
    found = compare(members, CompareOptions())
    assert [one.group for one in found.against] == ["b", "c", "d"]
    assert found.against[0].difference.confidence == pytest.approx(1 - 0.05 / 3)
    assert any("3 comparisons" in note for note in found.notes)


def test_scores_last_best_and_mean():
    values = np.array([0.0, 10, 20, 90, 30, 40, 50, 60, 70, 80])
    curve = scores.curve(run(0, 0, values=values).trace, "outcome/return", "steps")
    assert scores.score(curve, scores.parse_score_at("last"), 100_000) == 80
    assert scores.score(curve, scores.parse_score_at("best"), 100_000) == 90
    assert scores.score(curve, scores.parse_score_at("mean of last 30 %"), 100_000) == 70
    assert scores.score(curve, scores.parse_score_at("last"), 60_000) == 40
    with pytest.raises(UsageError, match="not taken at 'median'"):
        scores.parse_score_at("median")


def test_how_soon_a_level_is_held():
    quick = run(100, 0, path="a", values=np.minimum(np.linspace(0, 400, 100), 100))
    slow = run(100, 0, path="b", values=np.linspace(0, 110, 100))
    found = compare([quick, slow], CompareOptions(level=50.0))
    first, second = (one.runs[0] for one in found.groups)
    assert first.steps_to_level == pytest.approx(12_500, rel=0.2)
    assert second.steps_to_level == pytest.approx(45_500, rel=0.1)
    assert second.seconds_to_level == pytest.approx(second.steps_to_level / 100)


def counted(level, seed, path, key, pace):
    """A run that also logs how many episodes or tokens it has seen, `pace` a step."""
    member = run(level, seed, path=path)
    steps = member.trace["outcome/return"].steps
    series = {**member.trace.series, key: Series(steps, steps * 1.0, steps * pace)}
    return replace(member, trace=replace(member.trace, series=series))


@pytest.mark.parametrize(
    ("axis", "key"),
    [
        ("episodes", "progress/episode"),
        ("tokens", "throughput/tokens"),
        ("samples", "progress/steps"),
    ],
)
def test_runs_are_aligned_on_what_they_counted(axis, key):
    a = [counted(100, s, "a", key, 0.1) for s in range(3)]
    b = [counted(100, s, "b", key, 0.2) for s in range(3)]
    found = compare([*a, *b], CompareOptions(axis=axis))
    assert found.tasks[0].end == pytest.approx(10_000)
    assert found.groups[1].steps_to_level == pytest.approx(2 * found.groups[0].steps_to_level, 0.1)
    with pytest.raises(UsageError, match=f"it logs no {axis}"):
        compare(runs("a", 1, 2), CompareOptions(axis=axis))


def test_samples_are_the_steps_of_an_environment_or_the_batches_so_far():
    traces = [run(100, seed).trace for seed in range(2)]
    steps = traces[0]["outcome/return"].steps
    batches = Series(steps, steps * 1.0, np.full(len(steps), 64.0))
    traces = [
        replace(trace, series={**trace.series, "progress/batch_size": batches}) for trace in traces
    ]
    x = scores.curve(traces[0], "outcome/return", "samples").x
    assert x.tolist() == [64.0 * n for n in range(1, len(steps) + 1)]
    assert scores.find_axes(traces, "outcome/return") == ("steps", "samples", "time")
    of_steps = replace(run(100, 0).trace, step_unit="environment steps")
    assert scores.curve(of_steps, "outcome/return", "samples").x.tolist() == steps.tolist()


def test_time_is_an_axis():
    found = compare(runs("a", 100, 100, 100) + runs("b", 90, 90, 91), CompareOptions(axis="time"))
    assert found.tasks[0].end == pytest.approx(1000)


def test_an_unknown_metric_and_one_without_a_better_end_are_told():
    with pytest.raises(UsageError, match="no run logs a metric 'retrun'") as error:
        compare(runs("a", 1, 2), CompareOptions(metric="retrun"))
    assert "return" in error.value.hint
    steady = [run(1, s, metric="policy/approx_kl") for s in range(2)]
    with pytest.raises(UsageError, match="nobody says whether more"):
        compare(steady, CompareOptions(metric="approx_kl"))


def test_the_public_face_compares_traces():
    traces = [one.trace for one in runs("", 1.0, 1.1, lr=1) + runs("", 5.0, 5.1, lr=2)]
    found = rlvitals.compare(*traces)
    assert isinstance(found, rlvitals.lab.Comparison)
    assert [one.label for one in found.groups] == ["lr=1", "lr=2"]
    with pytest.raises(UsageError, match="not aligned on 'stepps'"):
        rlvitals.compare(*traces, axis="stepps")
