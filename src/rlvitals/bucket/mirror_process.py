"""Upload a run folder until its run is over: retries, heartbeats, checkpoints, its index entry.

Nothing ends the loop but the end of the run: a bucket that is down, throttles or refuses
credentials is tried again with growing pauses, and what waits is on disk.
"""

import json
import random
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from rlvitals.bucket import run_index, spool_files, uploader
from rlvitals.bucket.node_manifest import upload_prefixes
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.uploader import Uploader
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.transfer.fsspec_remote import open_url
from rlvitals.checkpoints.transfer.sync import sync_run
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage import redact, tail_index
from rlvitals.storage.safe_files import atomic_write, open_append
from rlvitals.tracking import heartbeat
from rlvitals.tracking.spool import UPLOAD_STATE_FILE, is_spool

BEAT_UPLOAD_SECONDS = 30.0  # between heartbeats, of the 300 after which a process counts as lost
INDEX_SECONDS = 60.0  # between two entries of a run in its bucket's index
WRITER_CHECK_SECONDS = 0.5  # between two looks whether the run is over


class Mirror:
    """The upload of one folder; `run` returns when the run is over and all of it uploaded."""

    def __init__(self, folder: Path, url: str, every: float) -> None:
        """Connect. Raises UsageError, VitalsError. `every`: seconds between two uploads."""
        self.folder, self.url, self._every = folder, url, every
        self.store = ObjectStore(url)
        self.uploader = Uploader(folder, self.store)
        self._entry = run_index.RunEntry(url, folder)
        self._beat_due = self._index_due = 0.0
        self._failures = 0
        self.error = ""
        self._is_done = False
        self._saving: threading.Thread | None = None

    def run(self) -> bool:
        """Upload until the run is over; return whether all is in the bucket."""
        over_s = None
        while True:
            is_over = not tail_index.has_writer(self.folder)
            if is_over and over_s is None:
                over_s = clock.monotonic()
            begin_s = clock.monotonic()
            is_complete = self.upload(closing=is_over)
            if is_over and is_complete:
                break
            # A day after the end of the run.
            if over_s is not None and clock.monotonic() > over_s + 86_400.0:
                return False
            if is_complete or self.error:
                self._pause(begin_s, is_over=is_over)
        self.save_checkpoints(wait=True)
        self._is_done = True
        self._write_state()
        # Processes write their exit codes last.
        deadline = clock.monotonic() + 30.0  # seconds, for the exit codes of the run's processes
        while self._has_process() and clock.monotonic() < deadline:
            clock.sleep(WRITER_CHECK_SECONDS)
        is_complete = self.upload(closing=True)
        if is_complete and not self._has_process():
            self.remove_spool()
        return is_complete

    def upload(self, *, closing: bool) -> bool:
        """Upload what is new; return whether the bucket has all. Errors are kept in `error`."""
        try:
            is_complete = self.uploader.upload(closing=closing)
            if clock.monotonic() >= self._beat_due or (closing and is_complete):
                self.uploader.beat()
                self._beat_due = clock.monotonic() + BEAT_UPLOAD_SECONDS
        except Exception as error:  # noqa: BLE001 - each back-end has errors of its own
            self._failures += 1
            self.error = redact.text(str(error)) or type(error).__name__
            is_complete = False
        else:
            self._failures, self.error = 0, ""
            self.save_checkpoints(wait=False)
            has_ended = closing and is_complete
            if has_ended or clock.monotonic() >= self._index_due:
                # A run that is not listed is complete all the same.
                self._index_due = clock.monotonic() + INDEX_SECONDS
                try:
                    sequence = self.uploader.manifest.sequence
                    self._entry.update(has_ended=has_ended, sequence=sequence)
                except Exception as error:  # noqa: BLE001 - each back-end has errors of its own
                    self.error = f"not in the bucket's index: {redact.text(str(error))}"
        self._write_state()
        return is_complete

    def _pause(self, begin_s: float, *, is_over: bool) -> None:
        """Wait until a round is due: an interval after the last one began, and after a failure."""
        pause_s = self._every
        if self._failures:
            # A bucket that does not answer is tried every five minutes at least.
            limit_s = min(300.0, max(1.0, self._every) * 2.0 ** (self._failures - 1))
            # So that ranks do not meet again.
            pause_s = random.uniform(limit_s / 2, limit_s)  # noqa: S311
        deadline = (clock.monotonic() if self._failures else begin_s) + pause_s
        while clock.monotonic() < deadline:
            clock.sleep(min(WRITER_CHECK_SECONDS, pause_s))
            if not is_over and not self._failures and not tail_index.has_writer(self.folder):
                return

    def save_checkpoints(self, *, wait: bool) -> None:
        """Upload sealed checkpoints on a thread: they are large, and rows do not wait for them."""
        if self._saving is not None and (wait or not self._saving.is_alive()):
            self._saving.join()
            self._saving = None
        if self._saving is None and naming.find_checkpoints(self.folder):
            self._saving = threading.Thread(target=self._sync, name="rlvitals-save", daemon=True)
            self._saving.start()
            if wait:
                self._saving.join()

    def _sync(self) -> None:
        try:
            remote, rows = open_url(self.url, {}), upload_prefixes()
            result = sync_run(self.folder, remote, logs=False, mirror_prefixes=rows)
            if result.failed:
                self.error = f"checkpoints: {'; '.join(result.failed)}"
        except Exception as error:  # noqa: BLE001 - the next round tries again
            self.error = f"checkpoints: {redact.text(str(error)) or type(error).__name__}"

    def remove_spool(self) -> None:
        """Delete what waited for the bucket in this machine's cache; a user's own folder stays."""
        if is_spool(self.folder, self.url):
            with suppress(Exception):  # it is tried no more: a cache may be kept
                spool_files.remove(self.folder, self.store)

    def _has_process(self) -> bool:
        beats = map(heartbeat.read_or_skip, (self.folder / "life").glob("*.beat"))
        return any(
            beat is not None
            and beat.writer.boot == heartbeat.boot()
            and heartbeat.start_time(beat.writer.pid) == beat.writer.born
            for beat in beats
            if beat is not None and beat.writer.born
        )

    def _write_state(self) -> None:
        unsent = uploader.unsent_bytes(self.folder, self.uploader.uploaded_bytes)
        record = {
            "url": redact.text(self.url), "uploaded": self.uploader.uploaded_bytes,
            "unsent": unsent, "error": self.error, "done": self._is_done, **asdict(self.store.cost),
        }  # fmt: skip
        with suppress(OSError), atomic_write(self.folder / UPLOAD_STATE_FILE) as file:
            file.write(json.dumps(record).encode())


def mirror(folder: Path, url: str, every: float | None, tell: Callable[[str], None]) -> bool:
    """Upload a folder once, or each `every` seconds until its run is over; return if all is there.

    Waits while another process uploads the folder. Raises UsageError, VitalsError, OSError.
    """
    with _lock_upload(folder, tell):
        job = Mirror(folder, url, every or 0.0)
        if every is not None:
            return job.run()
        is_over = not tail_index.has_writer(folder)
        while not job.upload(closing=is_over):
            if job.error:
                raise VitalsError(job.error, where=job.store.name, hint="the same command goes on")
        job.save_checkpoints(wait=True)
        if job.error:
            raise VitalsError(job.error, where=job.store.name, hint="the same command goes on")
        if is_over:
            job.remove_spool()
        return True


@contextmanager
def _lock_upload(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Let one process upload a folder. Without locks of the file system the bucket decides."""
    if not folder.is_dir():
        raise UsageError("no run folder is here", where=str(folder))
    with open(open_append(folder / ".bucket.upload"), "ab") as lock:  # noqa: PTH123 - a descriptor
        try:
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process uploads this folder: waiting for it")
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass
        yield
