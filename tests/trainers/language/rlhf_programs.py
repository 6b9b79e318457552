"""What tests of whole RLHF trainings share: small settings, and what is left of a run."""

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from rlvitals.trainers import schema
from rlvitals.trainers.language import models
from rlvitals.trainers.language.rlhf import command
from rlvitals.trainers.language.rlhf.config import Config
from rlvitals.trainers.language.rlhf.program import Training

SMALL = {
    "model.warm_start_steps": 5, "rlhf.total_episodes": 48, "rlhf.batch_size": 8,
    "rlhf.response_length": 4, "rlhf.lr": 1e-3, "checkpointing.save_steps": 2,
    "data.subset_size": 30, "monitoring.report_to": ("none",), "monitoring.diagnose_seconds": 0.0,
    "rlhf.missing_eos_penalty": 0.3,  # what an untaught model can learn: to end
}  # fmt: skip
# Everything that has a state.
ALL = {
    **SMALL, "rlhf.kl_controller": "adaptive", "rlhf.num_mini_batches": 2, "rlhf.target_kl": 0.5,
    "rlhf.whiten_rewards": True,
}  # fmt: skip
NEVER_THE_SAME = ("manifest.json", "adapter_config.json", "README.md")  # names, times, paths


BASES = tempfile.TemporaryDirectory()


@cache
def _base(steps):
    """Return the folder of the policy that is taught for so many steps."""
    base = Path(BASES.name) / str(steps)
    config = _config({**SMALL, "model.warm_start_steps": steps})
    models.prepare(config.model, seed=config.rlhf.seed, base=base)
    return base


def _config(said):
    return schema.load(Config, None, said, below=command.TINY_LM_PRESET)


def training(folder, said=SMALL, *, copy_base=True, **more):
    """Return a training; `copy_base`: its policy is taught once for all."""
    config = _config({**said, "rlhf.output_dir": str(folder), **more})
    base = Path(folder) / models.BASE_FOLDER
    # Of several processes only the first writes weights, so each training makes its own policy.
    if copy_base and not base.exists() and "RANK" not in os.environ:
        shutil.copytree(_base(config.model.warm_start_steps), base)
    return Training(config)


def run(folder, said=SMALL, **more):
    made = training(folder, said, **more)
    assert made.run() == "finished"
    return made


def cut_short(folder, said, at, error=KeyboardInterrupt):
    """Train until an update, and stop in its middle as a kill would: nothing is saved."""
    made = training(folder, said)
    collect = made.ppo.collect_rollout

    def broken():
        if made.ppo.counters.updates == at:
            collect()
            raise error
        return collect()

    made.ppo.collect_rollout = broken
    try:
        made.run()
    except error:
        return
    raise AssertionError("nothing stopped it")


def last(folder):
    """The final checkpoint's bytes, by file."""
    newest = folder / (folder / "latest").read_text().strip()
    return {
        path.relative_to(newest).as_posix(): path.read_bytes()
        for path in sorted(newest.rglob("*"))
        if path.is_file() and path.name not in NEVER_THE_SAME
    }


def log(folder):
    return (folder / "logs" / "debug.log").read_text().splitlines()
