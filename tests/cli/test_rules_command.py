"""`rlvitals rules`: the catalogue by kind, and what of it a run lets judge."""

import json
import shutil
from pathlib import Path

import pytest

from rlvitals.rules import CATALOGUE
from rlvitals.types import Profile

RUNS = Path(__file__).parent.parent / "runs"


def test_every_rule_stands_under_its_kind(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    code, out, err = call("rules")
    assert (code, err) == (0, "")
    for rule in CATALOGUE:
        assert f"\n{rule.name} " in out or out.startswith(rule.name)
    assert f"{len(CATALOGUE)} rules" in out
    assert out.index("outcome") < out.index("no-learning") < out.index("kl-spike")


def test_a_profile_leaves_out_what_has_no_meaning_there(call):
    out = call("rules", "--profile", "psr")[1]
    applies = [rule for rule in CATALOGUE if rule.applies(Profile.PSR)]
    assert f"{len(applies)} rules" in out
    assert "threshold-off-correctness" in out
    assert "temperature-out-of-range" not in out


def test_json_has_every_rule_with_its_kind_and_its_numbers(call):
    rules = json.loads(call("rules", "--json")[1])["rules"]
    assert [entry["name"] for entry in rules] == [rule.name for rule in CATALOGUE]
    spike = next(entry for entry in rules if entry["name"] == "kl-spike")
    assert spike["kind"] == "policy"
    assert {entry["name"]: entry["default"] for entry in spike["thresholds"]}[
        "kl-spike.factor"
    ] == 8


@pytest.fixture
def run(tmp_path):
    (tmp_path / "a").mkdir()
    for path in (RUNS / "ppo-cartpole-healthy").glob("run.*"):
        if path.suffix not in {".toml", ".txt"}:
            shutil.copy(path, tmp_path / "a")
    return tmp_path / "a"


def covered(call, run, *more):
    return json.loads(call("rules", "--coverage", run, "--json", *more)[1])["runs"][0]


def test_each_rule_is_told_once(call, run):
    document = covered(call, run)
    waits = [name for entry in document["unlocks"] for name in entry["rules"]]
    undecided = [entry["rule"] for entry in document["undecided"]]
    every = [*document["judged"], *undecided, *document["not_for_this_profile"]]
    assert sorted(every) == sorted(rule.name for rule in CATALOGUE)
    assert len({*waits}) == len(waits)
    assert {*waits} <= {*undecided}
    assert len(document["judged"]) + len(undecided) == document["asked"]


def test_what_is_said_to_unlock_a_rule_does(call, run):
    document = covered(call, run)
    names_by_rule = {
        rule: entry["names"] for entry in document["unlocks"] for rule in entry["rules"]
    }
    assert names_by_rule["gradient-always-clipped"] == ["max_grad_norm"]
    after = covered(call, run, "--set", "max_grad_norm=0.5")
    assert "gradient-always-clipped" in after["judged"]


def test_the_screen_says_it_too(call, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = call("rules", "--coverage", run)[1]
    assert "could judge" in out
    assert "--set max_grad_norm=...: gradient-always-clipped" in out
    assert "are for other kinds of training" in out


def test_a_folder_of_runs_is_told_run_by_run(call, run, tmp_path):
    shutil.copytree(run, tmp_path / "b")
    out = call("rules", "--coverage", tmp_path)[1]
    assert out.count("could judge") == 2


def test_nothing_readable_is_3(call, tmp_path):
    (tmp_path / "empty").mkdir()
    assert call("rules", "--coverage", tmp_path / "empty")[0] == 3
