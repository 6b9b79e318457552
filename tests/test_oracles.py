"""What the product writes is what was frozen: `scripts/oracles.py`."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "oracles.py"


@pytest.fixture(scope="module")
def oracles():
    spec = importlib.util.spec_from_file_location("oracles", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_recorded_run_is_as_frozen_byte_by_byte():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", "--only", "recording"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outputs as frozen" in done.stdout


def test_an_output_that_changes_appears_or_goes_is_named(oracles, capsys):
    frozen = {"same": "1", "changed": "2", "gone": "3", "logs/absent/run": "4"}
    hashes = {"same": "1", "changed": "5", "new": "6"}
    assert oracles.compare("group", frozen, hashes) == 3
    printed = capsys.readouterr().out
    assert "1 of 4 outputs as frozen" in printed
    assert [line.split()[-1] for line in printed.splitlines()[1:]] == ["changed", "gone", "new"]


def test_every_group_is_frozen(oracles):
    for group in oracles.GROUPS:
        assert json.loads((oracles.FROZEN / f"{group}.json").read_text())


@pytest.mark.soak
@pytest.mark.parametrize("group", ["diagnose", "report", "checkpoints", "resume"])
def test_outputs_are_as_frozen(group):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", "--only", group],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
