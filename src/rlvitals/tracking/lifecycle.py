"""Record the start, heartbeats and end of a run's process, without changing how it ends.

    handle = lifecycle.begin(folder, events, attempt=1, rank=0, step=lambda: 12)
    handle.end("finished")

Noted are: a beat every ten seconds, an uncaught exception with its traceback (in threads too),
the exit code, SIGTERM, SIGHUP and fatal signals with what every thread was doing. What was there
before is called afterwards; signals are noted by C code that then lets them do what they did, so
that a process that waits in C for ever still ends. A fork's child notes nothing.
"""

import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import redact, safe_files
from rlvitals.storage.events import Events
from rlvitals.storage.run_folder import RUN_FILE
from rlvitals.tracking import heartbeat, machine
from rlvitals.tracking.heartbeat import EXITING, ExitByte, Writer
from rlvitals.tracking.other_processes import OtherProcesses

BEAT_SECONDS = 10.0

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


@dataclass(frozen=True, slots=True)
class _Before:
    """The hooks that were installed when the first run began."""

    excepthook: Hook
    threadhook: Callable[[threading.ExceptHookArgs], object]


_live: "list[Handle]" = []
_streams: list[ExitByte] = []  # of runs that have ended: each is used again
_before: _Before | None = None
_owner: "Handle | None" = None  # whose file gets a crash: the newest run's


class Handle:
    """The lifecycle of a run in this process."""

    def __init__(  # noqa: PLR0913 - the run and its position
        self,
        folder: Path,
        events: Events,
        *,
        attempt: int,
        rank: int,
        step: Callable[[], int | None],
        note: Callable[[str], object],
    ) -> None:
        """Begin; `begin` is what calls this."""
        self._events, self._step, self._note = events, step, note
        self._who: dict[str, object] = {"attempt": attempt, "rank": rank}
        self._beats, self._crash = heartbeat.paths(folder, attempt, rank)
        self._folder, self._others = folder, OtherProcesses(folder, attempt)
        self._pid = os.getpid()
        self._ended = threading.Event()
        self._lock = threading.Lock()  # a beat must not meet a file that is closed
        self._stream: ExitByte | None = None
        self.crash: TextIO | None = None
        self._file: int | None = None
        self._cgroup: Path | None = None

    def arm(self) -> None:
        """Open the files, install the hooks, start to beat; what fails is a note."""
        setups = {
            "signs of life": self._open_files,
            "exit code": self._watch_exit,
            "signals": self._watch_crash,
            "exceptions": _hook,
        }
        for title, set_up in setups.items():
            try:
                set_up()
            except Exception as error:  # noqa: BLE001 - training continues without this part
                self._note(f"{title} not noted: {error}")
        threading.Thread(target=self._run, name="rlvitals-beat", daemon=True).start()

    def end(self, status: str = "finished") -> None:
        """Stop; `EXITING` keeps recording how the process itself ends."""
        if self._ended.is_set() or os.getpid() != self._pid:
            return
        self._ended.set()
        self._beat()
        if status != EXITING:
            self._disarm()

    def note_exception(self, kind: str, error: BaseException, **facts: object) -> None:
        """Record an uncaught exception."""
        if os.getpid() != self._pid:
            return
        try:
            text = "".join(traceback.format_exception(error))
        except Exception:  # noqa: BLE001 - an error without text is named
            text = type(error).__name__
        self._append(kind, traceback=redact.clean_text(text)[-32_000:], **facts)

    def forget(self) -> None:
        """Write nowhere from now on: this is a forked child, and the files belong to its parent."""
        try:
            if self._stream is not None:
                self._stream.drop()
            if self.crash is not None:
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, self.crash.fileno(), inheritable=False)
                os.close(nowhere)
        except OSError:
            pass

    def _append(self, kind: str, **facts: object) -> None:
        fields = {name: value for name, value in facts.items() if value not in (None, "")}
        try:
            self._events.append(kind, self._current_step(), **self._who, **fields)
        except Exception as error:  # noqa: BLE001 - a full disk must not hide the program's error
            self._note(f"{kind} not noted: {error}")

    def _current_step(self) -> int | None:
        try:
            return self._step()
        except Exception:  # noqa: BLE001 - an unreadable step is unknown
            return None

    def _open_files(self) -> None:
        self._beats.parent.parent.mkdir(parents=True, exist_ok=True)
        safe_files.make_folder(self._beats.parent)
        self._cgroup = machine.cgroup()
        self._file = safe_files.open_new(self._beats)
        writer = Writer(
            pid=self._pid,
            host=socket.gethostname(),
            boot=heartbeat.boot(),
            namespace=heartbeat.namespace(),
            born=heartbeat.start_time(self._pid),
            cgroup=str(self._cgroup or ""),
        )
        os.write(self._file, heartbeat.file_content(writer, self._current_step(), self._kills()))

    def _watch_exit(self) -> None:
        if sys.platform != "linux" or self._file is None:
            return
        if not (_streams or ExitByte.is_available()):
            return  # another C library: the code is not known
        self._stream = _streams.pop() if _streams else ExitByte()
        self._stream.point(self._beats)

    def _watch_crash(self) -> None:
        safe_files.make_folder(self._crash.parent)
        self.crash = os.fdopen(safe_files.open_new(self._crash), "w")
        _guard(self)

    def _run(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._beat()
            if self._who["rank"] == 0:
                self._look_for_others()

    def _look_for_others(self) -> None:
        """Report, once each, processes that record into the same folder."""
        for beat in self._others.look():
            process = f"process {beat.writer.pid} on {beat.writer.host}, attempt {beat.attempt}"
            text = f"another process records into this run's folder too: {process}"
            self._append(
                "other_process",
                other_attempt=beat.attempt,
                pid=beat.writer.pid,
                host=beat.writer.host,
            )
            self._note(text)
            with suppress(Exception):  # a closed stderr is no reason to end the beats
                sys.stderr.write(
                    f"rlvitals: {text} ({self._folder}); their rows and checkpoints mix: "
                    "end one of them, or give it a folder of its own\n"
                )

    def _beat(self) -> None:
        line = heartbeat.first_line(self._current_step(), self._kills())
        with self._lock:
            if self._file is None:
                return
            try:
                self._restore_file()
                os.lseek(self._file, 0, os.SEEK_SET)
                os.write(self._file, line)
            except OSError as error:
                self._note(f"no sign of life written: {error.strerror}")

    def _restore_file(self) -> None:
        """Recreate the file where it was removed, once the run's folder exists again."""
        if self._file is None or os.fstat(self._file).st_nlink:
            return
        if (self._beats.parent.parent / RUN_FILE).exists():
            os.close(self._file)
            self._file = None
            self._open_files()
            if self._stream is not None:
                self._stream.point(self._beats)

    def _kills(self) -> int | None:
        return machine.kills(self._cgroup) if self._cgroup is not None else None

    def _disarm(self) -> None:
        if self in _live:
            _live.remove(self)
        if self._stream is not None:
            try:
                self._stream.drop()
                _streams.append(self._stream)
            except OSError:
                pass
        if not _live:
            _unhook()
        _release(self)
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
        if self.crash is not None:
            self.crash.close()
            try:
                if not self._crash.stat().st_size:
                    self._crash.unlink()
            except OSError:
                pass


def begin(  # noqa: PLR0913 - the run and its position
    folder: Path,
    events: Events,
    *,
    attempt: int = 1,
    rank: int = 0,
    step: Callable[[], int | None] = lambda: None,
    note: Callable[[str], object] = lambda _: None,
) -> Handle:
    """Begin to record the lifecycle of this process; a failure becomes a note."""
    handle = Handle(folder, events, attempt=attempt, rank=rank, step=step, note=note)
    _live.append(handle)
    handle.arm()
    return handle


def _hook() -> None:
    """Install the hooks, once."""
    global _before  # noqa: PLW0603 - hooks are the interpreter's, not a run's
    if _before is None:
        _before = _Before(sys.excepthook, threading.excepthook)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread


def _unhook() -> None:
    """Restore the earlier hooks, unless another hook was installed since."""
    global _before  # noqa: PLW0603 - the same
    if _before is None or sys.excepthook is not _uncaught:
        return
    if threading.excepthook is not _uncaught_in_thread:
        return
    sys.excepthook, threading.excepthook = _before.excepthook, _before.threadhook
    _before = None


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for handle in _live:
        # At a prompt the process continues.
        handle.note_exception("error" if hasattr(sys, "ps1") else "exception", error)
    (_before.excepthook if _before else sys.__excepthook__)(kind, error, trace)


def _uncaught_in_thread(hook_args: threading.ExceptHookArgs) -> None:
    if hook_args.exc_value is not None and hook_args.exc_type is not SystemExit:
        name = hook_args.thread.name if hook_args.thread is not None else ""
        for handle in _live:
            handle.note_exception("thread_exception", hook_args.exc_value, thread=name)
    (_before.threadhook if _before else threading.__excepthook__)(hook_args)


_handlers: dict[str, object] = {}  # what Python knew of a signal as we began to note it
_enabled = False  # whether it is we who enabled the fault handler


def _guard(handle: Handle) -> None:
    """Write crashes to this run's file, unless the program writes them elsewhere."""
    global _owner, _enabled  # noqa: PLW0603 - the fault handler is the interpreter's
    _owner = handle
    if handle.crash is None:
        return
    if _enabled or not faulthandler.is_enabled():
        faulthandler.enable(handle.crash, all_threads=True)
        _enabled = True
    # Signals that end a process and that no program error sends. How the C code writes them tells
    # them apart: all threads for SIGTERM, one stack for SIGHUP, a headline for the fatal ones.
    for name, threads in (("SIGTERM", True), ("SIGHUP", False)):
        number = getattr(signal, name, None)
        if number is None or not hasattr(faulthandler, "register"):
            continue
        handler = signal.getsignal(number)
        if name not in _handlers and handler is not signal.SIG_IGN:
            _handlers[name] = handler
        if name in _handlers and _handlers[name] is handler:
            faulthandler.register(number, handle.crash, all_threads=threads, chain=True)


def note_again(name: str) -> None:
    """Record a signal again, after a handler that replaced ours was removed."""
    if _owner is None or name not in _handlers or not hasattr(faulthandler, "unregister"):
        return
    number = getattr(signal, name)
    _handlers[name] = signal.getsignal(number)
    # It does not register what it believes is registered, and brings back what it once found.
    faulthandler.unregister(number)
    signal.signal(number, signal.getsignal(number))
    _guard(_owner)


def _release(handle: Handle) -> None:
    """Pass crashes to another run's file, or to the handler that was installed first."""
    global _owner, _enabled  # noqa: PLW0603 - the same
    if _owner is not handle:
        return
    _owner = None
    handles = [handle for handle in _live if handle.crash is not None]
    if handles:
        _guard(handles[-1])
        return
    if _enabled:
        faulthandler.disable()
        _enabled = False
    for name in list(_handlers):
        # A handler that was installed since then stays.
        if signal.getsignal(getattr(signal, name)) is _handlers.pop(name):
            faulthandler.unregister(getattr(signal, name))


def _after_fork() -> None:
    for handle in _live:
        handle.forget()
    _live.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
