"""Read and write the heartbeat file of a process, and its exit code.

    <run>/life/<attempt>-<rank>.beat
        line 1, of fixed length, written over at every beat: time, last step, kills for memory
        line 2: who writes, as JSON
        then one byte, the exit code, once the process has ended by itself
    <run>/life/<attempt>-<rank>.crash
        what the interpreter wrote when a signal ended it; else empty

The exit code is written by the C library's own `on_exit`, after Python is gone: no Python code
learns it, whoever raised it. Where there is no `on_exit` (macOS, Windows, musl) it is not known.
"""

import ctypes
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.storage.typed import Fields

HEARTBEAT_FOLDER = "life"
EXITING = "exiting"  # a status before the end: the process records its own exit
BEAT_LINE_BYTES = 64  # bytes of the first line, with its end


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes: enough to find out later, on the same machine, if it still lives."""

    pid: int = 0
    host: str = ""
    boot: str = ""  # of the machine: changes at each start
    namespace: str = ""  # of process numbers: a container has its own
    born: str = ""  # when the process began, as its system counts: numbers are used again
    cgroup: str = ""  # the folder that counts the kills for want of memory


@dataclass(frozen=True, slots=True)
class Beat:
    """The content of a heartbeat file."""

    attempt: int
    rank: int
    time: float  # of the last beat, seconds since the epoch
    step: int | None
    kills: int | None  # for want of memory in its cgroup, counted at the last beat
    writer: Writer = field(default_factory=Writer)
    exit_code: int | None = None


def paths(run: Path, attempt: int, rank: int) -> tuple[Path, Path]:
    """Return the paths of the heartbeat file and the crash file."""
    stem = run / HEARTBEAT_FOLDER / f"{attempt}-{rank}"
    return stem.with_suffix(".beat"), stem.with_suffix(".crash")


def first_line(step: int | None, kills: int | None) -> bytes:
    """Format the first line, with the current time."""
    text = f"{time.time():.3f} {'-' if step is None else step} {'-' if kills is None else kills}"
    return text.encode().ljust(BEAT_LINE_BYTES - 1)[: BEAT_LINE_BYTES - 1] + b"\n"


def file_content(writer: Writer, step: int | None, kills: int | None) -> bytes:
    """Format the initial content of the file."""
    return first_line(step, kills) + json.dumps(asdict(writer)).encode() + b"\n"


def read(path: Path) -> Beat | None:
    """Read a heartbeat file; None where it is invalid. Raises OSError."""
    attempt, _, rank = path.stem.partition("-")
    first, _, after_first = path.read_bytes().partition(b"\n")
    second, _, code = after_first.partition(b"\n")
    try:
        when, step, kills = first.split()
        record = Fields(typed.load(second), path.name)
        texts = ("host", "boot", "namespace", "born", "cgroup")
        names = {name: record.take(name, typed.text, "") for name in texts}
        return Beat(
            typed.count(int(attempt)),
            typed.count(int(rank)),
            typed.moment(float(when)),
            None if step == b"-" else typed.integer(int(step)),
            None if kills == b"-" else typed.count(int(kills)),
            Writer(pid=record.take("pid", typed.count, 0), **names),
            code[0] if code else None,
        )
    except ValueError:
        return None


def read_or_skip(path: Path) -> Beat | None:
    """Read a heartbeat file; None also where it cannot be read."""
    try:
        return read(path)
    except OSError:
        return None


def exit_code_of(error: SystemExit) -> int:
    """Return the code that Python makes of a SystemExit."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def keep_interrupt_flag() -> None:
    """Let the interpreter end as after Ctrl-C, whatever ran since.

    It keeps a flag for that, and puts it down wherever a text is executed as a program: as any
    module is loaded that makes a named tuple. Executing this text puts it up again.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 - see above; CPython's run_eval_code_obj


def boot() -> str:
    """Return the identifier of this start of the machine; empty where it is unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def namespace() -> str:
    """Return the identifier of the namespace of process numbers; empty where it is unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """Return the start time of a process as comparable text; empty for none and for a dead one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "" if sys.platform == "linux" else _psutil_start_time(pid)
    # The name, in brackets, may hold anything; state is the first field behind it.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZXx" else fields[19]


def _psutil_start_time(pid: int) -> str:
    try:
        import psutil  # noqa: PLC0415 - slow, and not needed on Linux

        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except Exception:  # noqa: BLE001 - no psutil, no such process, no right to look
        return ""


class ExitByte:
    """The C library's stream that gets the exit code as the process ends.

    What is registered with `on_exit` stays so: a stream is used again by the next run.
    """

    @staticmethod
    def is_available() -> bool:
        """Return whether the C library has an `on_exit`."""
        return hasattr(ctypes.CDLL(None), "on_exit")

    def __init__(self) -> None:
        """Open a stream to nowhere. Raises OSError."""
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        libc.fileno.argtypes = [ctypes.c_void_p]
        libc.setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        libc.on_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        stream = libc.fopen(os.devnull.encode(), b"ae")
        if not stream:
            raise OSError("no stream")
        unbuffered = 2  # _IONBF
        libc.setvbuf(stream, None, unbuffered, 0)
        self._file = libc.fileno(stream)
        # int fputc(int, FILE *) has the shape that on_exit calls: the code, then its argument.
        if libc.on_exit(ctypes.cast(libc.fputc, ctypes.c_void_p), stream):
            raise OSError("no more room")

    def point(self, path: Path | str) -> None:
        """Write to the end of this file from now on. Raises OSError."""
        no_link = getattr(os, "O_NOFOLLOW", 0)
        target = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | no_link)
        try:
            os.dup2(target, self._file, inheritable=False)
        finally:
            os.close(target)

    def drop(self) -> None:
        """Write nowhere: this run has ended, or this process is a fork."""
        self.point(os.devnull)
