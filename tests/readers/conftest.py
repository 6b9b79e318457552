"""Databases that real libraries write: once for all tests, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """Return the folder that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def run_once(folder, stream, arguments, environment):
    """Run a script that fills a folder, unless another worker did.

    Return what it printed last to a stream, from JSON.
    """
    printed = folder.with_suffix(".json")
    with FileLock(folder.with_suffix(".lock")):
        if not printed.exists():
            folder.mkdir(exist_ok=True)
            done = subprocess.run(
                [sys.executable, *arguments], env={**os.environ, **environment},
                capture_output=True, check=True,
            )  # fmt: skip
            printed.write_bytes(getattr(done, stream).splitlines()[-1])
    return json.loads(printed.read_bytes())


@pytest.fixture(scope="session")
def trackio_store(shared):
    """Return a project's database, and what Trackio reads of it.

    Trackio reads its folder's name on import, and starts threads.
    """
    folder = shared / "trackio"
    script = HERE / "trackio_script.py"
    return folder / "p.db", run_once(folder, "stderr", [script], {"TRACKIO_DIR": str(folder)})


@pytest.fixture(scope="session")
def mlflow_store(shared):
    """Return the folder of both stores, and what MLflow's client reads of them.

    SQLAlchemy warns of itself, and making its database takes 2 seconds.
    """
    folder = shared / "mlflow"
    script = HERE / "mlflow_script.py"
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true"}
    return folder, run_once(folder, "stdout", [script, folder], quiet)
