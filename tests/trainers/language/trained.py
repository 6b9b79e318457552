"""Small trainings of language models by the whole program, and rewards that are known."""

import os
import shutil
import signal

import small_disk
import torch

from rlvitals.trainers import schema
from rlvitals.trainers.language import presets
from rlvitals.trainers.language.config import Config
from rlvitals.trainers.language.program import Training

SMALL = {
    "model.vlm_name": "tiny-lm", "model.warm_start_steps": 40, "training.max_steps": 9,
    "training.batch_size": 8, "signal.num_generations": 4, "checkpointing.save_steps": 3,
    "data.subset_size": 32, "monitoring.diagnose_seconds": 0.0, "monitoring.report_to": (),
    "training.seed": 5,
}  # fmt: skip
SAID = {"rewards.functions": ("trained:alternating",), "rewards.correctness": "alternating"}


def config(out, mode="nsr", **said):
    """Settings of a small training; keys are dotted names with "__" for the dot."""
    given = {**SMALL, "training.output_dir": str(out), "training.mode": mode}
    given |= {key.replace("__", "."): value for key, value in said.items()}
    return schema.load(Config, None, given, below=presets.preset("tiny-lm"))


def train(out, mode="nsr", base=None, **said):
    """Train; `base` is a folder that holds the model as it is before."""
    if base is not None and not (out / "base").exists():
        shutil.copytree(base, out / "base")
    training = Training(config(out, mode, **said))
    training.run()
    return training


def alternating(completions, **_):
    """Every second sample is right."""
    return [float(at % 2) for at in range(len(completions))]


def none_right(completions, **_):
    return [0.0 for _ in completions]


def all_right(completions, **_):
    return [1.0 for _ in completions]


def first_half(completions, **_):
    """The second half cannot be judged."""
    half = len(completions) // 2
    return [1.0 - at % 2 if at < half else None for at in range(len(completions))]


def nothing(completions, **_):
    return [None for _ in completions]


def not_numbers(completions, **_):
    return [float("nan") for _ in completions]


def picky(prompts, completions, **_):
    """Raises on one question in two."""
    if any(int(prompt[0]) % 2 for prompt in prompts):
        msg = "odd"
        raise ValueError(msg)
    return [1.0 for _ in completions]


def raising(**_):
    msg = "no service"
    raise OSError(msg)


def killed(trainer_state, completions, **_):
    """The process is killed while it judges the samples of its eighth step, or later."""
    if trainer_state.global_step >= 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return alternating(completions)


def terminated(trainer_state, completions, **_):
    """Someone sends SIGTERM while the samples of the fifth step are judged."""
    if trainer_state.global_step == 4:
        os.kill(os.getpid(), signal.SIGTERM)
    return alternating(completions)


def filling(trainer_state, completions, **_):
    """The disk is full from the fifth step on: logs fit, and weights do not."""
    if trainer_state.global_step == 4:
        small_disk.limit(100_000)
    return alternating(completions)


def turns(trainer_state, completions, **_):
    """Right in the first two steps alone."""
    return [float(trainer_state.global_step < 2) for _ in completions]


def format_bonus(completions, trainer_state=None, **_):
    """More with each step, whatever is written: a form that is learned. A quarter outside one."""
    step = 3 if trainer_state is None else trainer_state.global_step
    return [step / 12 for _ in completions]


def weights(folder):
    """Return the bytes of a checkpoint's weights."""
    return (folder / "model.safetensors").read_bytes()


torch.set_num_threads(1)
