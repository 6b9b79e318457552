"""The language tier: what is committed of it, how folds are judged, and how peers are asked."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlvitals.rules import CATALOGUE as RULES
from rlvitals.rules.rate import MIN_HEALTHY_RUNS, Rate
from rlvitals.rules.rates import RATES

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import language_faults  # noqa: E402 - scripts, not installed
import language_page  # noqa: E402
import language_runs  # noqa: E402
from language_faults import FAULTS, Shown  # noqa: E402
from language_peers import given, row  # noqa: E402
from language_runs import Answer, Column, Fold, Judged, LanguageRun  # noqa: E402
from peers import language_meanings  # noqa: E402
from peers.ask_language import miles  # noqa: E402
from peers.language import Given  # noqa: E402

RUNS = language_runs.read()
NAMES = {rule.name for rule in RULES}


def answers(*alarms):
    return {(c, f): Answer("stalled", alarms, ()) for c in Column for f in Fold}


def judged(fault="", reward=1.0, alarms=(), task="sums"):
    run = LanguageRun("x.json", "TRL GRPO", task, fault, {}, "")
    return Judged(run, answers(*alarms), reward)


def test_every_run_is_there_and_its_fault_is_known():
    assert len({run.file for run in RUNS}) == len(RUNS) >= 160
    assert all((language_runs.TIER / run.file).is_file() for run in RUNS)
    assert {run.fault for run in RUNS} - {""} <= set(FAULTS)
    listed = {run.file for run in RUNS}
    kept = {path.name for path in language_runs.TIER.glob("*.zst")}
    assert kept == {file for file in listed if "/" not in file}


def test_what_names_a_fault_is_a_rule_and_each_fault_has_a_meaning():
    assert {rule for fault in FAULTS.values() for rule in fault.expects} <= NAMES
    assert set(FAULTS) >= language_faults.PROVEN
    assert set(language_meanings.FAULTS) == set(FAULTS)


def test_no_run_states_its_fault():
    assert not {"fault", "injected", "name"} & {key for run in RUNS for key in run.settings}


def test_scalars_hold_nothing_that_is_counted_in_text():
    run = next(run for run in RUNS if run.file.startswith("rollouts-"))
    scalars, whole = (
        set(language_runs.trace(run, c).series) for c in (Column.SCALARS, Column.ROLLOUTS)
    )
    assert scalars < whole
    assert {"outcome/reward", "language/length_mean", "reward/component/correct"} <= scalars
    assert not [name for name in scalars if name.startswith("rollout/")]


def test_a_fold_loses_the_healthy_runs_of_its_own_task():
    rule, (rate,) = next(
        (name, rates) for name, rates in RATES.items()
        if len(rates) == 1 and rates[0].healthy >= MIN_HEALTHY_RUNS
    )  # fmt: skip
    lost = [(rate.family, (rule,))] * (rate.healthy - MIN_HEALTHY_RUNS + 1)
    held = language_runs.rates_without(lost)
    assert rule in language_runs.capped(held) - language_runs.capped(RATES)
    assert language_runs.capped(language_runs.rates_without([])) == language_runs.capped(RATES)


@pytest.mark.parametrize(
    ("fault", "reward", "is_broken"),
    [("weights-never-synced", 0.2, True), ("weights-never-synced", 0.6, False),
     ("lr-low", 0.6, True)],
)  # fmt: skip
def test_a_run_is_broken_by_construction_or_below_every_healthy_one(fault, reward, is_broken):
    runs = [judged(reward=0.5), judged(reward=0.7), judged(fault, reward)]
    assert (len(language_runs.broken(runs)) == 1) is is_broken


def test_a_cause_counts_where_the_column_can_show_it():
    run = judged("sandbox-fails", alarms=("no-learning", "judge-outage"))
    assert FAULTS["sandbox-fails"].shown is Shown.ROLLOUTS
    shown = [language_runs.is_decidable(run.run, column) for column in Column]
    assert shown == [False, True, True]
    named = [language_runs.names_cause(run, Column.ROLLOUTS, Fold.NONE, n) for n in (1, 3)]
    assert named == [False, True]


def test_the_section_counts_folds():
    runs = [
        judged(),
        replace(judged(task="pairs"), reward=0.9),
        judged("lr-low", 0.1, ("plateau",)),
    ]
    text = language_page.section(runs)
    assert "1 broken and 2 healthy runs" in text
    assert "| pairs | 1 | 0 | 0 | - | - | - |" in text


@pytest.mark.parametrize(
    ("zero", "cut", "names"),
    [(0.49, 0.24, []), (0.5, 0.0, ["zero-std"]), (0.0, 0.25, ["truncated"])],
)
def test_miles_alarms_at_half_of_the_groups_and_a_quarter_of_the_responses(zero, cut, names):
    rows = [{"group_std_zero": zero, "truncated": cut}]
    assert [alarm.id for alarm in miles()[1](Given("0", "grpo", rows, {}))] == names


def test_a_peer_gets_numbers_without_the_name_or_the_fault():
    run = next(run for run in RUNS if run.fault == "lr-low")
    asked = given(3, run)
    assert asked["name"] == "3"
    assert "lr-low" not in str(asked)
    assert {"reward", "entropy", "grad_norm"} <= set(asked["rows"][0])


def test_informative_alarms_are_rare_on_healthy_runs():
    runs = [judged(), judged(), judged("lr-low", 0.1)]
    alarms = [{"loud"}, set(), {"loud", "quiet"}]
    line = row("tool", "1", runs, alarms, [set(), set(), {"loud"}])
    cells = [cell.split(" ")[0] for cell in line.split("| ")[3:]]
    assert cells == ["1/2", "1/1", "1/1", "0/1", "1/1"]


def test_rollout_rules_with_few_healthy_runs_are_notes():
    told = {line[0]: line[3] for line in language_page._rollout_rules()[1:]}
    few = Rate("GRPO-like", 0)
    healthy = {name: max(RATES.get(name, (few,)), key=lambda r: r.healthy).healthy for name in told}
    assert {name for name, may in told.items() if may == "yes"} == {
        name for name, count in healthy.items() if count >= MIN_HEALTHY_RUNS
    }
    assert set(told) <= NAMES
