"""Assign the calls of all trackers of a process to run folders.

A training logs to several trackers at once: the first that opens begins a run, the others join it.
A second run of the same tracker is another run. The run ends when all of its trackers have.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvitals.capture import printed
from rlvitals.capture.imports import FOLDER_VARIABLE
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking import launcher_rank
from rlvitals.tracking.start import start

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

CLAIMS_VARIABLE = "_RLVITALS_CAPTURE_CLAIMS"  # a folder with one file for each run folder
MAX_RUN_FOLDERS = 10_000  # of one program
SHARED_TRACKER = "tensorboard"  # several writers of one run are usual: train/ and test/


class Source(NamedTuple):
    """The run of a tracker."""

    tracker: str
    name: str  # W&B's id, a writer's folder


@dataclass(slots=True, eq=False)
class Recording:
    """An open run and the trackers that log to it."""

    run: "Run"
    shares: "list[Share]" = field(default_factory=list)  # that are open
    trackers: set[str] = field(default_factory=set)  # that are or were open
    owners: dict[str, Source] = field(default_factory=dict)  # of each key: the first to log it
    status: str = "finished"
    facts: dict[str, Any] = field(default_factory=dict)  # of how a tracker failed: its exit code


class Share:
    """The part of a run that one tracker logs; used as the run itself.

    A key belongs to the tracker that logs it first: a training that logs the same numbers to two
    trackers is recorded once. A second TensorBoard writer logs it as `<folder of the writer>/key`.
    """

    def __init__(self, recording: Recording, source: Source) -> None:
        """Join a run."""
        self._recording, self._source = recording, source
        self._run = recording.run
        self._names: dict[str, str] = {}  # key -> its name in the run, "" if another's
        self.on_step: Callable[[int], None] | None = None  # gets the steps of TensorBoard
        recording.shares.append(self)
        recording.trackers.add(source.tracker)

    def __getattr__(self, name: str) -> Any:
        """Return anything else of the run."""
        return getattr(self._run, name)

    def log(self, step: int, metrics: Mapping[str, Any], **axes: Any) -> None:
        """Record the numbers whose keys are this tracker's."""
        row = {name: metrics[key] for key in metrics if (name := self._name(key))}
        if row:
            self._run.log(step, row, **axes)
        if self._source.tracker == SHARED_TRACKER:
            for share in self._recording.shares:
                if share.on_step is not None:
                    share.on_step(step)

    def log_text(self, step: int, name: str, text: str) -> None:
        """Record a text."""
        if name := self._name(name):
            self._run.log_text(step, name, text)

    def log_table(self, step: int, name: str, columns: Mapping[str, object]) -> None:
        """Record a table."""
        if name := self._name(name):
            self._run.log_table(step, name, columns)

    def log_histogram(self, step: int, name: str, values: object = None, **bins: Any) -> None:
        """Record a distribution."""
        if name := self._name(name):
            self._run.log_histogram(step, name, values, **bins)

    def finish(self, status: str = "finished", **facts: Any) -> None:
        """Leave the run; the last to leave ends it, as failed where any tracker failed.

        What was logged before is on disk: a writer that is never closed keeps the run open.
        """
        recording = self._recording
        if self not in recording.shares:
            return
        recording.shares.remove(self)
        if status != "finished":
            recording.status = status
            recording.facts |= {key: value for key, value in facts.items() if value is not None}
        if recording.shares:
            self._run.flush()
            return
        if recording in _recordings:
            _recordings.remove(recording)
        self._run.finish(recording.status, **{**facts, **recording.facts})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the run, as failed where an exception ended the block."""
        self.finish("finished" if error is None else "failed")

    def _name(self, key: str) -> str:
        if (name := self._names.get(key)) is None:
            owner = self._recording.owners.setdefault(key, self._source)
            name = key if owner == self._source else ""
            if not name and owner.tracker == self._source.tracker == SHARED_TRACKER:
                name = f"{Path(self._source.name).name}/{key}"
            self._names[key] = name
        return name


_recordings: list[Recording] = []  # that are open in this process, the oldest first
_folders: dict[Source, Path] = {}  # of runs that have been recorded here
_lock = threading.RLock()


def join(source: Source, **facts: Any) -> Share | None:
    """Return a share of the run that a tracker's run belongs to; None where nothing is recorded.

    `facts` are arguments of `rlvitals.start`, used where this begins a run.
    """
    with _lock:
        # A run may be finished by itself, while a tracker's part of it is open.
        _recordings[:] = [
            each
            for each in _recordings
            if not each.run._closed  # noqa: SLF001 - ours
        ]
        for recording in reversed(_recordings):
            if source.tracker == SHARED_TRACKER or source.tracker not in recording.trackers:
                return Share(recording, source)
        if FOLDER_VARIABLE not in os.environ:
            return None
        folder = _folders.get(source) or _claim(Path(os.environ[FOLDER_VARIABLE]))
        printed.stop()
        # Each run of the program has a URL of its own, as it has a folder.
        suffix = folder.name.removeprefix(Path(os.environ[FOLDER_VARIABLE]).name)
        if url := os.environ.get("RLVITALS_RECORDING_MIRROR", "").rstrip("/"):
            facts["mirror"] = f"{url}{suffix}"
        run = start(folder, strict=False, **{k: v for k, v in facts.items() if v})
        _folders[source] = folder
        return share(run, source)


def share(run: "Run", source: Source) -> Share:
    """Let TensorBoard's writers join a run of this process."""
    with _lock:
        recording = Recording(run)
        _recordings.append(recording)
        return Share(recording, source)


def _claim(first: Path) -> Path:
    """Return the next run folder that no other training of the program records into.

    The ranks of one launch share a folder: each claims as often as the others.
    """
    claims = Path(os.environ.get(CLAIMS_VARIABLE, os.devnull))
    launch = launcher_rank.read_place(os.environ)
    claimant = f"process {os.getpid()}"
    if launch.world_size > 1:  # ranks of one node have one parent, also after a restart
        local = os.environ.get("LOCAL_WORLD_SIZE") == str(launch.world_size)
        claimant = f"launch {os.getppid() if local else launch.launch}"
    claimant = f"{claimant}, run {len(_folders) + 1}"
    for number in range(1, MAX_RUN_FOLDERS):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        try:
            with (claims / str(number)).open("x", encoding="utf-8") as file:
                file.write(f"{claimant}\n{folder}")
        except FileExistsError:
            if _read_claim(claims / str(number)).partition("\n")[0] != claimant:
                continue
        except OSError:  # another machine: nobody there claims for us
            return first.with_name(f"{first.name}-{os.uname().nodename}-{os.getpid()}")
        return folder
    raise OSError(f"more than {MAX_RUN_FOLDERS} runs")


def _read_claim(file: Path, wait: float = 1.0) -> str:
    """Return a claim; where another rank is about to write it, after `wait` seconds at most."""
    deadline = time.monotonic() + wait
    while not (text := file.read_text(encoding="utf-8")) and time.monotonic() < deadline:
        time.sleep(0.001)
    return text


def read_claims(claims: Path) -> list[Path]:
    """Return the run folders that were claimed, in their order."""
    files = sorted((file for file in claims.iterdir()), key=lambda file: int(file.name))
    folders = (file.read_text(encoding="utf-8").partition("\n")[2] for file in files)
    return [Path(folder) for folder in folders if folder]  # none: its process was killed


def _forget() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.RLock()
    _recordings.clear()
    _folders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
