"""Back up a run on a thread during the training: periodically, and once at the end."""

import atexit
import os
import sys
import threading
import time as clock
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Self

from rlvitals.checkpoints.owner import RecordedRun, Tell, print_stderr
from rlvitals.checkpoints.transfer import file_selection
from rlvitals.checkpoints.transfer.backup_target import open_target
from rlvitals.checkpoints.transfer.copy_files import CopyStopped, RetryPolicy
from rlvitals.checkpoints.transfer.filesystems import RemoteFiles
from rlvitals.checkpoints.transfer.sync import check_separate, sync_run
from rlvitals.checkpoints.transfer.sync_result import SyncResult
from rlvitals.checkpoints.transfer.timeouts import STALL_SECONDS
from rlvitals.errors import UnreadableLog, UsageError, VitalsError
from rlvitals.storage import redact


class BackupIncomplete(VitalsError):  # noqa: N818 - the name says what went wrong
    """An interrupted backup: files at the target are intact, and the next round continues."""


def sync_once(  # noqa: PLR0913 - what, where to, how, each by its name
    folder: Path,
    remote: RemoteFiles,
    *,
    keep_all: bool = False,
    patience: RetryPolicy | None = None,
    tell: Tell = lambda _: None,
    result: SyncResult | None = None,
) -> SyncResult:
    """Synchronise once. Raises VitalsError; NotComplete for any other exception."""
    try:
        return sync_run(
            folder, remote, keep_all=keep_all, patience=patience, tell=tell, result=result
        )
    except (VitalsError, CopyStopped):
        raise
    except Exception as error:  # storage libraries raise errors of their own kinds
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BackupIncomplete(
            f"the backup is not complete: {redact.text(message) or type(error).__name__}",
            where=remote.name,
            hint="the next round goes on where this one stopped",
        ) from error


class Backup:
    """Copies a run's checkpoints and logs to another place while it trains.

    A round begins at once, the next ones follow at intervals, and a last one runs at the end.
    Nothing is raised once the rounds have begun. A process with a rank above 0 copies nothing.

    Parameters
    ----------
    run : path or Run
        A run, or its folder.
    target : path
        A folder, or a URL that fsspec supports. It receives what the run keeps.
    every : float
        Seconds between two rounds.
    keep_all : bool
        The target also keeps the checkpoints that the run has deleted.
    options : mapping, optional
        Options of the back-end of a URL, passed to fsspec.
    stall : float
        Seconds without progress after which a connection is abandoned: its round ends, and the next
        round reconnects.
    tell : callable, optional
        Receives each message for the user, a str. Default: standard error.

    Raises
    ------
    UsageError
        If the target is invalid, it is the run's folder or one contains the other, or `every` or
        `stall` is not above 0.
    VitalsError
        If the target is a URL that cannot be reached, or whose package is not installed.
    """

    def __init__(  # noqa: PLR0913 - what, where to, how often, each by its name
        self,
        run: str | PathLike[str] | RecordedRun,
        target: str | PathLike[str],
        *,
        every: float = 3600.0,
        keep_all: bool = False,
        options: Mapping[str, object] | None = None,
        stall: float = STALL_SECONDS,
        tell: Tell | None = None,
    ) -> None:
        """Parse the target; `start`, or a `with` block, begins."""
        if not every > 0:
            raise UsageError(f"every cannot be {every}", hint="seconds between rounds: every=3600")
        if not stall > 0:
            raise UsageError(f"stall cannot be {stall}", hint="seconds of silence: stall=300")
        self._folder = Path(run) if isinstance(run, str | PathLike) else run.folder
        self._active = getattr(run, "rank", 0) == 0  # one process of a run is enough
        self._remote = open_target(target, dict(options or {}), stall)
        if self._active:
            check_separate(self._folder, self._remote)
        self._every, self._keep_all, self._stall = every, keep_all, stall
        self._tell: Tell = print_stderr if tell is None else tell
        self._patience, self._stop_event = RetryPolicy(beat=self._beat), threading.Event()
        self._moved_s = clock.monotonic()  # time of the last progress
        self._is_abandoned = False
        self._complete_names: set[str] = set()  # complete at the target
        self._current = SyncResult(self._remote.name)  # of the current round
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self.last: SyncResult | None = None  # what the last complete round did

    def start(self) -> Self:
        """Start the rounds on a thread; return the object itself."""
        if self._active and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rlvitals-backup", daemon=True)
            self._thread.start()
            atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Run a last round and end. An interrupt meanwhile ends it at once, and is raised.

        Waits while bytes are transferred. After twice `stall` seconds without progress the thread
        is abandoned, and what was not backed up is reported.
        """
        if self._thread is None or os.getpid() != self._pid or self._is_abandoned:
            return
        self._stop_event.set()
        self._beat()
        try:
            self._wait(self._thread)
        except BaseException:
            self._patience.stop.set()
            raise
        finally:
            atexit.unregister(self.stop)

    def _wait(self, thread: threading.Thread) -> None:
        limit_s = 2 * self._stall  # a call that hangs now, and one of the last round
        while thread.is_alive():
            remaining_s = self._moved_s + limit_s - clock.monotonic()
            if remaining_s <= 0:
                self._is_abandoned = True
                self._patience.stop.set()
                problem = f"the backup hangs: nothing has moved for {limit_s:,.0f} s"
                self._say(f"{problem} ({self._remote.name}); {self._missing()}")
                return
            thread.join(remaining_s)

    def _beat(self) -> None:
        self._moved_s = clock.monotonic()

    def __enter__(self) -> Self:
        """Start the rounds."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Run a last round."""
        self.stop()

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere a niceness applies to the process
            with suppress(OSError):
                # Training comes first.
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        last = False
        while not last:
            last = self._stop_event.is_set()
            self._current = result = SyncResult(self._remote.name)
            try:
                sync_once(
                    self._folder,
                    self._remote,
                    keep_all=self._keep_all,
                    patience=self._patience,
                    result=result,
                )
            except CopyStopped:
                self._say(f"backup stopped; what is at {self._remote.name} is whole")
            except UnreadableLog as error:
                if last:
                    self._say(f"nothing was backed up: {error.problem}")
            except Exception as error:  # noqa: BLE001 - training continues without its backup
                problem = getattr(error, "problem", str(error))
                outlook = (
                    self._missing() if last else f"the next try is in {self._every / 60:,.0f} min"
                )
                self._say(f"{problem} ({self._remote.name}); {outlook}")
            else:
                self.last = result
                for text in (*result.failed, result.sentence):
                    self._say(text)
            finally:
                self._complete_names = (
                    self._complete_names if result.complete is None else result.complete
                )
            if not last:
                self._stop_event.wait(self._every)

    def _missing(self) -> str:
        """Return a sentence that names what is not at the target at the end."""
        complete_names = (
            self._complete_names if self._current.complete is None else self._current.complete
        )
        try:
            names = [
                checkpoint.folder.name
                for checkpoint in file_selection.find_content(self._folder).checkpoints
            ]
        except (VitalsError, OSError):
            names = []
        if absent := [name for name in names if name not in complete_names]:
            return f"not backed up: {', '.join(absent)}"
        return "its checkpoints are there; the newest lines of its logs may not be"

    def _say(self, text: str) -> None:
        with suppress(Exception):  # a closed stderr is no reason to end the rounds
            self._tell(text)


def repeat_until(
    one_round: Callable[[], object],
    *,
    every: float,
    ending: threading.Event,
    is_over: Callable[[], bool],
    look: float = 5.0,
) -> None:
    """Repeat rounds until the run is over or `ending` is set; then run a last one."""
    last = False
    while not last:
        last = ending.is_set() or is_over()
        one_round()
        waited_s = 0.0
        while not last and waited_s < every and not ending.wait(min(look, every - waited_s)):
            waited_s += look
            if is_over():
                break
