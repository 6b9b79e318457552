"""`%load_ext rlvitals`: record what a notebook logs to other trackers from here on."""

import atexit
import os
import secrets
import shutil
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from rlvitals.capture import imports, run_folders


def load_ipython_extension(shell: object) -> None:
    """Follow the trackers in this process; the first run is recorded below `runs/`."""
    del shell
    name = f"notebook-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    folder = Path("runs", name).absolute()
    os.environ[imports.FOLDER_VARIABLE] = str(folder)
    claims = mkdtemp(prefix="rlvitals-notebook-")
    os.environ[run_folders.CLAIMS_VARIABLE] = claims
    atexit.register(_remove, claims, os.getpid())
    imports.install("beside")
    sys.stdout.write(f"rlvitals: what this notebook logs is recorded in {folder}\n")


def _remove(claims: str, process: int) -> None:
    """Remove the folder of claims as its process ends: a forked child still shares it."""
    if os.getpid() == process:
        shutil.rmtree(claims, ignore_errors=True)
