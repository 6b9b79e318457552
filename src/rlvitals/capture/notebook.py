"""`%load_ext rlvitals`: record what a notebook logs to other trackers from here on."""

import os
import secrets
import sys
import time
from pathlib import Path

from rlvitals.capture import imports, recorder


def load_ipython_extension(shell: object) -> None:
    """Follow the trackers in this process; the first run is recorded below `runs/`."""
    del shell
    name = f"notebook-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    folder = Path("runs", name).absolute()
    os.environ.setdefault(recorder.FOLDER_VARIABLE, str(folder))
    imports.install("beside")
    sys.stdout.write(f"rlvitals: what this notebook logs is recorded in {folder}\n")
