"""A baseline knows findings by run, rule, metric and severity: whatever the steps and numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from loading import load_run

from rlvitals.diagnosis.baseline import (
    CANNOT_TELL_FINDING,
    RUN_FAILED_FINDING,
    Judged,
    Known,
    compare,
    entries,
    format_baseline,
    read,
    write,
)
from rlvitals.diagnosis.engine import diagnose
from rlvitals.errors import UsageError
from rlvitals.rules.rule import Severity
from rlvitals.types import Lifecycle, Trace

ROOT = Path("/somewhere/exp/ppo")


@pytest.fixture(scope="module")
def run():
    return Judged("exp/ppo", ROOT, diagnose(load_run("ppo-cartpole-lr-spike")))


@pytest.fixture
def file(tmp_path, run):
    path = tmp_path / "known.json"
    write(path, [run])
    return path


def test_what_is_written_is_read(file, run):
    known = read(file)
    assert known == {"exp/ppo": entries(run.found)}
    after, gone = compare(known, run)
    assert (after.new, gone) == ((), ())


def test_the_file_is_the_same_whatever_the_order_and_holds_no_path(file, run):
    quiet = Judged("a", ROOT, diagnose(load_run("ppo-cartpole-converged")))
    assert format_baseline([run, quiet]) == format_baseline([quiet, run]) == file.read_text()
    text = file.read_text()
    assert "somewhere" not in text
    assert not any(char.isdigit() for char in text.replace('"format": 1', ""))
    assert json.loads(text)["format"] == 1


def test_a_longer_log_has_the_same_findings():
    whole = load_run("ppo-cartpole-lr-spike")
    last = whole.last_step
    before = Judged("a", ROOT, diagnose(whole.until(last - last // 20)))
    after, gone = compare({"a": entries(before.found)}, Judged("a", ROOT, diagnose(whole)))
    assert (after.new, gone) == ((), ())


def test_a_finding_more_is_new_and_one_less_is_gone(run):
    held = entries(run.found)
    after, gone = compare({"exp/ppo": held[1:]}, run)
    assert after.new == (held[0].rule,)
    assert gone == ()
    other = Known("kl-clamped", "policy/approx_kl", "note")
    after, gone = compare({"exp/ppo": (*held, other)}, run)
    assert after.new == ()
    assert [one.known for one in gone] == [other]


def test_worse_is_new_and_better_is_known(run):
    for was, new in (("note", True), ("warning", True), ("error", False)):
        held = tuple(one._replace(severity=was) for one in entries(run.found))
        after, gone = compare({"exp/ppo": held}, run)
        errors = {rule.name for rule, one in run.found.findings if one.severity is Severity.ERROR}
        assert errors
        assert errors <= {*after.new} if new else after.new == ()
        assert gone == ()


def test_another_run_s_findings_are_new(run):
    known = {"exp/ppo": entries(run.found)}
    after, gone = compare(known, replace(run, name="exp/a2c", root=Path("/somewhere/exp/a2c")))
    assert {*after.new} == {one.rule for one in entries(run.found)}
    assert gone == ()


def test_a_run_is_known_from_its_own_folder_too(run):
    known = {"exp/ppo": entries(run.found)}
    assert compare(known, replace(run, name="ppo"))[0].new == ()
    elsewhere = replace(run, name="ppo", root=Path("/somewhere/other/ppo"))
    assert compare(known, elsewhere)[0].new


def test_a_run_that_failed_or_cannot_be_told_is_held_as_such():
    nothing = Trace({}, {})
    assert entries(diagnose(nothing)) == (Known(CANNOT_TELL_FINDING, "", "note"),)
    failed = diagnose(replace(nothing, lifecycle=Lifecycle(exit_code=1)))
    assert entries(failed) == (
        Known("ended-early", "", "error"),
        Known(RUN_FAILED_FINDING, "", "error"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "the baseline cannot be read"),
        ("[]", "this is no baseline"),
        ('{"runs": {"a": [{"rule": "x"}]}}', "this is no baseline"),
        ('{"runs": {"a": [{"rule": "x", "metric": "", "severity": "bad"}]}}', "no baseline"),
        ('{"format": 2, "runs": {}}', "format 2, this program reads 1"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path, text, problem):
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem) as error:
        read(path)
    assert error.value.hint == f"rlvitals diagnose PATH --write-baseline {path}"


def test_one_that_is_not_there_names_what_writes_it(tmp_path):
    with pytest.raises(UsageError, match="no such baseline"):
        read(tmp_path / "known.json")
    with pytest.raises(UsageError, match="cannot be written"):
        write(tmp_path / "no" / "known.json", [])
