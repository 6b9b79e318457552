"""`rlvitals compare` and `rlvitals diff`: what they print, and their exit codes."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals.cli import compare
from rlvitals.comparison import scores

GATE = "return no worse than 5 % of baseline"
HEAD = "time/total_timesteps,time/time_elapsed,rollout/ep_rew_mean,train/approx_kl\n"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "compare-runs.md"


def group(folder, level, seeds=5, rows=60):
    for seed in range(seeds):
        rng = np.random.default_rng([seed, int(level)])
        values = np.minimum(np.linspace(20, 2 * level, rows), level) + rng.normal(0, 1, rows)
        lines = (f"{(i + 1) * 2048},{i + 1},{v:.3f},0.01\n" for i, v in enumerate(values))
        (folder / f"s{seed}").mkdir(parents=True)
        (folder / f"s{seed}" / "progress.csv").write_text(HEAD + "".join(lines))
        settings = {"seed": seed, "env_id": "CartPole-v1", "learning_rate": level / 1e6}
        (folder / f"s{seed}" / "config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def two(tmp_path):
    return group(tmp_path / "main", 400), group(tmp_path / "change", 300)


def test_the_answer_comes_first_then_one_table(call, two):
    code, out, err = call("compare", *two)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(" WORSE  ")
    assert sum(line.startswith("group ") for line in lines) == 1
    assert "5  " in out
    assert "approximate" in out
    assert max(map(len, lines)) <= 88


def test_ten_seeds_show_an_interquartile_mean_and_no_list_of_runs(call, tmp_path):
    code, out, _ = call("compare", group(tmp_path / "a", 400, 10), group(tmp_path / "b", 400, 10))
    assert code == 0
    assert re.search(r"^group +seeds +IQM +95 % +mean", out, flags=re.MULTILINE)
    assert "10,000 resamples" in out


def test_the_noun_as_json_is_strict(call, two):
    document = json.loads(call("compare", *two, "--json")[1], parse_constant=pytest.fail)
    assert document["against"][0]["word"] == "worse"
    assert [group["seeds"] for group in document["groups"]] == [5, 5]
    assert len(document["levels"]) == len(document["groups"][0]["profile"])


@pytest.mark.parametrize(
    ("gate", "wanted", "badge"),
    [
        ("return no worse than 50 % of baseline", 0, "HOLDS"),
        (GATE, 1, "BROKEN"),
        ("return no worse than 25 % of baseline", 4, "CANNOT TELL"),
    ],
)
def test_a_gate_s_exit_code(call, two, gate, wanted, badge):
    code, out, _ = call("compare", *two, "--gate", gate)
    assert code == wanted
    assert out.startswith(f" {badge} ")
    noun = json.loads(call("compare", *two, "--gate", gate, "--json")[1])
    assert noun["holds"] is {0: True, 1: False, 4: None}[wanted]


def test_wrong_usage_is_2_and_nothing_readable_is_3(call, two, tmp_path):
    code, _, err = call("compare", *two, "--gate", "return no worse then 5 %")
    assert code == 2
    assert "than" in err
    assert call("compare", two[0], "--gate", GATE)[0] == 2
    assert call("compare", *two, "--at", "the end")[0] == 2
    assert call("compare", *two, "--gate", GATE, "--metric", "return")[0] == 2
    assert call("compare", two[0], tmp_path / "nowhere", "--gate", GATE)[0] == 3
    assert call("compare", tmp_path / "nowhere")[0] == 3
    assert call("diff", *two)[0] == 2
    assert call("diff", tmp_path / "nowhere", two[0] / "s0")[0] == 3


def test_one_run_that_cannot_be_read_does_not_stop_the_rest(call, two):
    code, out, err = call("compare", *two, two[0].parent / "gone")
    assert code == 0
    assert "gone" in err
    assert " WORSE " in out


def test_the_axes_on_the_command_line_are_those_there_are():
    assert compare.AXIS_CHOICES == scores.AXES


def test_a_run_given_twice_counts_once(call, two):
    document = json.loads(call("compare", two[0], two[0] / "s0", two[1], "--json")[1])
    assert [group["seeds"] for group in document["groups"]] == [5, 5]


def test_a_baseline_may_be_asked_of_itself(call, two):
    assert call("compare", two[0], two[0], "--gate", GATE)[0] == 0


def test_diff_tells_settings_and_where_metrics_part(call, two):
    code, out, _ = call("diff", two[0] / "s0", two[1] / "s0")
    assert code == 0
    assert out.startswith("they differ in 1 setting; outcome/return parts first, at step ")
    assert re.search(r"^setting +learning_rate +0.0004 +0.0003$", out, flags=re.MULTILINE)
    assert "not known" in out
    assert max(map(len, out.splitlines())) <= 88
    noun = json.loads(call("diff", two[0] / "s0", two[1] / "s0", "--json")[1])
    assert noun["changed"][0]["key"] == "learning_rate"


def test_diff_reads_the_facts_of_recorded_runs(call, tmp_path):
    for name in ("a", "b"):
        run = rlvitals.start(tmp_path / name, settings={"gamma": 0.9}, seed=1)
        for i in range(30):
            run.log(i, {"rollout/ep_rew_mean": float(i)})
        run.finish()
    file = tmp_path / "b" / "run.json"
    about = json.loads(file.read_text())
    assert about["more"]["packages"]["numpy"]
    about["more"]["packages"]["numpy"] = "1.0"
    file.write_text(json.dumps(about))
    document = json.loads(call("diff", tmp_path / "a", tmp_path / "b", "--json")[1])
    assert {"area": "package", "key": "numpy"}.items() <= document["changed"][0].items()


@pytest.mark.real_logs
def test_other_people_s_runs(call, real_logs):
    code, out, _ = call("compare", real_logs / "sb3-monitor", "--by", "env_id")
    assert code in {0, 2}
    runs = sorted((real_logs / "sb3-monitor").glob("*Acrobot*"))
    code, out, _ = call("compare", *runs)
    assert code == 0
    assert "from 1 seed" in " ".join(out.split())
    assert call("diff", *runs)[0] == 0


def test_the_page_s_commands_run(call, tmp_path, monkeypatch):
    group(tmp_path / "runs" / "main", 400)
    group(tmp_path / "runs" / "change", 395)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ rlvitals (.+?)(?:\s+#.*)?$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(commands) >= 7
    for command in commands:
        code, _, err = call(*shlex.split(command))
        assert code in {0, 1, 4}, (command, err)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(code, "page", "exec"), {})  # noqa: S102 - our own page


def test_the_comparison_is_drawn_beside_what_is_said(call, two, tmp_path):
    folder = tmp_path / "comparison_plots"
    code, out, errors = call("compare", *two, "--output-dir", folder, "--format", "png,json")
    assert code == 0
    assert out.startswith(" WORSE  ")
    names = ("performance_profile", "sample_efficiency")
    assert errors.startswith(f"{folder}: performance_profile.png, performance_profile.json, ")
    assert {p.stem for p in folder.iterdir()} == set(names)
    drawn = json.loads((folder / "sample_efficiency.json").read_text())
    assert [len(panel["across"]) for panel in drawn["panels"]] == [2, 2]
    assert (folder / "performance_profile.png").read_bytes().startswith(b"\x89PNG")
    call("compare", *two, "-o", folder, "--axis", "time")
    assert (folder / "time_efficiency.png").exists()
    code, _, errors = call("compare", *two, "-o", folder, "--gate", GATE)
    assert (code, "a gate draws nothing" in errors) == (2, True)
    assert call("compare", *two, "-o", folder, "--dpi", "1")[0] == 2


def test_settings_that_differ_between_two_paths_are_listed(call, two):
    out = call("compare", *two)[1]
    assert "settings     learning_rate is 0.0004, 0.0003\n" in out
