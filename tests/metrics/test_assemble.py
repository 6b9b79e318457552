"""Several logs of one run, one column for each metric; steps that go back."""

from dataclasses import replace

import numpy as np
import pytest

from rlvitals.metrics.canonicalize import Given, trace
from rlvitals.metrics.catalogue.optimiser import LOSS
from rlvitals.metrics.steps.resume import notes, straighten, without_repeats
from rlvitals.types import Ending, Log, Profile, Series

OWN = "and nothing tells how they go together: its metrics are judged by its own"


def series(steps, values=None):
    steps = np.asarray(steps, dtype=np.int64)
    values = np.ones(len(steps)) if values is None else np.asarray(values, dtype=np.float64)
    return Series(steps, np.full(len(steps), np.nan), values)


def log(where, *, source="csv", settings=None, **columns):
    return Log(source, columns, settings or {}, where=where)


def test_the_fullest_column_is_taken_once_and_said_so():
    short, full = series([1, 5, 9]), series(range(1, 10))
    run = trace([log("a", approx_kl=short), log("b", approx_kl=full), log("c", approx_kl=short)])
    assert run["policy/approx_kl"].steps is full.steps
    assert run.measured["policy/approx_kl"].where == "b"
    said = "1 of its 1 metrics is read from b, which holds more points"
    assert run.notes == (f"a: {said}", f"c: {said}")


def test_which_file_a_metric_is_read_from_is_said_for_each_file():
    many, few = series(range(1, 10)), series([1, 9])
    early = series(range(1, 4))
    run = trace(
        [
            log("events", loss=many, approx_kl=many),
            log("metrics.csv", loss=few, approx_kl=few, entropy=few),
            log("early.csv", entropy=early),
            log("wandb", **{"loss": few, "train/loss": few}),
        ]
    )
    assert run.measured["exploration/entropy"].where == "metrics.csv"
    assert run.notes == (
        f"early.csv seems to count other steps than events, {OWN}",
        "metrics.csv: 2 of its 3 metrics are read from events, which holds more points",
        "early.csv: 1 of its 1 metrics is read from metrics.csv, which spans the run",
        "wandb: 1 of its 1 metrics is read from events, which holds more points",
        "wandb: 1 metric under two keys",
    )


def test_of_equals_the_earlier_log_is_taken():
    run = trace([log("a", approx_kl=series([1, 9])), log("b", approx_kl=series([2, 9]))])
    assert run.measured["policy/approx_kl"].where == "a"


def test_numbers_count_not_rows():
    empty = series([1, 2, 9], [np.nan, np.nan, 1.0])
    run = trace([log("a", approx_kl=empty), log("b", approx_kl=series([1, 9]))])
    assert run.measured["policy/approx_kl"].where == "b"


def test_a_column_that_counts_other_steps_does_not_win_by_its_length():
    quarter, whole = series(range(1, 26)), series([20, 60, 100])
    run = trace([log("env", ep_rew_mean=quarter), log("all", ep_rew_mean=whole)])
    assert run.measured["outcome/return"].where == "all"


def test_what_a_person_says_overrules_the_log():
    run = trace(
        [log("a", settings={"target_kl": 0.1}, my_score=series([1, 2]), other=series([1, 2]))],
        Given({"my_score": LOSS}, {"target_kl": 0.02}, Profile.SUPERVISED),
    )
    assert run.measured["optimiser/loss"].key == "my_score"
    assert run.number("target_kl") == 0.02
    assert run.profile is Profile.SUPERVISED
    assert run.unmapped == ("other",)


def test_what_two_logs_of_a_run_hold_is_named_once():
    two = [log("a", other=series([1, 2])), log("b", other=series([1, 2]), own=series([1]))]
    assert trace(two).unmapped == ("other", "own")


@pytest.mark.parametrize("total", ["many", True, 0, -5, float("nan"), float("inf")])
def test_what_is_no_length_is_no_budget(total):
    assert trace([log("a", settings={"total_steps": total}, loss=series([1]))]).budget is None


def test_a_resume_keeps_the_later_attempt():
    found = straighten(series([1, 2, 3, 4, 3, 4, 5], [1, 2, 3, 4, 30, 40, 50]))
    assert found.series.steps.tolist() == [1, 2, 3, 4, 5]
    assert found.series.values.tolist() == [1, 2, 30, 40, 50]
    assert (found.seams, found.superseded, found.shuffled) == ((3,), 2, 0)


def test_a_stray_row_is_put_in_its_place():
    found = straighten(series([1, 2, 4, 3, 5, 6], [1, 2, 4, 3, 5, 6]))
    assert found.series.values.tolist() == [1, 2, 3, 4, 5, 6]
    assert (found.seams, found.superseded, found.shuffled) == ((), 0, 1)


def test_workers_that_write_side_by_side_are_no_resumes():
    rng = np.random.default_rng(3)
    steps = np.repeat(np.arange(200), 5) + rng.integers(0, 3, 1000)  # each counts for itself
    found = straighten(series(steps.tolist(), list(range(1000))))
    assert (found.seams, found.superseded) == ((), 0)
    assert len(found.series) == 1000


def test_many_resumes_are_one_note():
    steps = [*range(100), *range(60, 160), *range(120, 220), *range(180, 280), *range(240, 300)]
    found = straighten(series(steps, steps))
    assert notes([found]) == [
        "resumed 4 times, first at step 60 and last at 240: the later attempts are judged"
    ]


def test_attempts_from_the_first_step_are_no_resumes():
    steps = [*range(60), *range(80), *range(40), *range(90), *range(50)]
    found = straighten(series(steps, list(range(len(steps)))))
    assert notes([found]) == ["5 attempts from step 0: the last one alone is judged"]
    assert found.series.values.tolist() == list(range(270, 320))


def test_an_order_that_was_lost_is_no_chain_of_resumes():
    steps = np.tile([1, 2], 40)
    found = straighten(series(steps))
    assert found.seams == ()
    assert len(found.series) == len(steps)
    assert (np.diff(found.series.steps) >= 0).all()


def test_a_row_that_says_again_what_the_row_before_said_counts_once():
    twice = {"r": series([1, 1, 2, 3], [5, 5, 6, 6]), "l": series([1, 1, 2, 3], [9, 9, 9, 9])}
    found = without_repeats(twice)
    assert found["r"].values.tolist() == [5, 6, 6]
    assert found["l"].steps.tolist() == [1, 2, 3]


def test_episodes_that_end_at_one_step_are_no_repeats():
    apart = {"r": series([1, 1, 2], [5, 5, 6]), "l": series([1, 1, 2], [9, 8, 7])}
    assert [len(s) for s in without_repeats(apart).values()] == [3, 3]
    alone = {"r": series([1, 1, 2], [5, 5, 6]), "l": series([1, 2], [9, 7])}
    assert without_repeats(alone) is alone


STOPPED = "Traceback (most recent call last):\n  File ...\nKeyboardInterrupt"


@pytest.mark.parametrize(
    ("ending", "code", "traceback"),
    [
        (Ending(255, STOPPED), None, ""),  # a person's Ctrl-C fails nothing
        (Ending(1, "ValueError: nan"), 1, "ValueError: nan"),
        (Ending(0, "ValueError: caught"), 0, ""),
        (Ending(), None, ""),
    ],
)
def test_how_a_log_says_that_its_run_ended(ending, code, traceback):
    found = trace([replace(log("a", loss=series([1, 2])), ending=ending)])
    assert (found.lifecycle.exit_code, found.lifecycle.traceback) == (code, traceback)
    assert found.lifecycle.ended
    assert any("stopped by hand" in note for note in found.notes) == (ending.traceback == STOPPED)


def test_nested_keys_joined_with_dots_are_known():
    found = trace([log("wandb", **{"train.approx_kl": series([1, 2])})])
    assert "policy/approx_kl" in found
