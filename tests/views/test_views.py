"""A made run in every view; what was logged can neither move a cursor nor break a document."""

import json
import re
from dataclasses import replace
from pathlib import Path

import made
import numpy as np
import pytest
from effort import sampled
from loading import MEASURED, load_run
from rich.cells import cell_len

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.root_cause import flat
from rlvitals.errors import UnreadableLog
from rlvitals.metrics import suggest
from rlvitals.metrics.frameworks import TABLES
from rlvitals.types import Series
from rlvitals.views import (
    diagnosis_json,
    json_view,
    lists,
    markdown,
    notebook,
    phrases,
    runs_table,
    settings_table,
    terminal,
    triage_table,
)
from rlvitals.views.console import plain
from rlvitals.views.terminal import report
from rlvitals.views.triage_table import TriageRow


def test_text(golden, goldens):
    golden(goldens / "report.txt", terminal.diagnosis(made.diagnosis(), verbose=True))


def test_a_blank_run_says_what_to_log(golden, goldens):
    golden(goldens / "blank.txt", terminal.diagnosis(made.blank(), verbose=True))


def test_markdown(golden, goldens):
    golden(goldens / "report.md", markdown.diagnosis(made.diagnosis()))


def test_json(golden, goldens):
    golden(goldens / "report.json", diagnosis_json.diagnosis(made.diagnosis()))


def test_many_runs(golden, goldens):
    runs = [
        ("sound", made.diagnosis((made.QUIET,))),
        ("blank", made.blank()),
        ("loud", made.diagnosis()),
        ("torn", UnreadableLog("not a training log", where="torn/x.csv")),
    ]
    golden(goldens / "table.txt", plain(runs_table.table(runs)))
    assert [name for name, _ in runs_table.worst_first(runs)] == ["torn", "loud", "blank", "sound"]


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("my/score", "outcome/score"),
        ("train/0_reward", "outcome/reward"),
        ("test/full_episode_length", "outcome/episode_length"),
        ("debugger/entropy", "exploration/entropy"),
        ("debugger/reward_stds", "reward/std"),
        ("test_step", None),
        ("info/best_reward", None),
        ("info/timing/total_time", "throughput/elapsed"),
        ("test/lens_stat/max", None),
    ],
)
def test_a_metric_is_proposed_where_a_key_has_its_words(key, metric):
    assert suggest.propose(key) == metric


def test_names_of_many_runs_are_told_whole_below_the_folder_they_share():
    names = [f"logs/{algorithm}/Hopper-v2/run-2020-08-31-18-38-35" for algorithm in ("ICM", "RND")]
    runs = [(name, made.diagnosis()) for name in names]
    above, head, *lines = plain(runs_table.table(runs), 60).splitlines()
    assert above == "in logs"
    rows = [line for line in lines if not line.startswith("  ")]
    assert [line[head.index("run") :] for line in rows] == [
        name.removeprefix("logs/") for name in names
    ]
    assert max(map(cell_len, lines)) <= 60


@pytest.mark.parametrize("name", ["ppo", "ppo/a-name-of-more-columns-than-are-left/seed-3"])
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_reason_is_cut_beside_the_run_or_below_it(width, name):
    reason = "the learning rate jumps from 0.0003 to 0.1 at step 31,744, and stays there"
    row = TriageRow(name, "collapsed", True, 2.0, 1.0, "learning-rate-jump", reason)
    lines = plain(triage_table.table([row]), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    shown = " ".join(lines[1:-2])
    assert {"learning-rate-jump:", *reason.split()} <= set(shown.split())
    assert "…" not in shown


@pytest.mark.parametrize("count", [20, 21])
def test_more_runs_than_a_screen_holds_are_counted(count):
    runs = [(f"run_{n}", made.diagnosis() if n else made.blank()) for n in range(count)]
    last = plain(runs_table.table(runs)).splitlines()[-1]
    assert (last == f"{count} runs: 20 learning, 1 unknown") == (count > 20)


@pytest.mark.parametrize("width", [40, 60, 88, 100])
@pytest.mark.parametrize("framework", sampled(TABLES, 4), ids=lambda one: one.framework)
def test_a_framework_s_keys_fit_the_width_and_none_is_broken(framework, width):
    shown = plain(lists.framework(framework), width).splitlines()
    assert max(map(cell_len, shown)) <= width
    first = {line.split("  ")[0] for line in shown}
    assert {key for key in framework.keys if cell_len(key) <= width} <= first


@pytest.mark.parametrize("width", [40, 60, 88, 100])
def test_every_line_fits_the_width(width):
    for line in terminal.diagnosis(made.diagnosis(), width).splitlines():
        assert cell_len(line) <= width


def test_the_answer_comes_first():
    lines = terminal.diagnosis(made.diagnosis()).splitlines()
    assert lines[0].startswith(" LEARNING  return is rising")
    assert "1 error" in lines[1]


def test_a_symptom_stands_under_its_cause_and_nowhere_else():
    text = terminal.diagnosis(made.diagnosis())
    assert re.search(r"explains +warning\[clip-fraction-high\]", text)
    assert text.count("clip-fraction-high") == 1


def test_the_onset_stands_under_its_column():
    lines = terminal.diagnosis(made.diagnosis()).splitlines()
    below = next(i for i, line in enumerate(lines) if "▲ 4,000" in line)
    chart = lines[below - 1]
    first, last = chart.index("▁"), len(chart)
    share = (lines[below].index("▲") - first) / (last - first)
    assert share == pytest.approx((4000 - 100) / (10_000 - 100), abs=0.02)


def test_an_onset_at_the_far_right_is_labelled_to_its_left():
    late = replace(made.KL.check(None), began=10_000)
    text = terminal.finding(replace(made.KL), replace(late, known=10_000), made.trace(), 70)
    assert "10,000 ▲" in text


EVIL = "\x1b[2J\x07\u202eevil\nname\u2066|`<script>`](http://x) @all"


def evil():
    kl = made.trace().series["policy/approx_kl"]
    return made.diagnosis(
        series={"policy/approx_kl": kl, f"reward/component/{EVIL}": kl},
        unmapped=(EVIL,),
        notes=(EVIL,),
        name=EVIL,
        settings={EVIL: EVIL},
    )


def test_no_view_lets_a_name_act():
    diagnosis = evil()
    for text in (
        terminal.diagnosis(diagnosis),
        markdown.diagnosis(diagnosis),
        diagnosis_json.diagnosis(diagnosis),
    ):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>" not in re.sub(r"`[^`\n]*`|\\<", "", markdown.diagnosis(diagnosis))
    own_script = f"<script>{notebook.frame_script()}</script>"
    assert "<script>" not in notebook.html(diagnosis).replace(own_script, "", 1)
    assert "\u202e" not in notebook.html(diagnosis)


def test_json_is_strict_and_says_its_format():
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    read = json.loads(diagnosis_json.diagnosis(made.diagnosis()), parse_constant=refuse)
    assert read["format"] == 2
    assert read["verdict"]["word"] == "learning"
    assert [cause["name"] for cause in read["causes"]] == ["kl-above-target", "not-a-number"]
    assert read["causes"][0]["severity"] == "error"
    (not_a_number,) = (f for f in read["findings"] if f["rule"] == "not-a-number")
    assert not_a_number["observed"] is None  # NaN
    assert read["trace"]["series"]["policy/approx_kl"]["points"] == 100


def test_a_trace_as_json_gives_back_its_columns():
    values = np.array([1.0, np.nan, np.inf, -np.inf])
    series = Series(np.arange(4), np.full(4, np.nan), values)
    read = json.loads(json_view.trace(made.trace(series={"value/loss": series})))
    assert read["series"]["value/loss"]["steps"] == [0, 1, 2, 3]
    assert read["series"]["value/loss"]["values"] == [1.0, None, "Infinity", "-Infinity"]
    assert read["series"]["value/loss"]["times"] == [None] * 4


def test_half_a_surrogate_pair_is_still_json():
    assert (
        json.loads(diagnosis_json.diagnosis(made.diagnosis(name="\udc80")))["trace"]["name"]
        == r"\udc80"
    )


def test_unreadable_runs_are_in_the_list():
    read = json.loads(
        diagnosis_json.diagnoses([("torn", UnreadableLog("no log", where="x", hint="y"))])
    )
    assert read[0]["error"] == {"problem": "no log", "where": "x", "hint": "y"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.02, "0.02"),
        (2048.0, "2,048"),
        (1e308, "1e+308"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-0.123456, "-0.1235"),
    ],
)
def test_numbers_read_as_people_write_them(value, said):
    assert phrases.number(value) == said


def test_what_is_missing_is_named_as_the_framework_names_it():
    trace = made.trace()
    assert phrases.key_for(trace, "value/explained_variance") == "train/explained_variance"
    assert phrases.key_for(trace, "target_kl") == "target_kl"
    assert phrases.key_for(made.trace(measured={}), "value/explained_variance") is None


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("my/explained_variance", "value/explained_variance"),
        ("losses/explaned_variance", "value/explained_variance"),
        ("xyzzy", None),
    ],
)
def test_a_guess_at_an_unmapped_key(key, metric):
    assert suggest.propose(key) == metric


def test_the_report_reads_the_same_twice():
    diagnosis = made.diagnosis()
    assert plain(report(diagnosis)) == plain(report(diagnosis))


def test_the_manual_s_table_of_settings(golden, goldens):
    golden(goldens / "settings.md", settings_table.settings_table())


def test_hundreds_of_notes_do_not_bury_the_answer():
    diagnosis = made.diagnosis(notes=tuple(f"file {i} is torn" for i in range(300)))
    assert "and 289 more: --json has them all" in terminal.diagnosis(diagnosis)
    assert "file 299" not in terminal.diagnosis(diagnosis)
    assert len(json.loads(diagnosis_json.diagnosis(diagnosis))["trace"]["notes"]) == 300


def test_causes_and_findings_are_lists_of_the_same_cases():
    found = diagnose(load_run("ppo-cartpole-lr-spike"), rates=MEASURED)
    written = json.loads(diagnosis_json.diagnosis(found))
    assert written["format"] == 2
    assert [one["rule"] for one in written["findings"]] == [r.name for r, _ in found.findings]
    first = written["causes"][0]
    assert (first["name"], first["rank"]) == (found.cases[0].rule.name, 1)
    assert first["for"][0] == found.cases[0].finding.summary
    assert len(first["for"]) >= 1 + len(found.cases[0].symptoms)
    assert first["remedy"]
    assert first["samples"] == 20
    assert first["explains"] == [case.rule.name for case in flat(found.cases[0])[1:]]
    roots = [finding["rule"] for finding in written["findings"] if finding["cause"] is None]
    assert roots == [cause["name"] for cause in written["causes"]]


def test_each_key_of_a_diagnosis_is_in_the_manual():
    page = Path("docs/json.md").read_text()
    found = diagnose(load_run("ppo-cartpole-lr-spike"), rates=MEASURED)
    written = json.loads(diagnosis_json.diagnosis(found))
    keys = {*written, *written["causes"][0], *written["findings"][0]} - {"format"}
    assert not {key for key in keys if f"`{key}`" not in page}
