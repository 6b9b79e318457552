"""Several processes that share a model out: ZeRO-3 is the same training, and resumes as itself."""

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import families
import pytest
import trained
import yaml
from safetensors.torch import load_file
from trl import GRPOConfig
from waiting import HANG_SECONDS

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.language import command, factory, models, sharded_models
from rlvitals.trainers.language.config import SignalConfig

pytestmark = pytest.mark.filterwarnings(
    "ignore:`is_gradient_checkpointing`:FutureWarning"
)  # peft's
LAUNCHER = Path(command.__file__).parent / "configs" / "deepspeed_zero3.yaml"


@dataclass
class Arguments:
    """What is looked at of TRL's."""

    deepspeed_plugin: Any
    world_size: int


SHARED, PLAIN = Arguments(object(), 2), Arguments(None, 2)


@pytest.fixture
def checkpoint(tmp_path):
    """Return what makes a checkpoint's folder, with parts of so many processes of DeepSpeed."""

    def made(parts):
        for rank in range(parts):
            # as ZeRO 3 calls it, and with bfloat16 ZeRO 1
            name = f"{'bf16_' * (rank % 2)}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            (tmp_path / "global_step4").mkdir(exist_ok=True)
            (tmp_path / "global_step4" / name).touch()
        return tmp_path

    return made


@pytest.mark.parametrize(
    ("args", "parts", "said"),
    [
        (PLAIN, 2, "saved by DeepSpeed, and its optimizer cannot be read without it"),
        (SHARED, 0, "saved without DeepSpeed, and its optimizer cannot be read with it"),
        (SHARED, 4, "over 4 processes, and 2 cannot read it"),
    ],
)
def test_an_optimizer_that_cannot_be_read_is_not_begun_anew(args, parts, said, checkpoint):
    with pytest.raises(VitalsError, match=said):
        sharded_models.check_resume(args, checkpoint(parts))


@pytest.mark.parametrize(("args", "parts"), [(PLAIN, 0), (SHARED, 2)])
def test_a_launch_as_before_is_welcome(args, parts, checkpoint):
    assert sharded_models.check_resume(args, checkpoint(parts)) is None


def test_no_step_can_be_left_out_where_deepspeed_takes_it():
    with pytest.raises(UsageError, match="no step can be left out"):
        sharded_models.check(SHARED, SignalConfig(skip_empty_steps=True))
    sharded_models.check(SHARED, SignalConfig())
    sharded_models.check(PLAIN, SignalConfig(skip_empty_steps=True))


def test_a_model_is_loaded_by_all_processes_at_once(tmp_path, tiny, monkeypatch):
    """One after another they would wait for ever: ZeRO-3 sends each weight as it is read."""
    alone, seen = [], []
    first, load = GRPOConfig.main_process_first, models.load

    @contextmanager
    def in_turn(self, **said):
        alone.append(True)
        with first(self, **said):
            yield
        alone.clear()

    def loaded(*args, **said):
        seen.append(bool(alone))
        return load(*args, **said)

    monkeypatch.setattr(GRPOConfig, "main_process_first", in_turn)
    monkeypatch.setattr(models, "load", loaded)
    trained.train(tmp_path / "run", base=tiny, training__max_steps=1)
    assert seen == [False]


@pytest.mark.parametrize(
    ("launched", "asked", "precision"),
    [
        ("bf16", False, (True, False)), ("no", True, (True, False)), ("no", False, (False, False)),
        ("fp16", False, (False, True)), ("fp16", True, (True, False)),
        ("", False, (False, False)),
    ],
)  # fmt: skip
def test_the_launchers_precision_is_the_trainings(launched, asked, precision, monkeypatch):
    """DeepSpeed refuses two of them, and the launcher's file says bf16."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", launched)
    said = factory._precision(asked)
    assert (said["bf16"], said["fp16"]) == precision


# -- DeepSpeed itself, where it is installed -----------------------------------------------------

ASKED = [
    "--mode", "grpo", "--dataset-name", "sums.jsonl", "--max-steps", "4", "--save-steps", "2",
    "--batch-size", "4", "--num-generations", "4", "--diagnose-seconds", "0", "--lora", "false",
    "--max-completion-length", "4", "--report-to", "none", "--threads", "1",
    "--functions", "trained:alternating", "--correctness", "alternating",
]  # fmt: skip


def launched(folder, out, *more, processes=2, deepspeed=True):
    """Run the program by accelerate, or by torchrun; how it ended and all that it printed."""
    said = yaml.safe_load(LAUNCHER.read_text()) | {"mixed_precision": "no", "main_process_port": 0}
    file = folder / "launcher.yaml"
    file.write_text(yaml.safe_dump(said | {"num_processes": processes}))
    accelerate = ["accelerate.commands.launch", f"--config_file={file}"]
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    source = [str(Path(command.__file__).parents[3]), str(Path(__file__).parent)]
    env = {
        **os.environ, "PYTHONPATH": os.pathsep.join(source), "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu",
    }  # fmt: skip
    done = subprocess.run(
        [
            sys.executable, "-m", *(accelerate if deepspeed else torchrun),
            "-m", "rlvitals.trainers.language", "--vlm-name", "model", "--output-dir", out,
            *ASKED, *more,
        ],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=HANG_SECONDS,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.skipif(not importlib.util.find_spec("deepspeed"), reason="DeepSpeed is not there")
def test_zero_3_is_the_same_training_and_goes_on(tmp_path):
    (tmp_path / "model").mkdir()
    families.llama(tmp_path / "model")
    rows = [{"prompt": f"What is {a}+1?", "answer": str(a + 1)} for a in range(16)]
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, told = launched(tmp_path, "plain", deepspeed=False)
    assert code == 0, told
    code, told = launched(tmp_path, "zero", "--max-steps", "2")
    assert code == 0, told
    assert "8 samples" in told, "of both processes"
    code, told = launched(tmp_path, "zero", "--max-steps", "4", processes=1)
    assert code != 0
    assert "DeepSpeed shared it out over 2 processes, and 1 cannot read it" in told
    code, told = launched(tmp_path, "whole")
    assert code == 0, told
    plain, whole = (load_file(tmp_path / run / "model.safetensors") for run in ("plain", "whole"))
    assert plain.keys() == whole.keys()
    assert all(bool((plain[key] - whole[key]).abs().max() < 1e-6) for key in plain)
    begun = load_file(tmp_path / "model" / "model.safetensors")
    assert any(bool((begun[key] - whole[key]).abs().max() > 1e-5) for key in whole)
