"""Write the rollouts of a run: JSON lines in frames of zstd, rotated, in `rollouts/`.

    <run>/rollouts/0001-0-0000.jsonl.zst   attempt, rank, number

The caller's thread copies samples into a queue; the run's own thread removes secrets, packs and
writes them. Each write is a separate frame, so that a crash loses no frame before it, and a
sample can be read without the rest of its file.
"""

import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from rlvitals.errors import UsageError, quantity
from rlvitals.storage import redact, safe_files
from rlvitals.tracking import media, tensors
from rlvitals.tracking.sinks.sink import Opening
from rlvitals.tracking.warnings_log import error_text

MAX_ROLLOUTS_FILE_BYTES = 64 << 20
MAX_QUEUE_BYTES = 64 << 20  # of samples that wait to be written
Sample = dict[str, object]


class RolloutLog:
    """The rollouts of one rank of one attempt; `limit` bytes of files at most, 0: none."""

    def __init__(self, opening: Opening, limit: float, note: Callable[[str], None]) -> None:
        """Begin; nothing is created before the first samples."""
        self._folder = opening.folder / "rollouts"
        self._prefix = f"{opening.attempt:04d}-{opening.rank}"
        self._limit = limit
        self._note = note
        self._queue: deque[tuple[int, Sample]] = deque()  # bytes and sample
        self._added = self._removed = 0  # bytes: the callers' count, and the writer's
        self._writing = threading.Lock()  # of the run's thread, and of whoever ends the run
        self._number = 0
        self._size = 0  # bytes of the current file

    def add(self, step: int, samples: object) -> None:
        """Queue samples of a step; those beyond the queue's room are counted as lost.

        Raises UsageError where they are no list of dicts.
        """
        if isinstance(samples, Mapping | str) or not hasattr(samples, "__iter__"):
            raise UsageError(
                f"rollouts must be a list of dicts, not {tensors.kind(samples)}",
                hint="a dict for each: {'prompt': ..., 'completion': ..., 'reward': ...}",
            )
        if not self._limit:
            return
        for sample in cast("Iterable[object]", samples):
            record = media.plain(sample)
            if not isinstance(record, dict):
                raise UsageError(f"a rollout must be a dict, not {tensors.kind(sample)}")
            size = media.size(record)
            if self._added - self._removed + size > MAX_QUEUE_BYTES:
                self._note("a rollout was not recorded: the disk is slower than the training")
                continue
            self._added += size
            self._queue.append((size, {"step": step, **record}))

    def write(self) -> None:
        """Write what is queued, on the run's thread or as the run ends; never raises."""
        # The end of a run waits so long for the thread's own write.
        if not self._queue or not self._writing.acquire(timeout=10.0):
            return
        try:
            while self._queue:
                samples: list[Sample] = []
                while self._queue and len(samples) < 64:  # a sample is read by unpacking its frame
                    size, sample = self._queue.popleft()
                    self._removed += size
                    samples.append(sample)
                try:
                    self._write_frame(samples)
                except Exception as error:  # noqa: BLE001 - the recorder counts and goes on
                    reason = error.strerror if isinstance(error, OSError) else ""
                    count = quantity(len(samples), "rollout")
                    self._note(f"{count} not recorded: {reason or error_text(error)}")
        finally:
            self._writing.release()

    def _write_frame(self, samples: Iterable[Sample]) -> None:
        lines = (json.dumps(_clean("", sample), ensure_ascii=False) for sample in samples)
        if sys.version_info >= (3, 14):  # most runs log no rollout
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415
        frame = zstd.compress("".join(f"{line}\n" for line in lines).encode())
        if self._size and self._size + len(frame) > MAX_ROLLOUTS_FILE_BYTES:
            self._number, self._size = self._number + 1, 0
        if not self._size:
            self._folder.mkdir(exist_ok=True)
            self._make_room(len(frame))
        path = self._folder / f"{self._prefix}-{self._number:04d}.jsonl.zst"
        with open(safe_files.open_append(path), "ab") as file:  # noqa: PTH123 - a descriptor
            file.write(frame)
        self._size += len(frame)

    def _make_room(self, size: int) -> None:
        """Delete the oldest files but the first, until the limit leaves room for another."""
        files = sorted(self._folder.glob("*.jsonl.zst"))
        total = sum(path.stat().st_size for path in files) + max(size, MAX_ROLLOUTS_FILE_BYTES)
        for path in files[1:]:
            if total <= self._limit:
                return
            total -= path.stat().st_size
            path.unlink()
            self._note("the oldest rollouts but the first were deleted: recording.rollouts_mib")


def _clean(name: str, value: object) -> object:
    """Return a value without secrets and home folders, at any depth."""
    if isinstance(value, str):
        return redact.hide_home(str(redact.cell(name, value)))
    if isinstance(value, dict):
        return {redact.text(key): _clean(key, cell) for key, cell in value.items()}
    if isinstance(value, list):
        return [_clean(name, cell) for cell in value]
    return value
