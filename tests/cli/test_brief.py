"""A diagnosis in two kilobytes, and as files for continuous integration."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from effort import sampled
from small_logs import write

import rlvitals
from rlvitals.cli import installation
from rlvitals.views import brief, json_view

RUNS = Path(__file__).parents[1] / "runs"
NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
KL = ("--set", "target_kl=0.02")


def suites_of(path):
    return ET.parse(path).getroot()  # noqa: S314 - written by us a moment ago


@pytest.mark.parametrize("name", sampled(NAMES, 6))
def test_any_run_is_told_in_two_kilobytes_with_its_first_cause(name):
    try:
        result = rlvitals.diagnose(RUNS / name)
    except rlvitals.VitalsError as error:
        result = error
    members = brief.document(name, result)
    assert len(json.dumps(members, indent=2)) <= 2000
    assert len(brief.text(members)) <= 2000
    if isinstance(result, rlvitals.VitalsError):
        assert members["verdict"] == "unreadable"
        return
    assert members["verdict"] == result.verdict.word.value
    assert len(members["causes"]) + members.get("more", 0) == len(result.cases)
    if result.cases:
        assert members["causes"][0]["rule"] == result.cases[0].rule.name
        assert members["causes"][0]["try"]


def test_many_causes_stay_in_two_kilobytes_as_printed():
    result = rlvitals.diagnose(RUNS / "scheduler-collapsed")
    members = brief.document("many", replace(result, cases=result.cases * 9))
    assert members["more"]
    assert 1500 < len(json_view.document({"runs": [members]}).encode()) <= 2048
    assert len(brief.text(members).encode()) <= 2000


def test_text_and_json_hold_the_same(call, failing, tmp_path):
    write(tmp_path / "healthy")
    code, text, _ = call("diagnose", failing, *KL, "--brief")
    assert code == 1
    (run,) = json.loads(call("diagnose", failing, *KL, "--brief", "--json")[1])["runs"]
    for cause in run["causes"]:
        assert f"{cause['severity']}[{cause['rule']}] {cause['what']}" in text
        assert f"try: {cause['try']}" in text
    several = json.loads(call("diagnose", tmp_path, *KL, "--brief", "--json")[1])["runs"]
    assert [member["run"] for member in several] == ["failing", "healthy"]
    assert call("diagnose", failing, "--brief", "--markdown")[0] == 2


def test_what_the_log_says_cannot_move_a_cursor_nor_grow_the_answer():
    error = rlvitals.UnreadableLog("\x1b[2J" * 3000, where="x", hint="y" * 5000)
    members = brief.document("\u202e" * 900, error)
    assert "\x1b" not in brief.text(members)
    assert len(json.dumps(members, indent=2)) <= 2000


def test_junit_names_what_fails_and_what_cannot_be_told(call, failing, healthy, poor):
    assert call("diagnose", failing, healthy, poor, *KL, "--junit", "out.xml")[0] == 1
    suites = {suite.get("name"): suite for suite in suites_of("out.xml")}
    assert set(suites) == {"failing", "healthy", "poor"}
    failures = {case.get("name") for case in suites["failing"] if case.find("failure") is not None}
    assert "kl-above-target" in failures
    assert suites["failing"].get("failures") == str(len(failures))
    assert suites["healthy"].get("failures") == suites["healthy"].get("errors") == "0"
    assert suites["poor"].get("errors") == "1"
    call("diagnose", failing, *KL, "--write-baseline", "known.json")
    call("diagnose", failing, *KL, "--baseline", "known.json", "--junit", "known.xml")
    assert suites_of("known.xml").find(".//failure") is None
    call("diagnose", failing, *KL, "--fail-on", "never", "--junit", "never.xml")
    assert suites_of("never.xml").find(".//failure") is None


def test_sarif_holds_each_finding_with_its_rule(call, failing):
    call("diagnose", failing, *KL, "--write-baseline", "known.json")
    call("diagnose", failing, *KL, "--baseline", "known.json", "--sarif", "out.sarif")
    document = json.loads(Path("out.sarif").read_text())
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert run["tool"]["driver"]["version"] == rlvitals.__version__
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {result["ruleId"] for result in run["results"]} == {*rules}
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["kl-above-target"] == "warning"
    assert {result["baselineState"] for result in run["results"]} == {"unchanged"}
    code, _, error = call("diagnose", failing, "--sarif", "no/such/folder.sarif")
    assert code == 2
    assert "cannot be written" in error


def test_the_installation_is_listed_without_a_run(call):
    code, out, _ = call("diagnose", "--env")
    assert code == 0
    assert out.startswith(f"rlvitals {rlvitals.__version__} (")
    assert "numpy" in out
    project = tomllib.loads((RUNS.parents[1] / "pyproject.toml").read_text())["project"]
    extras = {extra for _, _, extra in installation.PACKAGES if extra}
    assert extras <= set(project["optional-dependencies"])
