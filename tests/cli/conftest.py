"""Small logs in formats that people have, written by each test where it needs them."""

import numpy as np
import pytest

from rlvitals.cli import main


def write(folder, rises=True, rows=60, kl=0.01):
    folder.mkdir(parents=True, exist_ok=True)
    steps = np.arange(1, rows + 1) * 2048
    wave = 3 * np.sin(np.arange(rows))
    returns = (np.linspace(20, 450, rows) if rises else np.full(rows, 40.0)) + wave
    head = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,train/clip_fraction,my/score\n"
    lines = (
        f"{step},{value:.3f},{kl},{2 * kl},{value / 500:.4f}\n"
        for step, value in zip(steps, returns, strict=True)
    )
    (folder / "progress.csv").write_text(head + "".join(lines))
    return folder


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
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys):
    """Run the program in this process: exit code, stdout, stderr."""

    def run(*argv):
        code = main([str(a) for a in argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
