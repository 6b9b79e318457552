"""The exit codes of docs/exit-codes.md, of the commands that judge, copy and verify."""

import re
from pathlib import Path

import pytest

import rlvitals
from rlvitals.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "exit-codes.md").read_text()
FAILING, HEALTHY = (str(ROOT / "examples" / name) for name in ("failing", "healthy"))
COPYING = ("backup", "restore", "bundle")


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def record():
    """Record a run with a checkpoint; return the weights that it sealed."""
    with rlvitals.start("run") as run:
        checkpoints = rlvitals.Checkpoints(run)
        for step in range(1, 5):
            run.log(step, {"loss": 1 / step})
        with checkpoints.save(4) as folder:
            (folder / "weights.txt").write_text("4")
    return Path("run/checkpoint-4/weights.txt")


def test_a_baseline_passes_what_it_contains_and_nothing_else():
    assert main(["diagnose", FAILING, "--write-baseline", "known.json"]) == 0
    assert main(["diagnose", FAILING, "--baseline", "known.json"]) == 0
    Path("known.json").write_text('{"format": 1, "runs": {}}')
    assert main(["diagnose", FAILING, "--baseline", "known.json"]) == 1
    assert main(["diagnose", HEALTHY, "--baseline", "known.json"]) == 0
    assert main(["diagnose", HEALTHY, "--baseline", "missing.json"]) == 2


@pytest.mark.parametrize(
    ("candidate", "gate", "code"),
    [
        (400, "return no worse than 50 % of baseline", 0),
        (100, "return no worse than 5 % of baseline", 1),
        (400, "return no worse than 0.001 absolute", 4),
        (400, "return nicer than baseline", 2),
    ],
)
def test_a_gate(candidate, gate, code):
    for name, level in (("main", 400), ("change", candidate)):
        for seed, noise in enumerate((-2, 1, 0, 2, -1)):
            folder = Path(name, f"s{seed}")
            folder.mkdir(parents=True)
            rows = (f"{i * 2048},{level * min(i, 30) / 30 + noise}\n" for i in range(1, 61))
            head = "time/total_timesteps,rollout/ep_rew_mean\n"
            (folder / "progress.csv").write_text(head + "".join(rows))
            (folder / "config.json").write_text(f'{{"seed": {seed}}}')
    assert main(["compare", "main", "change", "--gate", gate]) == code


def test_whole_runs_are_copied_and_verified():
    record()
    assert main(["verify", "run"]) == 0
    assert main(["backup", "run", "copy"]) == 0
    assert main(["restore", "copy", "-o", "again"]) == 0
    assert main(["bundle", "run", "-o", "run.tar.gz"]) == 0
    assert main(["restore", "copy", "-o", "run"]) == 2  # it is as new


def test_damage_is_1():
    weights = record()
    assert main(["backup", "run", "copy"]) == 0
    weights.write_text("5")
    assert main(["checkpoints", "run", "--verify"]) == 1
    assert main(["backup", "run", "other"]) == 1
    assert main(["bundle", "run", "-o", "run.tar.gz"]) == 1
    Path("copy/checkpoint-4/weights.txt").write_text("6")
    assert main(["restore", "copy", "-o", "again"]) == 1
    (block,) = Path("run/blocks").iterdir()
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 1
    block.write_bytes(data)
    assert main(["verify", "run"]) == 1


@pytest.mark.parametrize("command", ["verify", *COPYING])
def test_what_is_not_there_is_3(command):
    target = {"verify": [], "backup": ["target"]}.get(command, ["-o", "target.zip"])
    assert main([command, "missing", *target]) == 3


def test_the_page_names_them_all():
    for command in ("verify", *COPYING, "compare --gate"):
        assert re.search(rf"`(rlvitals )?{command}`", PAGE), command
    assert "130" in PAGE
    assert "141" in PAGE
