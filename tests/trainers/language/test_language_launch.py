"""The same program, started by name, as a module, by torchrun and by accelerate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from effort import cases
from waiting import HANG_SECONDS

from rlvitals.cli import main
from rlvitals.trainers.language import command

SMALL = [
    "--vlm-name", "tiny-lm", "--warm-start-steps", "20", "--max-steps", "4", "--subset-size", "16",
    "--batch-size", "4", "--num-generations", "4", "--save-steps", "2", "--diagnose-seconds", "0",
    "--report-to", "tensorboard",
]  # fmt: skip
LAUNCHER = Path(command.__file__).parent / "configs" / "deepspeed_zero3.yaml"


def launched(folder, *words):
    """Run a command in a folder; what it printed."""
    source = str(Path(command.__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": source, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.soak
def test_torchrun_trains_with_two_processes(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    module = ["-m", "rlvitals.trainers.language", "--mode", "nsr"]
    told = launched(tmp_path, *torchrun, *module, *SMALL, "--output-dir", "run")
    assert told.count("NSR TRAINING CONFIGURATION:") == 1
    assert "/8 negative samples" in told  # of both processes
    assert told.count("✓ Training completed successfully") == 1
    run = tmp_path / "run"
    assert {path.name for path in run.glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    assert (run / "checkpoint-4" / "rng_state_1.pth").exists()
    assert (run / "checkpoint-4" / "manifest.json").exists()


@pytest.mark.soak
def test_accelerate_launches_the_module(tmp_path):
    plain = tmp_path / "plain.yaml"
    said = yaml.safe_load(LAUNCHER.read_text())
    del said["deepspeed_config"]
    plain.write_text(yaml.safe_dump(said | {"distributed_type": "NO", "use_cpu": True,
                                            "mixed_precision": "no"}))  # fmt: skip
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", f"--config_file={plain}"]
    module = ["-m", "rlvitals.trainers.language", "--mode", "psr"]
    told = launched(tmp_path, *accelerate, *module, *SMALL)
    assert "PSR [Step 0]:" in told
    assert "✓ Model saved to grpo-start-ckpts/tiny-lm-prm-large-train-v2-psr-2025/" in told


@pytest.mark.parametrize(
    ("words", "mode"),
    [([], "grpo"), (["--config", "said.json"], "psr"),
     (["--config", "said.json", "--mode", "nsr"], "nsr")][cases(2, 0) :],
)  # fmt: skip
def test_the_module_trains_in_the_mode_of_its_file(tmp_path, words, mode):
    (tmp_path / "said.json").write_text(json.dumps({"training": {"mode": "psr"}}))
    module = [sys.executable, "-m", "rlvitals.trainers.language"]
    launched(tmp_path, *module, *words, *SMALL, "--write-config", "written.json")
    assert json.loads((tmp_path / "written.json").read_text())["training"]["mode"] == mode


def test_the_module_says_that_its_file_cannot_be_read(tmp_path):
    module = [sys.executable, "-m", "rlvitals.trainers.language", "--config", "none.json"]
    with pytest.raises(AssertionError, match="the settings cannot be read"):
        launched(tmp_path, *module)


def test_the_launchers_file_is_one_that_accelerate_reads():
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    found = load_config_from_file(str(LAUNCHER))
    assert isinstance(found, ClusterConfig)
    assert found.deepspeed_config["zero_stage"] == 3
    assert found.mixed_precision == "bf16"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "psr"], "train nsr, or --mode psr?"),
        (["--report-to", "tensorbord"], "nothing reports to 'tensorbord'"),
        (["--batch-size", "3"], "num_generations"),
        (["--functions", "acuracy_reward"], "did you mean accuracy_reward"),
        (["--correctness", "format_reward"], "nothing pays that"),
        (["--output-dir", "runs/{modus}"], "cannot be filled in"),
        (["--threshold-on", "totl"], "did you mean total?"),
        (["--reward-treshold", "1"], "--reward-treshold"),
    ],
)
def test_mistakes_are_named(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "nsr", *SMALL, *words]) == 2
    assert said in capsys.readouterr().err
