"""The worlds benchmark: its tables, its labels, its scores, and what is committed of it."""

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals.cli import main
from rlvitals.faults import bench, world_page, world_score
from rlvitals.faults.ground_truth import Label
from rlvitals.faults.world_runs import LabelledRun, Outcome, WorldRun, label_runs, read
from rlvitals.faults.world_score import (
    Answer,
    Column,
    ScoredRun,
    compare_thirds,
    diagnose_runs,
    drop_columns,
    score,
)
from rlvitals.rules import CATALOGUE as RULES

ROOT = Path(__file__).resolve().parents[2]
TIER = ROOT / "faults" / "tier-2"
sys.path.append(str(ROOT / "scripts"))

HEALTHY = WorldRun(
    name="reinforce/x/00", world="reinforce/x", trainer="reinforce", seed=1,
    settings={"total_timesteps": 1000, "env_id": "X"}, fault="", onset=0.0, expects=(),
    decidable="no", proven=False, blind=False, end="finished", truth=(0.0, 4.0, 10.0, 10.0, 10.0),
    paid=(0.0, 3.0, 8.0, 9.0, 9.0, 9.0),
    traits=frozenset(), random=0.0, split="dev",
)  # fmt: skip
BROKEN = replace(
    HEALTHY, name="reinforce/x/01", fault="reward-sign", expects=("return-collapse",),
    decidable="log", truth=(0.0, 0.0, 0.0, 0.0, 0.0), paid=(0.0,) * 6,
)  # fmt: skip


def outcome(*truth, **changes):
    """Label one more run of the healthy run's world."""
    runs = [HEALTHY, replace(BROKEN, truth=truth, **changes)]
    return next(run for run in label_runs(runs) if run.run.fault)


@pytest.mark.parametrize(
    ("truth", "expected", "label"),
    [
        ((0, 0, 0, 0, 0), Outcome.FLAT, Label.BROKEN),
        ((0, 9, 9, 9, 1, 1, 1), Outcome.LOST, Label.BROKEN),
        ((0, -5, -9, -9, -9), Outcome.BELOW, Label.BROKEN),
        ((0, 3, 5, 5, 5), Outcome.LEARNED, Label.BROKEN),
        ((0, 4, 9, 9, 9), Outcome.LEARNED, Label.BENIGN),
    ],
)
def test_an_outcome_is_what_the_true_returns_became(truth, expected, label):
    labelled = outcome(*truth)
    assert (labelled.outcome, labelled.label) == (expected, label)


@pytest.mark.parametrize(
    ("truth", "paid", "label"),
    [
        ((0, 3, 7, 7, 7), (0.0, 4.0, 9.0, 9.0, 9.0), Label.BENIGN),  # luck of eight episodes
        ((0, 3, 7, 7, 7), (0.0, 4.0, 7.0, 7.0, 7.0), Label.BROKEN),
        ((0, 3, 7, 7, 7), (float("nan"),) * 5, Label.BROKEN),
        ((0, 0, 0, 0, 0), (0.0, 4.0, 9.0, 9.0, 9.0), Label.BROKEN),  # its policy is poor
    ],
)
def test_what_trained_as_well_as_healthy_runs_is_harmless_if_it_learned(truth, paid, label):
    assert outcome(*truth, paid=paid).label is label


def test_a_run_that_crashed_or_was_killed_is_broken_whatever_it_earned():
    assert outcome(*HEALTHY.truth, end="killed").outcome is Outcome.CUT
    crashed = outcome(*HEALTHY.truth, end="ValueError: nan")
    assert (crashed.outcome, crashed.label) == (Outcome.CRASHED, Label.BROKEN)


def test_a_label_does_not_depend_on_the_offset_of_the_returns():
    for shift in (-1000.0, 1000.0):
        runs = [
            replace(run, truth=tuple(t + shift for t in run.truth), random=shift)
            for run in (HEALTHY, BROKEN)
        ]
        assert [run.label for run in label_runs(runs)] == [Label.HEALTHY, Label.BROKEN]


def test_a_run_without_a_fault_that_learned_nothing_failed_on_its_own():
    flat = replace(HEALTHY, name="reinforce/x/02", truth=BROKEN.truth)
    better = replace(HEALTHY, name="reinforce/x/03")
    labels = {run.run.name: run.label for run in label_runs([HEALTHY, better, flat])}
    assert labels[flat.name] is Label.OWN_FAILURE


def test_a_world_where_nobody_learns_is_not_scored():
    flat = replace(HEALTHY, truth=(5.0, 0.0, 9.0, 1.0, 3.0, 2.0), random=2.0)
    assert label_runs([flat, BROKEN]) == []


def test_a_saturated_world_is_solved_and_flat():
    traits = frozenset({"saturated"})
    solved = replace(HEALTHY, truth=(30.0,) * 5, random=30.0, traits=traits)
    poor = replace(BROKEN, truth=(20.0,) * 5, random=30.0, traits=traits)
    labelled = label_runs([solved, poor])
    assert labelled[0].outcome is Outcome.SOLVED
    assert [run.label for run in labelled] == [Label.HEALTHY, Label.BROKEN]


def scored(column=Column.LOG, *alarms, verdict="stalled", **changes):
    run = replace(BROKEN, **changes)
    labelled = LabelledRun(run, Outcome.FLAT, Label.BROKEN)
    return ScoredRun(labelled, column, Answer(verdict, alarms, (500,) * len(alarms)))


def test_the_first_alarm_that_is_expected_names_the_cause():
    runs = [
        scored(Column.LOG, "return-collapse"),
        scored(Column.LOG, "no-learning", "return-collapse"),
        scored(Column.LOG, "no-learning"),
        scored(Column.LOG, "return-collapse", onset=0.6),  # known before it set in
    ]
    result = score(runs)
    assert (result.first.value, result.third.value, result.alarm.value) == (0.25, 0.5, 1.0)


def test_what_only_settings_show_is_not_counted_without_them():
    assert score([scored(decidable="settings")]).first.count == 0
    assert score([scored(Column.SETTINGS, decidable="settings")]).first.count == 1
    assert score([scored(Column.SETTINGS, decidable="no")]).first.count == 0


def test_a_cut_log_may_be_called_good_unless_its_settings_are_known():
    def cut(column):
        labelled = LabelledRun(replace(BROKEN, end="killed"), Outcome.CUT, Label.BROKEN)
        return ScoredRun(labelled, column, Answer("learning"))

    learned = ScoredRun(
        LabelledRun(BROKEN, Outcome.LEARNED, Label.BROKEN), Column.LOG, Answer("learning")
    )
    flat = scored(verdict="converged")
    result = score([cut(Column.LOG), learned, flat])
    assert (result.good_of_broken.value, result.good_of_poor.value) == (pytest.approx(2 / 3), 0.5)
    assert score([cut(Column.SETTINGS)]).good_of_broken.value == 1.0


def test_unknown_is_never_right_and_an_unread_log_is_not_answered():
    result = score([scored(verdict="unknown"), scored(verdict=""), scored(verdict="stalled")])
    assert (result.right.value, result.answered.value) == (pytest.approx(1 / 3),) * 2
    assert result.read.value == pytest.approx(2 / 3)


def test_the_dropout_keeps_the_return_and_two_to_ten_columns(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(
        "".join(
            json.dumps({"step": i, "episode_reward": i, "loss": 1 / (i + 1), "entropy": 1 - i / 99,
                        "approx_kl": 0.01, "clip_fraction": 0.1}) + "\n"
            for i in range(60)
        )
    )  # fmt: skip
    log = rlvitals.trace(tmp_path)
    counts = set()
    for name in "abcdefghij":
        dropped = drop_columns(log, name)
        assert "outcome/return" in dropped.series
        assert set(dropped.measured) <= set(dropped.series)
        counts.add(len(dropped.series))
    assert counts <= set(range(2, 11))
    assert len(counts) > 1
    assert compare_thirds(log).verdict == "learning"


def test_the_section_is_replaced_and_the_others_stay():
    page = "# Page\n\n## A\n\nx\n\n## Worlds\n\nold\n\n### All\n\nold\n\n## B\n\ny\n"
    assert world_page.replace_section(page, "## Worlds\n\nnew\n\n") == (
        "# Page\n\n## A\n\nx\n\n## Worlds\n\nnew\n\n## B\n\ny\n"
    )
    assert world_page.replace_section("# Page\n", "## Worlds\n") == "# Page\n\n## Worlds\n"
    assert world_page.replace_section(page, "## B\n\nnew\n").endswith("old\n\n## B\n\nnew\n")
    assert world_page.replace_section(page, "") == page
    with pytest.raises(ValueError, match="title"):
        world_page.replace_section(page, "\n## Worlds\n")


def test_a_page_written_anew_keeps_the_sections_of_other_runs(tmp_path):
    new = "# Page\n\n## A\n\nx\n"
    assert bench.add_sections(new, tmp_path) == new
    for title, name in (("## Worlds", "tier-2"), ("## Language runs", "language")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "section.md").write_text(f"{title}\n\n{name}\n")
    (tmp_path / "weighing.md").write_text("## Weighed causes\n\nw\n")
    page = bench.add_sections(new, tmp_path)
    assert page == (
        f"{new}\n## Worlds\n\ntier-2\n\n## Language runs\n\nlanguage\n\n## Weighed causes\n\nw\n"
    )
    assert bench.add_sections(page, tmp_path) == page
    (tmp_path / "language" / "section.md").write_text("## Language runs\n\nlater\n")
    assert bench.add_sections(page, tmp_path) == page.replace("\nlanguage\n", "\nlater\n")


def test_runs_that_chose_no_number_stand_before_our_own(tmp_path):
    for title, name in (("## Other people's runs", "real"), ("## Worlds", "tier-2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "section.md").write_text(f"{title}\n\nx\n")
    page = bench.add_sections("# Page\n\nlead\n\n## Injected faults\n\ny\n", tmp_path)
    titles = [line for line in page.splitlines() if line.startswith("#")]
    assert titles == ["# Page", "## Other people's runs", "## Worlds", "## Injected faults"]
    assert bench.add_sections(page, tmp_path) == page


def test_tier_and_tables_go_together(capsys):
    assert main(["faults", "score", "--tier", "2", "--split", "tuning"]) == 2
    assert main(["faults", "score", "--by", "world"]) == 2
    assert "tier 1 has fault, task, rule" in capsys.readouterr().err


# ------------------------------------------------------------------------ the tables and the data


def test_expected_names_are_rules():
    from worlds.fault_table import FAULTS

    names = {rule.name for rule in RULES} | {"failed", "hung"}
    assert {name for fault in FAULTS for name in fault.expects} <= names
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert sum(fault.blind for fault in FAULTS) * 3 >= len(FAULTS)


def test_a_negated_reward_is_decidable_only_where_its_environment_is_known():
    from worlds.fault_table import FAULTS, decidable

    negated = next(fault for fault in FAULTS if fault.name == "reward-sign")
    assert decidable(negated, "sb3-ppo", "CartPole-v1") == "settings"
    assert decidable(negated, "sb3-ppo", "Landing") == "no"
    wrong_way = next(fault for fault in FAULTS if fault.name == "advantage-sign")
    assert decidable(wrong_way, "sb3-ppo", "Landing") == "log"


def test_the_plan_deals_faults_that_a_world_can_have():
    from worlds.fault_table import FAULTS, applies
    from worlds.world_table import GROUPS, plan

    jobs = plan()
    assert all(applies(job.fault, job.world.trainer, job.world.traits) for job in jobs if job.fault)
    worlds = [world for group in GROUPS for world in group]
    assert [job.world for job in jobs[: len(worlds)]] == worlds
    assert {job.fault.name for job in jobs if job.fault} == {fault.name for fault in FAULTS}
    dealt = [(job.world.name, job.fault.name) for job in jobs if job.fault]
    assert len(set(dealt)) == len(dealt)


def test_a_run_is_what_its_seed_makes_it(tmp_path):
    pytest.importorskip("torch")
    from worlds import tabular
    from worlds.run import Run
    from worlds.world_table import WORLDS

    world = next(world for world in WORLDS if world.name == "tabular/cliff")

    def train(name, fault=""):
        folder = tmp_path / name
        folder.mkdir()
        run = Run(world.name, world.env_id, 4000, 7, dict(world.settings), folder, fault=fault)
        tabular.train(run)
        return run.truth, (folder / "output.log").read_text()

    (truth, log), (again, same) = train("a"), train("b")
    assert (truth, log) == (again, same)
    assert len(truth) == 13
    broken, _ = train("c", fault="reward-sign")
    assert np.mean(broken[-3:], axis=0)[1] < np.mean(truth[-3:], axis=0)[1]


def test_every_run_has_its_log_and_its_label():
    from worlds.world_table import UNSEEN_WORLDS

    runs = read(TIER)
    assert all((TIER / f"{run.name}.tar.zst").exists() for run in runs)
    assert len(runs) == len((TIER / "labels.jsonl").read_text().splitlines())
    assert not any(run.fault and run.fault in run.name for run in runs)
    worlds = {split: {run.world for run in runs if run.split == split} for split in
              ("dev", "test", "unseen")}  # fmt: skip
    assert all(worlds.values())
    assert worlds["unseen"] <= {world.name for world in UNSEEN_WORLDS}
    assert {run.split for run in runs} == set(worlds)
    assert len({run.trainer for run in runs}) >= 6


def test_rates_count_healthy_runs_of_the_dev_half_by_framework_and_world():
    dev = {run.world for run in read(TIER) if run.split == "dev"}
    for judged in itertools.islice(world_score.diagnose_healthy(TIER), 3):
        assert judged.healthy
        assert judged.task in dev
        assert judged.framework == world_score.framework(judged.task.split("/", maxsplit=1)[0])
    names = [world_score.framework(trainer) for trainer in ("sb3-a2c", "our-ppo", "tabular")]
    assert names == ["Stable-Baselines3", "rlvitals", "tabular"]


def test_a_sample_is_diagnosed_and_the_page_has_the_section():
    labelled = [run for run in label_runs(read(TIER)) if run.run.name.endswith("/00")][:4]
    answers = diagnose_runs(TIER, labelled, 1)
    assert set(answers) == set(Column)
    assert all(len(runs) == len(labelled) for runs in answers.values())
    page = (ROOT / bench.SCORE_PAGE).read_text()
    assert bench.add_sections(page, TIER.parent) == page
    assert page.index("## Worlds") < page.index("## Injected faults")
    assert page.endswith((TIER.parent / "weighing.md").read_text())
