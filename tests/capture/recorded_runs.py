"""Run a script under `rlvitals run`, and read what was recorded."""

import os
import subprocess
import sys
from pathlib import Path

import rlvitals

SOURCE = str(Path(rlvitals.__file__).parent.parent)


def environment(**more):
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("WANDB_", "_RLVITALS", "PYTEST"))
    }
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "PYTHONPATH": SOURCE}
    return {**kept, **quiet, **more}


def command(*words, flags=("-o", "rec")):
    return [sys.executable, "-m", "rlvitals", "run", *flags, "--", *words]


def run(folder, script, *arguments, flags=("-o", "rec"), **more):
    """Write a script, run it under the verb; return the finished process."""
    (folder / "train.py").write_text(script)
    words = command(sys.executable, "train.py", *arguments, flags=flags)
    return subprocess.run(
        words, cwd=folder, env=environment(**more), check=False, capture_output=True, text=True
    )


def plain(folder, script):
    """Run the same script without the verb."""
    (folder / "train.py").write_text(script)
    return subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder, env=environment(), check=False, capture_output=True, text=True,
    )  # fmt: skip


def series(folder):
    """Return {key: [(step, value)]} of what was logged."""
    (log,) = rlvitals.read(folder)
    return {
        key: list(zip(line.steps.tolist(), line.values.tolist(), strict=True))
        for key, line in log.series.items()
        if not key.startswith("machine/")
    }
