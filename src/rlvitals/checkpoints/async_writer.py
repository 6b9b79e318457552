"""Write checkpoints on a thread, one at a time, and wait for the write at exit.

The error of a write is raised at the next call. An exit of the interpreter and SIGTERM wait for
it; a fork's child has nothing to wait for. A killed process leaves an unfinished folder, which the
next one removes.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from weakref import WeakSet

from rlvitals.checkpoints.owner import Tell
from rlvitals.errors import VitalsError
from rlvitals.tracking import lifecycle

EXIT_WAIT_SECONDS = 300.0  # that an exit waits at the most

_writers: "WeakSet[AsyncWriter]" = WeakSet()
_previous_handlers: list[
    object
] = []  # what SIGTERM did before it waited for a write; empty: it does that


class AsyncWriter:
    """A thread that runs one write at a time."""

    def __init__(self, tell: Tell) -> None:
        """Begin idle; `tell` receives a message for each failed write."""
        self._tell = tell
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        _writers.add(self)

    @property
    def busy(self) -> bool:
        """Whether a write is in progress."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, name: str, work: Callable[[], None]) -> None:
        """Start `work` after the write in progress. Raises the error of that write."""
        self.wait()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - it is raised at the next call
                self._error = error
                problem = (
                    error.problem
                    if isinstance(error, VitalsError)
                    else f"{type(error).__name__}: {error}"
                )
                self._tell(f"{name} was not saved: {problem}")

        self._thread = threading.Thread(target=run, name="rlvitals-checkpoint", daemon=True)
        # SIGTERM waits for the write that begins, where a handler may be set.
        if not _previous_handlers and threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGTERM)
            # Not where it is ignored, or C code has it.
            if handler is signal.SIG_DFL or callable(handler):
                _previous_handlers.append(handler)
                signal.signal(signal.SIGTERM, _on_sigterm)
        self._thread.start()

    def check(self) -> None:
        """Raise the error of the last write, once; do not wait."""
        if not self.busy:
            # The handler of SIGTERM is restored once no write is in progress.
            is_main = threading.current_thread() is threading.main_thread()
            if _previous_handlers and is_main and not any(writer.busy for writer in _writers):
                _restore_handler(_previous_handlers.pop())
            error, self._error = self._error, None
            if error is not None:
                raise error

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds; False if the write is still running. Raises its error."""
        self.join(timeout)
        self.check()
        return not self.busy

    def join(self, timeout: float | None = None) -> None:
        """Wait at most `timeout` seconds for the write; raise nothing."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)


def _join_all(seconds: float) -> bool:
    """Wait for all writes in progress; False after `seconds`."""
    end = time.monotonic() + seconds
    for writer in list(_writers):
        writer.join(max(0.0, end - time.monotonic()))
    return not any(writer.busy for writer in _writers)


def _at_exit() -> None:
    if not _join_all(EXIT_WAIT_SECONDS):
        sys.stderr.write("rlvitals: a checkpoint was still being written: it is not kept\n")


def _restore_handler(handler: object) -> None:
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:  # else somebody has set another since
        signal.signal(signal.SIGTERM, handler)  # type: ignore[arg-type] # from `getsignal`
        lifecycle.note_again("SIGTERM")


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    _join_all(25.0)  # schedulers kill 30 seconds after SIGTERM
    handler = _previous_handlers.pop() if _previous_handlers else signal.SIG_DFL
    _restore_handler(handler)
    if callable(handler) and not isinstance(handler, signal.Handlers):
        handler(number, frame)
    else:
        os.kill(os.getpid(), number)


atexit.register(_at_exit)
