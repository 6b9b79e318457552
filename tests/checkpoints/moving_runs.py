"""Small runs to move, and what to compare them by."""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals.checkpoints.transfer.copy_files import RetryPolicy

made = tempfile.TemporaryDirectory()
QUICK = RetryPolicy(first=0.001)  # waits between tries that a test need not sit out
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def at_work(do, *args):
    """Return a process of its own that has just begun with `do`: forked, nothing is loaded anew."""
    fork = get_context("fork")
    begun = fork.Event()

    def begin():
        begun.set()
        do(*args)

    process = fork.Process(target=begin, daemon=True)
    with warnings.catch_warnings():  # of 3.12 on: our threads hold nothing that `do` needs
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    assert begun.wait(HANG_SECONDS)
    return process


def quiet(_):
    """Tell nobody."""


def save(checkpoints, step, size=2000, metrics=None):
    with checkpoints.save(step, metrics=metrics) as folder:
        (folder / "model.bin").write_bytes(np.random.default_rng(step).bytes(size))
        (folder / "rng").mkdir()
        (folder / "rng" / "0.json").write_text(json.dumps({"step": step}))


def checkpoints(folder, keep=3, **options):
    return rlvitals.Checkpoints(folder, keep=keep, tell=quiet, **options)


def recorded(folder, steps=(50, 100), who=1):
    """Make a run that is finished, with checkpoints at these steps; `who` tells runs apart."""
    shutil.copytree(_recorded(steps, who, os.environ.get("RLVITALS_MODE")), folder)
    return Path(folder)


@cache
def _recorded(steps, who, mode):
    del mode  # a test without recording keeps its run for itself
    folder = Path(made.name) / str(len(list(Path(made.name).iterdir()))) / "run"
    run = rlvitals.start(folder, seed=who, settings={"lr": 0.1}, sinks=["csv"])
    kept = checkpoints(run)
    for step in steps:
        run.log(step, {"loss": 1.0 / step})
        save(kept, step)
    run.finish()
    return folder


def plain(folder, steps=(50, 100), size=2000):
    kept = checkpoints(folder)
    for step in steps:
        save(kept, step, size)
    return Path(folder)


def content(folder, *, hidden=False):
    """Return every file's hash: what two copies of a run are compared by."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and (hidden or not path.name.startswith("."))
    }


def moved(folder):
    """The same, without what a backup or a bundle says of itself, at its root."""
    own = {"backup.json", "bundle.json"}
    return {name: one for name, one in content(folder).items() if name not in own}


def whole(folder):
    """Return the steps that are named like checkpoints: each must verify."""
    from rlvitals.checkpoints import manifest, naming

    found = naming.find_checkpoints(Path(folder))
    for step, path in found.items():
        assert manifest.verify(path).step == step
    return sorted(found)
