"""Fetch hosted runs into a cache: only what is new since the last time.

    folder = fetch(address)

The cache lies in `~/.cache/rlvitals` (or below XDG_CACHE_HOME), readable by its owner alone, and
may be deleted at any time. Credentials are those of each tool's own client; none is stored.
"""

import hashlib
import os
import re
import sys
from pathlib import Path

from rlvitals.errors import VitalsError, harmless
from rlvitals.hosted import mlflow_server, remote_files, wandb_history
from rlvitals.hosted.address import Address, Source
from rlvitals.storage import redact


def fetch(address: Address, since_s: float | None = None) -> Path:
    """Return a folder with the runs of an address, brought up to date.

    `since_s` (seconds since the epoch): a tracking server's runs that ended earlier are left out.
    Raises VitalsError where a client is missing or the source cannot be reached; what was
    fetched so far stays, and the next call goes on from there.
    """
    folder = cache_folder(address)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise VitalsError(
            f"nothing can be cached: {error.strerror}", where=str(folder), hint="XDG_CACHE_HOME"
        ) from error
    if address.kind == Source.FILES:
        remote_files.fetch(address.location, folder, show)
    elif address.kind == Source.MLFLOW:
        mlflow_server.fetch(address.location, folder, since_s, show)
    else:
        wandb_history.fetch(address.location, folder, since_s, show)
    return folder


def cache_folder(address: Address) -> Path:
    """Return the folder of an address; its last part is that of the address, without secrets."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plain = redact.text(address.location)
    digest = hashlib.sha256(f"{address.kind}:{plain}".encode()).hexdigest()[:12]
    name = re.sub(r"[^\w.=-]+", "_", plain.rstrip("/").rpartition("/")[2])[-80:].strip(".")
    return base / "rlvitals" / address.kind / digest / (name or "runs")


def show(count: int, total: int, name: str) -> None:
    """Show on a terminal how far the fetching is."""
    if sys.stderr.isatty():
        text = f"{count:,} of {total:,} fetched: {harmless(redact.text(name), 60)}"
        sys.stderr.write(f"\r\x1b[K{text if count < total else ''}")
        sys.stderr.flush()
