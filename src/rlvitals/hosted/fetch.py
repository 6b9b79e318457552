"""Fetch hosted runs into a cache: only what is new since the last time.

    folder = fetch(address)

The cache lies in `~/.cache/rlvitals` (or below XDG_CACHE_HOME), readable by its owner alone, and
may be deleted at any time. Credentials are those of each tool's own client; none is stored.
"""

import hashlib
import os
import re
import sys
import threading
import time
from pathlib import Path

from rlvitals.errors import VitalsError, harmless
from rlvitals.hosted.address import Address, Source, parse
from rlvitals.storage import redact


def local_path(path: Path) -> Path:
    """Return a local path as it is, and of a hosted address its copy, brought up to date."""
    address = parse(path)
    return path if address is None else fetch(address)


def root_name(path: Path) -> str:
    """Return what names a root wherever it is read: its URL without secrets, else its full path."""
    address = parse(path)
    return str(path.resolve()) if address is None else redact.text(address.location).rstrip("/")


def keep_up_to_date(path: Path) -> Path:
    """Return what `local_path` does; a thread brings a copy up to date, with errors on stderr."""
    address = parse(path)
    if address is None:
        return path
    folder = fetch(address)

    def repeat() -> None:
        last_problem, begin_s = "", time.monotonic()
        while True:
            # Each half of the interval of a bucket's uploads; a large copy leaves a pause, too.
            time.sleep(max(1.0, begin_s + 5.0 - time.monotonic()))
            problem, begin_s = "", time.monotonic()
            try:
                fetch(address, quiet=True)
            except VitalsError as error:
                problem = str(error)
            if problem and problem != last_problem:
                sys.stderr.write(f"{harmless(problem)}\n")
            last_problem = problem

    threading.Thread(target=repeat, name="rlvitals-fetch", daemon=True).start()
    return folder


def fetch(address: Address, since_s: float | None = None, *, quiet: bool = False) -> Path:
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
        from rlvitals.hosted import remote_files

        remote_files.fetch(address.location, folder, (lambda *_: None) if quiet else show)
    elif address.kind == Source.MLFLOW:
        from rlvitals.hosted import mlflow_server

        mlflow_server.fetch(address.location, folder, since_s, show)
    else:
        from rlvitals.hosted import wandb_history

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
