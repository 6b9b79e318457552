"""The steps of the GitHub Action and the entry of the pre-commit hook, executed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOW_TO = (ROOT / "docs" / "how-to" / "fail-a-ci-run.md").read_text()
# The step installs this checkout; what it depends on and builds with is here already.
OFFLINE = {
    "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "1",
    "RLVITALS_BUILD_COMPILED": "off",
}  # fmt: skip
posix = pytest.mark.skipif(os.name != "posix", reason="the shell is bash")


def run_step(step, folder, **values):
    """Run a step of the action as the runner does; return its exit code."""
    env = {**os.environ, "RUNNER_TEMP": str(folder), "GITHUB_ACTION_PATH": str(ROOT), **values}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, env=env, cwd=folder, check=False).returncode


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What the action's first step installs, and the PATH that finds it."""
    folder = tmp_path_factory.mktemp("action")
    target = folder / "target"
    install, _ = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    path = f"{target / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    values = {**OFFLINE, "PIP_TARGET": str(target), "VERSION": "", "PATH": path}
    assert run_step(install, folder, **values) == 0
    assert (target / "rlvitals" / "agents" / "SKILL.md").is_file()
    assert shutil.which("rlvitals", path=path) == str(target / "bin" / "rlvitals")
    return {"PATH": path, "PYTHONPATH": str(target)}


@posix
@pytest.mark.soak
@pytest.mark.parametrize(("name", "code"), [("healthy", 0), ("failing", 1)])
def test_the_action_installs_its_checkout_and_fails_on_a_finding(installed, tmp_path, name, code):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {
        "RUNS": str(ROOT / "examples" / name), "BASELINE": "", "FAIL_ON": "warning",
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }  # fmt: skip
    _, diagnose = action["runs"]["steps"]
    assert set(diagnose["env"]) <= set(values)
    assert run_step(diagnose, tmp_path, **installed, **values) == code
    outputs = dict(line.split("=") for line in (tmp_path / "outputs").read_text().splitlines())
    assert set(outputs) == set(action["outputs"])
    failures = ET.parse(outputs["junit"]).findall(".//failure")  # noqa: S314 - ours
    assert bool(failures) is bool(code)
    assert Path(outputs["sarif"]).stat().st_size
    assert (tmp_path / "summary.md").read_text().startswith("## ")


@posix
@pytest.mark.parametrize(
    ("name", "code"), [pytest.param("healthy", 0, marks=pytest.mark.soak), ("failing", 1)]
)
def test_the_hook_of_the_manual_is_that_of_the_repository(installed, tmp_path, name, code):
    (shipped,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (text,) = [
        block for block in re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL) if "hooks" in block
    ]
    ((hook,),) = [repo["hooks"] for repo in yaml.safe_load(text)]
    assert {key: hook[key] for key in ("id", "entry", "pass_filenames")} == {
        key: shipped[key] for key in ("id", "entry", "pass_filenames")
    }
    shutil.copytree(ROOT / "examples" / name, tmp_path / "runs" / name)
    for words in (shipped["args"], hook["args"][:1]):
        command = [*shlex.split(hook["entry"]), *words]
        env = {**os.environ, **installed}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == code


def test_no_placeholder_stands_where_a_name_is_typed():
    assert "OWNER" not in HOW_TO
    assert "OWNER" not in (ROOT / "action.yml").read_text()
