"""Name the code that judges, so that what is kept of a judgement is not shown by other code."""

import hashlib
import os
from functools import cache
from pathlib import Path

import rlvitals


@cache
def version(package: Path = Path(rlvitals.__file__).parent) -> str:
    """Return the package's version, and a digest of the files that judge.

    The version alone stays the same while the code of a checkout changes.
    """
    state = hashlib.blake2b(digest_size=8)
    # What a judgement, the line of a run and the traits of its log depend on.
    for name in ("diagnosis", "metrics", "readers", "rules", "server", "signals", "views"):
        for folder, folders, files in os.walk(package / name):
            folders.sort()
            for file in sorted(files):
                if file.endswith(".py"):
                    state.update(file.encode() + b"\n" + (Path(folder) / file).read_bytes())
    return f"{rlvitals.__version__} {state.hexdigest()}"
