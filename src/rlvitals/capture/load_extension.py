"""`%load_ext rlvitals`: record what a notebook logs to other trackers from here on."""

import os
import secrets
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
    os.environ[run_folders.FOLDER_VARIABLE] = str(folder)
    os.environ[run_folders.CLAIMS_VARIABLE] = mkdtemp(prefix="rlvitals-notebook-")
    imports.install("beside")
    sys.stdout.write(f"rlvitals: what this notebook logs is recorded in {folder}\n")
