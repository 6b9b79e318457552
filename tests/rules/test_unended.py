"""Epochs, episodes, outcomes and logs that do not end as they should."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word, describe_end
from rlvitals.metrics.metric import Bound
from rlvitals.rules.outcome import episodes_never_end, return_collapse, return_oscillates
from rlvitals.rules.policy import updates_cut_short
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.rules.throughput import ended_early, no_new_rows
from rlvitals.types import Budget, Lifecycle, Series
from rlvitals.views import phrases

CARTPOLE = {"env_id": "CartPole-v1"}
HOUR = 3600.0


def cut(epochs, outcome, n_epochs=10):
    run = made.trace(
        settings={**CARTPOLE, "n_epochs": n_epochs},
        how={"optimiser__updates": "PPO: epochs; DQN: gradient steps"},
        optimiser__updates=np.cumsum(epochs),
        progress__iteration=np.arange(1.0, len(epochs) + 1),
        outcome__return=outcome,
    )
    return updates_cut_short.RULE.ask(run)


@pytest.mark.parametrize(
    ("epochs", "outcome", "severity"),
    [
        (np.full(100, 1), made.flat(), Severity.WARNING),
        (np.full(100, 1), made.rising(to=450), Severity.NOTE),
        (np.full(100, 4), made.flat(), Severity.NOTE),
        (np.full(100, 10), made.flat(), None),
        (np.where(np.arange(100) % 4, 10, 3), made.flat(), None),
    ],
)
def test_epochs_that_are_dropped(epochs, outcome, severity):
    assert getattr(cut(epochs, outcome), "severity", None) is severity


def test_gradient_steps_are_no_epochs():
    run = made.trace(optimiser__updates=np.arange(100.0), progress__iteration=np.arange(100.0))
    assert isinstance(updates_cut_short.RULE.ask(run), Undecided)


def lasting(lengths, outcome, env="CartPole-v1"):
    run = made.trace(
        settings={"env_id": env}, outcome__episode_length=lengths, outcome__return=outcome
    )
    return episodes_never_end.RULE.ask(run)


def test_poor_episodes_that_last_to_the_limit():
    assert lasting(np.full(100, 500.0), made.flat()).severity is Severity.WARNING
    # Returns of 20 to 450 in 500 steps: CartPole pays for every step until the pole falls.
    assert lasting(np.full(100, 500.0), made.rising(to=450)).severity is Severity.WARNING
    assert lasting(np.full(100, 500.0), 25.0 * made.rising(to=450)).severity is Severity.NOTE


def test_good_episodes_that_last_to_the_limit():
    assert isinstance(lasting(np.full(100, 500.0), np.full(100, 500.0)), Clear)
    grown = np.minimum(made.rising(to=900), 500.0)
    assert isinstance(lasting(grown, grown), Clear)


def test_episodes_that_are_all_cut_at_the_same_step():
    assert isinstance(lasting(np.full(100, 10.0), np.full(100, 10.0)), Finding)
    poor = 9.35 + 0.1 * made.noise(100)  # one action for ever: short, and never quite the same
    assert isinstance(lasting(poor, poor), Clear)


def test_tasks_that_always_last_are_not_asked():
    assert isinstance(lasting(np.full(100, 200.0), np.full(100, -1200.0), "Pendulum-v1"), Clear)
    assert isinstance(lasting(np.full(100, 200.0), made.flat(), "Own-v0"), Undecided)


def swings(*levels):
    return np.repeat(np.array(levels, dtype=float), 100 // len(levels)) + made.noise(100)


def test_a_return_lost_twice_is_unstable_not_collapsed():
    run = made.trace(outcome__return=swings(20, 400, 40, 380, 30))
    assert isinstance(return_collapse.RULE.ask(run), Clear)
    assert return_oscillates.RULE.ask(run).severity is Severity.WARNING
    assert diagnose(run).verdict.word is Word.UNSTABLE


def test_a_return_that_ends_at_its_top_is_neither():
    run = made.trace(outcome__return=swings(20, 400, 40, 380, 390))
    assert isinstance(return_oscillates.RULE.ask(run), Clear)
    thrice = made.trace(outcome__return=swings(20, 400, 40, 400, 40, 390, 395, 400, 398, 396))
    assert return_oscillates.RULE.ask(thrice).severity is Severity.NOTE
    assert diagnose(thrice).verdict.word not in {Word.COLLAPSED, Word.UNSTABLE}


def test_one_fall_is_a_collapse():
    run = made.trace(outcome__return=swings(20, 200, 400, 40, 30))
    assert isinstance(return_collapse.RULE.ask(run), Finding)
    assert isinstance(return_oscillates.RULE.ask(run), Clear)


def silent(silence, budget=200_000, **more):
    steps = made.STEP * (1 + np.arange(100))
    series = Series(steps, 1e9 + 60.0 * np.arange(100), made.rising())
    run = replace(
        made.trace(outcome__return=series),
        budget=None if budget is None else Budget(budget, "the run's total_steps"),
        lifecycle=Lifecycle(silence=silence, **more),
    )
    return no_new_rows.RULE.ask(run), diagnose(run).verdict.word


def test_a_log_that_stopped_growing_hangs():
    found, word = silent(2 * HOUR)
    assert found.severity is Severity.WARNING
    assert word is Word.HUNG
    assert "no new row for 2 h, at 50% of the budget" in found.summary


@pytest.mark.parametrize("silence", [2 * HOUR, 90 * 24 * HOUR])
def test_a_process_that_lives_hangs_however_long_it_does(silence):
    found, word = silent(silence, live=True, alive=True, beat_age=4.0)
    assert found.severity is Severity.WARNING
    assert word is Word.HUNG
    assert found.summary.endswith("at 50% of the budget, and the process is still there")
    assert found.evidence == ("its last heartbeat is 4 s old",)


def test_a_process_that_lives_needs_no_budget_to_hang():
    found, word = silent(2 * HOUR, budget=None, live=True, alive=True)
    assert word is Word.HUNG
    assert found.summary == "no new row for 2 h, and the process is still there"
    assert isinstance(silent(2 * HOUR, budget=None)[0], Undecided)


def test_a_process_that_is_lost_has_failed_and_hangs_no_more():
    found, word = silent(2 * HOUR, lost="killed or lost", alive=False)
    assert isinstance(found, Clear)
    assert word is Word.FAILED


@pytest.mark.parametrize(
    ("cycle", "said"),
    [
        (Lifecycle(), ""),
        (Lifecycle(exit_code=3), "exit code 3"),
        (Lifecycle(exit_code=3, end_step=120_000), "exit code 3, at step 120,000"),
        (Lifecycle(traceback="a\nKeyError: 1\n", end_step=5), "KeyError: 1, at step 100,000"),
        (Lifecycle(signal="SIGTERM", ended=True), "SIGTERM, at step 100,000"),
        (Lifecycle(lost="killed"), "killed, at step 100,000"),
        (Lifecycle(exit_code=0, reason="finished", end_step=99), "finished, at step 100,000"),
        (
            Lifecycle(exit_code=1, traceback="E: x", reason="rank 3: exit code 1", end_step=7),
            "rank 3: E: x, at step 100,000",
        ),
    ],
)
def test_what_ended_a_run_is_said_with_its_step(cycle, said):
    run = replace(made.trace(outcome__return=made.rising()), lifecycle=cycle)
    assert describe_end(run) == said
    assert cycle.failed == (diagnose(run).verdict.word is Word.FAILED)


def test_a_crash_has_no_limit_and_a_run_that_ends_short_has_one():
    run = replace(made.trace(outcome__return=made.rising()), budget=Budget(400_000, "a setting"))
    crash = ended_early.RULE.ask(replace(run, lifecycle=Lifecycle(exit_code=3)))
    assert crash.severity is Severity.ERROR
    assert phrases.limit(crash) == ""
    short = ended_early.RULE.ask(replace(run, lifecycle=Lifecycle(live=False)))
    assert short.severity is Severity.NOTE
    assert phrases.limit(short).startswith("0.9 (share of the budget")


@pytest.mark.parametrize(
    ("metric", "on_curve", "observed", "is_high"),
    [
        ("language/length_mean", True, 900.0, True),
        ("language/length_mean", True, 9.0, False),
        ("reward/mean", False, 40.0, False),  # 40 updates of a reward that is too low
        ("language/truncated_share", False, 0.1, True),
        ("language/length_mean", False, 40.0, True),
    ],
)
def test_the_values_that_show_a_fault_are_those_of_its_side(metric, on_curve, observed, is_high):
    bound = Bound(20.0, "a limit")
    finding = Finding("", Severity.NOTE, metric, 0, 1, observed, bound, limit_on_curve=on_curve)
    assert finding.is_high is is_high


def test_a_log_that_stopped_long_ago_is_over():
    found, word = silent(90 * 24 * HOUR)
    assert found.severity is Severity.NOTE
    assert word is Word.LEARNING


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"silence": 9 * 60.0}, Clear),  # below ten minutes, and ten median gaps
        ({"silence": 2 * HOUR, "budget": 100_000}, Clear),
        ({"silence": 2 * HOUR, "ended": True}, Clear),
        ({"silence": 2 * HOUR, "exit_code": 0}, Clear),
        ({"silence": 2 * HOUR, "live": False}, Clear),
        ({"silence": None}, Undecided),
        ({"silence": None, "live": True}, Undecided),
    ],
)
def test_silence_that_says_nothing(given, kind):
    found, word = silent(**given)
    assert isinstance(found, kind)
    assert word is not Word.HUNG


def test_returns_in_another_unit_are_judged_in_theirs():
    slow = made.trace(settings=CARTPOLE, outcome__return=1000 * np.linspace(20, 35, 100))
    assert standing(slow).stalls
    learned = made.trace(settings=CARTPOLE, outcome__return=1000 * made.rising(to=450))
    assert standing(learned).state == "rising"


def test_returns_that_leave_the_scale_in_mid_run_are_not_judged():
    jumped = made.rising(to=300) * np.where(np.arange(100) < 50, 1, 1000)
    assert standing(made.trace(settings=CARTPOLE, outcome__return=jumped)).state == "unknown"


def test_a_pendulum_that_is_paid_nothing_has_not_converged():
    run = made.trace(settings={"env_id": "Pendulum-v1"}, outcome__return=np.zeros(100))
    assert standing(run).stalls
