"""The trainers' results: what is run next, what a line holds, and what the page may claim."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import results  # noqa: E402 - a script, not installed
from results_page import ROWS, SEEDS, Line, Row, missing_runs, page, rises, without_rise  # noqa: E402

RLHF = next(row for row in ROWS if row.name == "rlhf")
PPO = next(row for row in ROWS if row.name == "ppo")
LINE = Line(
    row="rlhf", seed=1, command="rlvitals train rlhf --seed 1", before=0.3, after=0.9,
    baseline=None, cpu_seconds=30.0, wall_seconds=60.0, verdict="learning", exit_code=0,
    warnings=[], machine="x86_64, 2 cores", versions={"torch": "2.13.0"},
)  # fmt: skip


def lines(afters, row=RLHF):
    return [replace(LINE, row=row.name, seed=i, after=one) for i, one in enumerate(afters, 1)]


def test_every_row_has_a_seed_before_any_has_two():
    runs = list(results.plan(ROWS, SEEDS, []))
    assert [seed for _, seed in runs] == [seed for seed in SEEDS for _ in ROWS]
    assert {row.trainer for row, _ in runs[: len(ROWS)]} == {
        "ppo", "grpo", "psr", "nsr", "w-reinforce", "rlhf",
    }  # fmt: skip


def test_what_has_a_line_is_not_run_again():
    runs = list(results.plan([RLHF, PPO], (1, 2), [LINE]))
    assert [(row.name, seed) for row, seed in runs] == [("ppo", 1), ("rlhf", 2), ("ppo", 2)]


def test_lines_are_read_as_they_were_written_in_the_order_of_the_rows(tmp_path):
    file = tmp_path / "results.jsonl"
    assert results.read(file) == []
    scheduler = replace(LINE, row="ppo", baseline={"mean": [-0.1, -0.2], "p95": [0.0, 0.1]})
    results.write(file, [scheduler, replace(LINE, seed=2), LINE])
    assert results.read(file) == [LINE, replace(LINE, seed=2), scheduler]
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_warnings_are_counted_with_the_symptoms_of_a_cause():
    severities = {"a": "note", "b": "warning", "c": "error", "d": "note"}
    findings = [{"rule": rule, "severity": severity} for rule, severity in severities.items()]
    assert results.alarms(findings) == ["b", "c"]


@pytest.mark.parametrize(
    ("afters", "row", "shown"),
    [
        ([0.9, 0.91, 0.92], RLHF, True),
        ([0.2, 0.21, 0.22], RLHF, False),
        ([0.1, 0.9, 0.4], RLHF, False),  # a rise by its mean alone
        ([0.9], RLHF, False),
        ([0.2, 0.21, 0.22], PPO, True),  # of latency less is better
        ([0.9, 0.91, 0.92], PPO, False),
    ],
)
def test_a_rise_needs_an_interval_on_the_better_side_of_zero(afters, row, shown):
    assert rises(row, lines(afters, row)) == shown
    assert (row in without_rise(lines(afters, row))) == (not shown and len(afters) > 1)


def test_the_page_says_what_shows_no_rise_and_what_was_not_run():
    mixed = lines([0.9, 0.91, 0.92]) + lines([0.3, 0.31], ROWS[0])
    text = page(mixed)
    assert "**1 of 2 rows of two seeds and more show a rise.**" in text
    assert f"No rise is shown of {ROWS[0].name}." in text
    assert "rlhf seeds 4, 5" in missing_runs(mixed)
    assert "; ppo, any seed." in text
    (row,) = [one for one in text.splitlines() if one.startswith("| `rlhf` |")]
    # Student's t: 4.303 * 0.01 / sqrt(3) = 0.025
    assert "| 3 | 0.300 ± 0.000 | 0.910 ± 0.025 | +0.610 ± 0.025 | yes |" in row
    assert "| **no** |" in text


def test_one_seed_is_no_claim():
    text = page([LINE])
    assert "**0 of 0 rows of two seeds and more show a rise.** One seed" in text
    assert "one seed: no interval" in text
    assert "No rise" not in text


def test_a_page_without_gaps_says_nothing_of_them():
    text = page([replace(LINE, row=row.name, seed=i) for row in ROWS[:-1] for i in SEEDS])
    assert "Not run: ppo, any seed." in text
    whole = [*(replace(LINE, row=row.name, seed=i) for row in ROWS[:-1] for i in SEEDS)]
    whole += [replace(LINE, row="ppo", seed=i, before=6.0, after=3.0) for i in SEEDS]
    assert f"**{len(ROWS)} of {len(ROWS)} rows of two seeds and more show a rise.**" in page(whole)
    assert "Not run" not in page(whole)


def test_warnings_and_exit_codes_are_on_the_page():
    bad = replace(LINE, seed=2, verdict="stalled", exit_code=1, warnings=["no-learning"])
    text = page([LINE, bad])
    assert "learning (1), stalled (1); exit 0 (1), exit 1 (1); 1 warnings: no-learning (1)" in text


def test_the_scheduler_stands_beside_one_that_learns_nothing():
    two = [
        replace(LINE, row="ppo", seed=seed, baseline={"mean": [-0.1, -0.2], "p95": [p95, 0.1]})
        for seed, p95 in ((1, 0.0), (2, 0.2))
    ]
    text = page(two)
    assert "mean latency -15.0 ± 0.0 %" in text
    assert "p95 +10.0 ± 63.5 %" in text  # 12.706 * 7.07 / sqrt(2)


def test_the_page_is_what_its_lines_come_to():
    assert results.PAGE.read_text(encoding="utf-8") == page(results.read(results.LINES))


@pytest.mark.soak
@pytest.mark.parametrize(
    "row",
    [
        Row("small", "psr", ("psr", "--vlm-name", "tiny-lm", "--max-steps", "2"), "sums"),
        Row("small", "ppo", ("ppo", "--total-steps", "4096", "--num-envs", "4"), "scheduler"),
    ],
    ids=["psr", "ppo"],
)
def test_a_run_is_trained_evaluated_and_diagnosed_by_the_program(row, tmp_path):
    made = results.finish(row, 3, tmp_path)
    assert made.command == f"rlvitals train {' '.join(row.options)} --seed 3"
    assert (made.before > 0, made.after > 0) == (True, True)
    assert (made.baseline is not None) == (row.trainer == "ppo")
    assert made.cpu_seconds > 0
    assert made.exit_code in {0, 1, 4}
    assert (tmp_path / "small-3").is_dir()
    assert not (tmp_path / "small-3.part").exists()
