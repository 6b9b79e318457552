"""Progress and remaining time of a run: `training_progress.json`.

    keeper = Keeper(folder, total_steps=500)
    keeper.update(step)                                   # first the step it continues from
    keeper.update(step, latest_checkpoint=f"checkpoint-{step}")
    keeper.finish("completed")

Time is counted by a monotonic clock while a process trains: the gap between two attempts does not
count, and the attempts are summed.
"""

import sys
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from math import isfinite
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import uuid4

from rlvitals.checkpoints import progress_file
from rlvitals.checkpoints.progress_file import PROGRESS_FILE
from rlvitals.errors import UsageError, harmless
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import lock

RUNNING, COMPLETED, FAILED, STOPPED = "running", "completed", "failed", "stopped"
STATUSES = (RUNNING, COMPLETED, FAILED, STOPPED)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a run that is trained in parts."""

    id: int
    status: str
    requests: int | None = None
    checkpoint: str = ""
    log_file: str = ""
    timestamp: str = ""  # UTC, ISO 8601


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run, as read from its file."""

    status: str = ""  # "running", "completed", "failed", "stopped"; empty: unknown
    step: int | None = None  # the last completed
    total_steps: int | None = None
    latest_checkpoint: str = ""  # a name in the run's folder
    started: float | None = None  # the first attempt, seconds since the epoch
    updated: float | None = None  # seconds since the epoch, by the clock of the machine that wrote
    trained: float | None = None  # seconds that processes trained, all attempts together
    eta: float | None = None  # seconds of training that are left
    attempts: int = 0
    chunks: tuple[Chunk, ...] = ()
    total_chunks: int | None = None
    requests_done: int | None = None
    total_requests: int | None = None
    error: str = ""
    damage: str = ""  # what is wrong with the file, in words
    said: Mapping[str, Any] = field(default_factory=dict)  # the complete content of the file

    @property
    def completed_chunks(self) -> int:
        """Number of completed chunks."""
        return sum(chunk.status == COMPLETED for chunk in self.chunks)

    @property
    def fraction(self) -> float | None:
        """Completed fraction, 0 to 1: by steps, else by requests, else by chunks."""
        pairs = (
            (self.step, self.total_steps),
            (self.requests_done, self.total_requests),
            (self.completed_chunks, self.total_chunks),
        )
        for count, total in pairs:
            if count is not None and total:
                return min(1.0, max(0.0, count / total))
        return None


def read(folder: str | PathLike[str]) -> Progress | None:
    """Read a run folder's progress; None if it has no such file.

    If the file is damaged, its previous copy is read, and `damage` reports so; nothing is changed.
    """
    stored = progress_file.load(Path(folder))
    return _parse_progress(stored.content, stored.damage) if stored.exists else None


class Keeper:
    """Writer of `training_progress.json` in a run's folder.

    No exception reaches the training loop: a failed write is reported once.

    Parameters
    ----------
    folder : path
        The run's folder, created if missing.
    total_steps : int, optional
        Last step of the run, if known.
    tell : callable, optional
        Receives each message for the user, a str. Default: standard error.
    **facts : object
        Further fields of the file: `config_file`, `total_requests`, `chunk_size`, `total_chunks`. A
        path is stored by its name, so that a run can be moved.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        total_steps: int | None = None,
        *,
        tell: Tell | None = None,
        **facts: object,
    ) -> None:
        """Begin an attempt; earlier attempts are kept. Raises UsageError for a file."""
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError("the run's folder is a file", where=str(self.folder))
        self._tell: Tell = _print_to_stderr if tell is None else tell
        self._content: dict[str, Any] = {}  # last known content of the file
        self._attempt: dict[str, object] = {"id": uuid4().hex[:8], "started": _timestamp()}
        self._seconds = 0.0
        self._counted_until_s: float | None = None  # the moment up to which time is counted
        self._next_write_s = -1.0  # the moment from which a step alone is written
        self._is_damage_reported = self._is_failure_reported = False
        changes = {"status": RUNNING, "end_time": None, "error_message": None, **self._safe(facts)}
        if total_steps is not None:
            changes["total_steps"] = int(total_steps)
        self._pending: dict[str, object] = changes
        self._write()

    def update(
        self, step: int, latest_checkpoint: str | PathLike[str] | None = None, **facts: object
    ) -> None:
        """Record a completed step. The first call of a process gives the step it continues from.

        `latest_checkpoint` is its path or name, `facts` are fields as in `Keeper`. A `step` alone
        is written at most every 2 seconds.
        """
        self._count()
        self._attempt.setdefault("first_step", int(step))
        self._attempt["last_step"] = self._pending["step"] = int(step)
        changes = self._safe(facts)
        if latest_checkpoint is not None:
            changes["latest_checkpoint"] = self._portable(str(latest_checkpoint))
        self._pending |= changes
        news = any(self._content.get(key) != value for key, value in changes.items())
        if news or clock.monotonic() >= self._next_write_s:
            start = clock.monotonic()
            self._write()
            end = clock.monotonic()
            # Two seconds at least between writes of the step alone, which take at most 2 % of the
            # time.
            self._next_write_s = end + max(2.0, (end - start) / 0.02)

    def chunk(
        self,
        number: int,
        *,
        status: str,
        requests: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        log_file: str | PathLike[str] | None = None,
    ) -> None:
        """Record the status of chunk `number`; a chunk that is recorded twice counts once.

        The `requests` of a chunk whose `status` is "completed" count as done. `checkpoint` and
        `log_file` are paths.
        """
        self._count()
        row: dict[str, object] = {"chunk_id": int(number), "status": str(status)}
        fields = {"requests": requests, "checkpoint": checkpoint, "log_file": log_file}
        row |= self._safe({key: value for key, value in fields.items() if value is not None})
        row["timestamp"] = _timestamp()
        self._write(row)

    def finish(self, status: str = COMPLETED, error_message: str = "") -> None:
        """Record the end of the run, with an `error_message` if there is one.

        Raises UsageError if `status` is not "completed", "failed" or "stopped".
        """
        if status not in STATUSES[1:]:
            raise UsageError(f"a run cannot end as {status!r}", hint=f"{', '.join(STATUSES[1:])}")
        if self._content.get("status") == status and self._content.get("end_time"):
            return
        self._pending |= {"status": status, "end_time": _timestamp()}
        if error_message:
            self._pending["error_message"] = str(error_message)
        self._write()

    @property
    def progress(self) -> Progress:
        """Progress of the run, as last written by this process."""
        return _parse_progress(self._content)

    def _count(self) -> None:
        """Add the time since the last call; the first call starts the clock."""
        time_s = clock.monotonic()
        if self._counted_until_s is not None:
            self._seconds += time_s - self._counted_until_s
        self._counted_until_s = time_s
        self._attempt["seconds"] = round(self._seconds, 3)

    def _write(self, chunk: Mapping[str, object] | None = None) -> None:
        """Merge the pending changes into the file's current content, and replace the file."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with lock(self.folder):
                # If the file is damaged: what this process wrote last, or the copy.
                stored = progress_file.load(self.folder)
                if stored.damage and not self._is_damage_reported:
                    self._tell(f"{stored.damage}; it is never begun anew because of that")
                self._is_damage_reported = bool(stored.damage)
                content = dict(self._content if stored.damage and self._content else stored.content)
                content |= self._pending
                _merge_row(content, "attempts", "id", self._attempt)
                if chunk is not None:
                    _merge_row(content, "chunks", "chunk_id", chunk)
                self._derive(content)
                progress_file.save(self.folder, content)
        except OSError as error:
            if not self._is_failure_reported:
                self._tell(
                    f"{PROGRESS_FILE} was not written: {error.strerror or error}; training goes on"
                )
            self._is_failure_reported = True
        else:
            self._content, self._pending, self._is_failure_reported = content, {}, False

    def _derive(self, content: dict[str, Any]) -> None:
        """Compute the fields that follow from the others."""
        content["last_update"] = _timestamp()
        content.setdefault("start_time", content["last_update"])
        content["output_dir"] = self.folder.resolve().name
        for key in ("end_time", "error_message"):
            if content.get(key) is None:
                content.pop(key, None)
        if chunks := _parse_rows(content.get("chunks")):
            completed = [chunk for chunk in chunks if chunk.get("status") == COMPLETED]
            content["completed_chunks"] = len(completed)
            content["requests_done"] = sum(
                _parse_int(chunk.get("requests")) or 0 for chunk in completed
            )
        progress = _parse_progress(content)
        content["trained_seconds"], content["eta_seconds"] = (
            progress.trained,
            _estimate_eta(progress),
        )

    def _safe(self, facts: Mapping[str, object]) -> dict[str, object]:
        return {key: self._portable(value) for key, value in facts.items()}

    def _portable(self, value: object) -> object:
        """Convert a value to JSON types, and a path to one that is valid wherever the run is."""
        if isinstance(value, Mapping):
            return {str(key): self._portable(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._portable(entry) for entry in value]
        if value is None or isinstance(value, bool | int):
            return value
        if hasattr(value, "item"):  # a scalar of numpy or torch
            return self._portable(value.item())
        if isinstance(value, float):
            return value if isfinite(value) else None
        return _make_relative(str(value), self.folder)


def _make_relative(text: str, folder: Path) -> str:
    """Return an absolute path relative to the run folder; outside it, its last component."""
    windows = PureWindowsPath(text)
    if PurePosixPath(text).is_absolute():
        path = Path(text)
        for root in (folder, folder.resolve()):
            if path != root and path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.name
    return windows.name if windows.is_absolute() else text


def _merge_row(content: dict[str, Any], key: str, by: str, row: Mapping[str, object]) -> None:
    """Merge a row into a list: into the row of the same number, else at the end."""
    rows: list[Mapping[str, Any]] = _parse_rows(content.get(key))
    for i, other_row in enumerate(rows):
        if other_row.get(by) == row[by]:
            rows[i] = {**other_row, **row}
            break
    else:
        rows.append(dict(row))
    content[key] = rows


def _parse_progress(content: Mapping[str, Any], damage: str = "") -> Progress:
    """Parse the content of a file of any writer; skip values of the wrong type."""
    attempts = _parse_rows(content.get("attempts"))
    trained = [
        seconds for row in attempts if (seconds := _parse_number(row.get("seconds"))) is not None
    ]
    return Progress(
        status=str(content.get("status") or ""),
        step=_parse_int(content.get("step")),
        total_steps=_parse_int(content.get("total_steps")),
        latest_checkpoint=str(content.get("latest_checkpoint") or ""),
        started=_parse_time(content.get("start_time")),
        updated=_parse_time(content.get("last_update")),
        trained=round(sum(trained), 3) if trained else None,
        eta=_parse_number(content.get("eta_seconds")),
        attempts=len(attempts),
        chunks=tuple(
            _parse_chunk(i, row) for i, row in enumerate(_parse_rows(content.get("chunks")), 1)
        ),
        total_chunks=_parse_int(content.get("total_chunks")),
        requests_done=_parse_int(content.get("requests_done")),
        total_requests=_parse_int(content.get("total_requests")),
        error=str(content.get("error_message") or ""),
        damage=damage,
        said=content,
    )


def _parse_chunk(position: int, content: Mapping[str, Any]) -> Chunk:
    number = _parse_int(content.get("chunk_id"))
    return Chunk(
        id=position if number is None else number,
        status=str(content.get("status") or ""),
        requests=_parse_int(content.get("requests")),
        checkpoint=str(content.get("checkpoint") or ""),
        log_file=str(content.get("log_file") or ""),
        timestamp=str(content.get("timestamp") or ""),
    )


def _estimate_eta(progress: Progress) -> float | None:
    """Return the remaining seconds of training; None if the total is unknown."""
    if progress.status != RUNNING:
        return None
    spans = [
        (
            _parse_int(row.get("first_step")),
            _parse_int(row.get("last_step")),
            _parse_number(row.get("seconds")),
        )
        for row in _parse_rows(progress.said.get("attempts"))
    ]
    steps = sum(max(0, last - first) for first, last, _ in spans if first is not None and last)
    if progress.trained is None:
        return None
    if progress.step is not None and progress.total_steps and steps:
        return round(max(0, progress.total_steps - progress.step) * progress.trained / steps, 1)
    fraction = progress.fraction
    if fraction and progress.total_steps is None:  # by requests or chunks
        return round(progress.trained * (1 - fraction) / fraction, 1)
    return None


def _parse_rows(value: object) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _parse_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A count or a time; NaN is below nothing.
    return float(value) if abs(value) < 2.0**63 else None


def _parse_int(value: object) -> int | None:
    number = _parse_number(value)
    return None if number is None else int(number)


def _parse_time(value: object) -> float | None:
    """Parse a time in ISO 8601 or seconds since the epoch; without a zone it is UTC."""
    if not isinstance(value, str):
        return _parse_number(value)
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _print_to_stderr(text: str) -> None:
    sys.stderr.write(f"rlvitals: {harmless(text)}\n")
