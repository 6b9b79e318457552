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

from rlvitals.capture import imports, run_folders
from rlvitals.errors import UsageError

# Passed on to the command. A terminal sends the first three to both by itself.
TERMINAL_SIGNALS = ("SIGINT", "SIGQUIT", "SIGHUP")


def check(command: Sequence[str]) -> None:
    """Raise UsageError for a Python that would not load our sitecustomize."""
    if not re.fullmatch(r"python(\d+(\.\d+)?)?(\.exe)?", Path(command[0]).name):
        return
    arguments = iter(command[1:])
    for argument in arguments:
        if not argument.startswith("-") or argument == "-":
            return
        for position, flag in enumerate(argument[1:], start=2):
            # With them Python reads no PYTHONPATH, or no sitecustomize.
            if flag in "ISE" and not argument.startswith("--"):
                raise UsageError(
                    f"python -{flag} does not load what records the program's calls",
                    where=" ".join(command[:3]),
                    hint=f"run it without -{flag}",
                )
            if flag in "cm":  # what follows is the program and its own arguments
                return
            if flag in "WX":  # flags of Python with a value: the rest of the word, or the next one
                if position == len(argument):
                    next(arguments, None)
                break


def environment(
    mode: str, folder: Path, claims: Path, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the command's environment: ours first on PYTHONPATH, and where to record."""
    site = Path(__file__).parent / "site"
    path = os.pathsep.join(filter(None, (str(site), environ.get("PYTHONPATH", ""))))
    return {
        **environ,
        "PYTHONPATH": path,
        imports.CAPTURE_MODE_VARIABLE: mode,
        imports.FOLDER_VARIABLE: str(folder.absolute()),
        run_folders.CLAIMS_VARIABLE: str(claims),
    }


def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command on this terminal; return its exit code, negative for a signal.

    Raises UsageError for a command that cannot be started.
    """
    try:
        child = subprocess.Popen(command, env=environ)  # noqa: S603 - what the user typed
    except OSError as error:
        program = f"python {command[0]}" if command[0].endswith(".py") else "python train.py"
        raise UsageError(
            f"the command cannot be started: {error.strerror}",
            where=command[0],
            hint=f"rlvitals run -- {program}",
        ) from error
    with _passing_on(child):
        return child.wait()


@contextmanager
def _passing_on(child: "subprocess.Popen[Any]") -> Iterator[None]:
    def pass_on(number: int, _: FrameType | None) -> None:
        if signal.Signals(number).name not in TERMINAL_SIGNALS or not _terminal_reaches_both():
            child.send_signal(number)

    names = (*TERMINAL_SIGNALS, "SIGTERM", "SIGUSR1", "SIGUSR2")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
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


def _terminal_reaches_both() -> bool:
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
