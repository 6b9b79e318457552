"""The GitHub Action runs as its shell script; the pre-commit hook names a command that parses."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from rlvitals.cli import GROUPS
from rlvitals.cli.program import parser

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(os.name != "posix", reason="the action's shell is bash")
@pytest.mark.parametrize(("name", "code"), [("healthy", 0), ("failing", 1)])
def test_the_action_fails_on_a_finding_and_leaves_its_files(tmp_path, name, code):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    install, diagnose = action["runs"]["steps"]
    assert install["run"] == 'python3 -m pip install --quiet "$VERSION"'
    programs = tmp_path / "bin"
    programs.mkdir()
    command = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rlvitals "$@"\n'
    (programs / "rlvitals").write_text(command)
    (programs / "rlvitals").chmod(0o755)
    values = {
        "RUNS": str(ROOT / "examples" / name), "BASELINE": "", "FAIL_ON": "warning",
        "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }  # fmt: skip
    assert set(diagnose["env"]) <= set(values)
    env = {**os.environ, **values, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", diagnose["run"]], env=env, check=False)
    assert done.returncode == code
    outputs = dict(line.split("=") for line in (tmp_path / "outputs").read_text().splitlines())
    assert set(outputs) == set(action["outputs"])
    failures = ET.parse(outputs["junit"]).findall(".//failure")  # noqa: S314 - ours
    assert bool(failures) is bool(code)
    assert Path(outputs["sarif"]).stat().st_size
    assert (tmp_path / "summary.md").read_text().startswith("## ")


def test_the_hook_s_command_parses():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *words = shlex.split(hook["entry"]) + hook["args"]
    assert program == "rlvitals"
    assert parser(GROUPS).parse_args(words).command == "diagnose"
    assert hook["pass_filenames"] is False
