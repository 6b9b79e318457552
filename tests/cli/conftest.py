"""Runs that are healthy, failing and too poor to judge; the program, called in this process."""

from pathlib import Path

import pytest
from small_logs import write

import rlvitals
from rlvitals.cli import main


@pytest.fixture
def healthy(tmp_path):
    return write(tmp_path / "healthy")


@pytest.fixture
def failing(tmp_path):
    """KL is five times its target, and the return is flat."""
    return write(tmp_path / "failing", rises=False, kl=0.1)


@pytest.fixture
def poor(tmp_path):
    return write(tmp_path / "poor", rows=3)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch, tmp_path):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RLVITALS_DIAGNOSE_FAIL_ON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(rlvitals.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys):
    """Run the program in this process: exit code, stdout, stderr."""

    def run(*argv):
        code = main([str(a) for a in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
