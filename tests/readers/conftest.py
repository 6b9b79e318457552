"""Databases that real libraries write: once for all tests, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def trackio_store(tmp_path_factory):
    """Return a project's database, and what Trackio reads of it.

    Trackio reads its folder's name on import, and starts threads.
    """
    folder = tmp_path_factory.mktemp("trackio")
    done = subprocess.run(
        [sys.executable, HERE / "trackio_script.py"],
        env={**os.environ, "TRACKIO_DIR": str(folder)},
        capture_output=True,
        check=True,
    )
    return folder / "p.db", json.loads(done.stderr.splitlines()[-1])


@pytest.fixture(scope="session")
def mlflow_store(tmp_path_factory):
    """Return the folder of both stores, and what MLflow's client reads of them.

    SQLAlchemy warns of itself, and making its database takes 2 seconds.
    """
    folder = tmp_path_factory.mktemp("mlflow")
    done = subprocess.run(
        [sys.executable, HERE / "mlflow_script.py", folder],
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        check=True,
    )
    return folder, json.loads(done.stdout.splitlines()[-1])
