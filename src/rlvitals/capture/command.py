"""Run a command whose Python processes record, and pass signals and its exit code through."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rlvitals.capture import imports, recorder
from rlvitals.errors import UsageError

SITE_FOLDER = Path(__file__).parent / "site"
PYTHON = re.compile(r"python(\d+(\.\d+)?)?(\.exe)?")
# Flags of Python that take an argument: the next word is no script.
ARGUMENT_FLAGS = ("W", "X")
DEAF_FLAGS = "ISE"  # with them Python reads no PYTHONPATH, or no sitecustomize
# Passed on to the command. A terminal sends the first three to both by itself.
TERMINAL_SIGNALS = ("SIGINT", "SIGQUIT", "SIGHUP")
SIGNALS = (*TERMINAL_SIGNALS, "SIGTERM", "SIGUSR1", "SIGUSR2")


def check(command: Sequence[str]) -> None:
    """Raise UsageError for a Python that would not load our sitecustomize."""
    if not PYTHON.fullmatch(Path(command[0]).name):
        return
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word in {"-", "-m", "-c"}:
            return
        flags = word[1:]
        if not word.startswith("--") and (deaf := next((f for f in flags if f in DEAF_FLAGS), "")):
            raise UsageError(
                f"python -{deaf} does not load what records the program's calls",
                where=" ".join(command[:3]),
                hint=f"run it without -{deaf}",
            )
        if flags in ARGUMENT_FLAGS:
            next(words, None)


def environment(
    mode: str, folder: Path, claims: Path, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the command's environment: ours first on PYTHONPATH, and where to record."""
    path = os.pathsep.join(filter(None, (str(SITE_FOLDER), environ.get("PYTHONPATH", ""))))
    return {
        **environ,
        "PYTHONPATH": path,
        imports.MODE_VARIABLE: mode,
        recorder.FOLDER_VARIABLE: str(folder.absolute()),
        recorder.CLAIMS_VARIABLE: str(claims),
    }


def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command on this terminal; return its exit code, negative for a signal.

    Raises UsageError for a command that cannot be started.
    """
    try:
        child = subprocess.Popen(command, env=environ)  # noqa: S603 - what the user typed
    except OSError as error:
        raise UsageError(
            f"the command cannot be started: {error.strerror}", where=command[0]
        ) from error
    with _passing_on(child):
        return child.wait()


@contextmanager
def _passing_on(child: "subprocess.Popen[Any]") -> Iterator[None]:
    def pass_on(number: int, _: FrameType | None) -> None:
        if signal.Signals(number).name not in TERMINAL_SIGNALS or not _in_foreground():
            child.send_signal(number)

    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    handlers = {
        number: signal.signal(number, pass_on)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Return whether a terminal sends its signals to this process and to the command."""
    try:
        with Path("/dev/tty").open() as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def end_like(code: int) -> int:
    """Return an exit code; end this process by the same signal where a signal ended the command."""
    if code >= 0:
        return code
    number = -code
    try:
        import resource  # noqa: PLC0415 - not on all systems

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own dump is enough
        sys.stdout.flush()
        sys.stderr.flush()
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    except (ImportError, OSError, ValueError):
        pass
    return 128 + number  # as a shell says it
