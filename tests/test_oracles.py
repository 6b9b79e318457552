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


def test_tensors_of_another_processor_are_not_compared(oracles, capsys):
    here = f"ppo on {oracles.processor_vendor()}"
    assert oracles.compare("group", {here: "1", "ppo on AnotherVendor": "2"}, {here: "1"}) == 0
    assert oracles.compare("group", {"ppo on AnotherVendor": "2"}, {here: "1"}) == 1
    assert f"differs: {here}" in capsys.readouterr().out


def test_every_group_is_frozen(oracles):
    for group in oracles.GROUPS:
        assert json.loads((oracles.FROZEN / f"{group}.json").read_text())


@pytest.mark.soak
@pytest.mark.parametrize("group", ["diagnose", "report", "checkpoints", "resume"])
def test_outputs_are_as_frozen(oracles, group):
    frozen = json.loads((oracles.FROZEN / f"{group}.json").read_text())
    if group == "checkpoints" and not any(
        name.endswith(oracles.processor_vendor()) for name in frozen
    ):
        pytest.skip(f"no tensors are frozen for processors of {oracles.processor_vendor()}")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", "--only", group],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
