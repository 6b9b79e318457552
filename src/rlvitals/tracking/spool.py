"""Record a run into a bucket: a local folder, and `rlvitals mirror RUN URL`, which uploads it.

The training writes files as always and talks to no network. The uploading process outlives a
training that is killed, and sends the rest.
"""

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import time as clock
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvitals.options import Recording
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import redact
from rlvitals.storage.run_folder import BLOCKS_FOLDER
from rlvitals.tracking import companion
from rlvitals.tracking.run import Run
from rlvitals.tracking.sinks.native import Native

URL = re.compile(r"\w+://.+")
UPLOAD_STATE_FILE = ".bucket.state"  # in the run folder: how far the upload is
NODE_FOLDER = ".bucket"  # in a bucket's copy: each node's manifest and run.json
MAX_FINISH_SECONDS = 60.0  # that the end of a run waits for its upload
ROOM_SECONDS = 5.0  # between two looks at how much waits for the bucket


def resolve(recording: Recording) -> Recording:
    """Return the options with a local folder: a URL is where it is mirrored to."""
    if not URL.fullmatch(recording.folder):
        return recording
    url = recording.folder.rstrip("/")
    return replace(recording, folder=str(spool_folder(url)), mirror=recording.mirror or url)


def spool_folder(url: str) -> Path:
    """Return the folder of this machine that a run is recorded to before its upload."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(url.encode()).hexdigest()[:12]
    name = re.sub(r"[^\w.=-]+", "_", redact.text(url).rpartition("/")[2])[-80:].strip(".")
    return base / "rlvitals" / "spool" / digest / (name or "run")


def run_id(url: str) -> str:
    """Return the id of a run that is recorded to a URL: the same on each machine."""
    return hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:32] if url else ""


def is_spool(folder: Path, url: str) -> bool:
    """Return whether a folder holds what waits for a bucket, and nothing that a user put there."""
    return bool(url) and folder == spool_folder(url)


def read_state(folder: Path) -> Mapping[str, Any]:
    """Return what the uploading process last wrote about itself; empty where there is none."""
    with suppress(OSError, ValueError):
        state = json.loads((folder / UPLOAD_STATE_FILE).read_bytes())
        if isinstance(state, dict):
            return state
    return {}


@dataclass(frozen=True, slots=True)
class UploadCost:
    """The requests of a run's uploads so far, and what still waits."""

    writes: int  # PUT and LIST requests
    reads: int  # GET and HEAD requests
    sent: int  # bytes
    unsent: int  # bytes on this machine's disk; 0 in a copy of a bucket
    error: str  # of the last try; "" where it got through


def upload_cost(folder: Path) -> UploadCost | None:
    """Return the cost of a run's uploads: a recorded folder's, or of all nodes of a bucket's copy.

    None for a run that is in no bucket.
    """
    records = [state] if (state := read_state(folder)) else []
    for path in sorted((folder / NODE_FOLDER).glob("*.json")):
        with suppress(OSError, ValueError):
            record = json.loads(path.read_bytes())
            if isinstance(record, dict) and isinstance(record.get("cost"), dict):
                records.append(record["cost"])
    if not records:
        return None

    def total(key: str) -> int:
        counts = (record.get(key) for record in records)
        return sum(count for count in counts if isinstance(count, int))

    error = state.get("error") or ""
    return UploadCost(total("puts"), total("gets"), total("sent"), total("unsent"), str(error))


def begin(run: Run, recording: Recording) -> None:
    """Start the process that uploads; the end of the run waits for it, with a bound."""
    with suppress(OSError):
        (run.folder / UPLOAD_STATE_FILE).unlink(missing_ok=True)
    url = recording.mirror
    arguments = ["mirror", str(run.folder), url, "--until-end"]
    arguments += ["--every", f"{recording.mirror_seconds}s"]
    process = companion.launch(run, arguments, "not uploaded", niceness=2)
    if process is not None:
        run.at_close = lambda: _wait(run.folder, url, process)


def _wait(folder: Path, url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the bucket has all, and say what it has not."""
    begin_s = clock.monotonic()
    state: Mapping[str, Any] = {}
    while (waited_s := clock.monotonic() - begin_s) < MAX_FINISH_SECONDS:
        state = read_state(folder)
        is_offline = state.get("error") and waited_s > 10.0  # the bucket cannot be reached
        if state.get("done") or is_offline or process.poll() is not None:
            break
        clock.sleep(0.05)
    if state.get("done"):
        return
    count, error = state.get("unsent"), state.get("error") or "the upload is not done yet"
    size = "the run is" if count is None else f"{count:,} bytes of the run are"
    outlook = "a process goes on uploading" if process.poll() is None else "nothing uploads them"
    with suppress(Exception):  # a closed stderr is no error of the training
        sys.stderr.write(
            f"rlvitals: {size} not at {redact.text(url)}: {error}; {folder} has all, and {outlook}."
            f" By hand: rlvitals mirror {folder} {url}\n"
        )


class BoundedSink:
    """The run folder's sink, which takes no rows while too many bytes wait for the bucket.

    It fails as on a full disk: rows wait in memory, then the oldest are dropped and counted.
    """

    def __init__(self, native: Native, folder: Path, limit: float) -> None:
        """Wrap the sink of a spool folder; `limit` in bytes."""
        self._native, self._folder, self._limit = native, folder, limit
        self._looked = -ROOM_SECONDS
        self._is_full = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the sink's own
        """Return what the sink has."""
        return getattr(self._native, name)

    def row(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Write one row at once where there is room."""
        return not self._has_no_room() and self._native.row(step, time, row)

    def flush(self) -> None:
        """Write what waits. OSError where the spool is full."""
        if self._has_no_room():
            problem = "the bucket has not taken what is here, and the spool folder is full"
            raise OSError(errno.ENOSPC, problem, str(self._folder))
        self._native.flush()

    def _has_no_room(self) -> bool:
        if clock.monotonic() >= self._looked + ROOM_SECONDS:
            self._looked = clock.monotonic()
            size = 0
            with suppress(OSError), os.scandir(self._folder / BLOCKS_FOLDER) as entries:
                size = sum(entry.stat().st_size for entry in entries)
            uploaded = read_state(self._folder).get("uploaded", 0)
            self._is_full = size - uploaded > self._limit
        return self._is_full
