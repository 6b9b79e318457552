"""The page on tracking, resuming and monitoring: every command of it runs, in its order."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from rlvitals.cli import main, train

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "track-resume-and-monitor.md"
LINES = re.findall(r"^\$ (.*)$", PAGE.read_text(), flags=re.MULTILINE)
OURS = "rlvitals "
LAUNCHED = "accelerate launch --config_file=deepspeed_zero3.yaml -m rlvitals.trainers.language"
# What trains is held to its flags alone: a language model takes longer than a test may.
TRAINS = ("rlvitals train", LAUNCHED)
RUN = "grpo-start-ckpts/qwen2-5-3b-prm-large-train-v2-{}2025"
MODES = ("", "psr-", "nsr-", "w-reinforce-")  # GRPO's folder without its name: the page has it


def trained(folder, mode):
    """What a trainer leaves: checkpoints, Hugging Face's log, the lines of its console."""
    mode_key = {"psr-": "psr/positive_ratio", "nsr-": "nsr/negative_ratio"}.get(mode, "reward_std")
    for last in (50, 100, 150):
        rows = [
            {
                "step": step, "loss": 3.2 - 0.01 * step, "grad_norm": 2.0 / step,
                "reward": 0.1 * step, "learning_rate": 1e-5 * (1 - step / 150),
                "epoch": step / 150, mode_key: 0.5,
            }
            for step in range(1, last + 1)
        ]  # fmt: skip
        state = {"global_step": last, "max_steps": 150, "log_history": rows}
        place = folder / f"checkpoint-{last}"
        place.mkdir(parents=True)
        (place / "trainer_state.json").write_text(json.dumps(state))
        save_file({"lora": np.ones(4, np.float32)}, place / "adapter_model.safetensors")
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            torch.save({}, place / name)
    assert main(["checkpoints", str(folder), "--seal"]) == 0
    (folder / "logs").mkdir()
    line = "NSR [Step {}]: 2/4 negative samples | Avg reward: -2.145\n"
    (folder / "logs" / "debug.log").write_text("".join(line.format(s) for s in range(0, 150, 10)))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for mode in MODES:
        trained(tmp_path / RUN.format(mode), mode)
    (tmp_path / "poc_nsr.log").write_text("wandb: Tracking run with wandb\n")
    return tmp_path


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith(TRAINS)])
def test_what_trains_takes_its_flags(line):
    argv = shlex.split(line.partition(" 2>&1")[0])
    mode, flags = argv[2], argv[3:]
    if line.startswith(LAUNCHED):
        mode_index = argv.index("--mode")
        mode, flags = argv[mode_index + 1], argv[mode_index + 2 :]
    trainer, options = train.read(mode, flags)
    config = trainer.configure(mode, options)
    assert (config.training.mode, config.training.seed) == ("nsr", 2025)


@pytest.mark.soak
def test_the_page_runs(workspace, capsys):
    ran = 0
    for line in LINES:
        if line.startswith(TRAINS):
            continue
        ran += 1
        if line.startswith(OURS):
            argv = shlex.split(line.removeprefix(OURS))
            # Nothing trains here: what waits for more is asked once.
            argv = argv[: argv.index("--every")] if "--every" in argv else argv
            argv = ["--once" if argument == "--until-end" else argument for argument in argv]
            assert main(argv) == 0, (line, capsys.readouterr())
        else:
            once = line.replace("tail -f", "tail -n 100")
            process = subprocess.run(once, shell=True, check=True, capture_output=True, text=True)  # noqa: S602 - the page's own
            assert process.stdout or line.startswith(("tar", "mkdir")), line
    assert ran >= 18
    plots = {path.name for path in (workspace / "comparison_plots").iterdir()}
    assert {"training_loss.png", "learning_rate.png", "nsr_metrics.png", "rewards.png"} <= plots
    assert (workspace / "nsr_plots" / "gradient_norm.png").exists()
    assert (workspace / "moved" / RUN.format("nsr-") / "checkpoint-150").exists()


def test_a_notebook_hands_the_bundle_over():
    page = PAGE.read_text()
    assert "rlvitals bundle grpo-start-ckpts/" in page
    assert 'files.download("checkpoint.zip")' in page
