"""End the processes of a recorded run on this machine: SIGTERM, then SIGKILL."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping

from rlvitals.errors import UsageError
from rlvitals.storage import events
from rlvitals.storage.run_folder import RunFolder
from rlvitals.tracking import exit_reason, liveness, requests
from rlvitals.types import Process

Descriptors = Mapping[int, int]  # of processes, by their number
Report = Callable[[str, int], None]  # of a signal that is sent, to how many processes


def kill(folder: RunFolder, grace_s: float) -> dict[int, str]:
    """Return the signal after which each process ended, by its number.

    A process has `grace_s` seconds after SIGTERM; one that runs on after SIGKILL is left out.
    Raises what `ask` raises.
    """
    return end(ask(folder), grace_s)


def ask(folder: RunFolder) -> Descriptors:
    """Record the request, and return the open descriptors of the run's processes, for `end`.

    A process is opened before it is checked, so that no other one that got its number is hit; this
    is of Linux. Raises UsageError where the run has ended or none of its processes can be seen from
    here, OSError.
    """
    requests.check_running(folder)
    descriptors = {
        process.pid: descriptor
        for process in _visible_processes(folder)
        if (descriptor := _find_descriptor(process)) is not None
    }
    if not descriptors:
        raise UsageError(
            "no process of this run can be seen on this machine",
            where=str(folder.path),
            hint="on the machine, and in the container, that trains",
        )
    try:
        requests.ask(folder.path, "kill")
    except BaseException:
        _close(descriptors)
        raise
    return descriptors


def end(descriptors: Descriptors, grace_s: float, report: Report | None = None) -> dict[int, str]:
    """End processes that `ask` returned, as `kill` does, and close their descriptors.

    `report` is called before each signal. Raises OSError.
    """
    signals: dict[int, str] = {}
    try:
        time.sleep(1.0)  # the recorder writes the request as an event
        # The system takes some seconds to end a process.
        for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
            remaining = {pid: fd for pid, fd in descriptors.items() if pid not in signals}
            if remaining and report is not None:
                report(number.name, len(remaining))
            signals |= dict.fromkeys(_end(remaining, number, seconds), number.name)
    finally:
        _close(descriptors)
    return signals


def _close(descriptors: Descriptors) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)


def has_process(folder: RunFolder) -> bool:
    """Return whether a process of the run's last attempt runs on this machine. Raises OSError."""
    return any(map(liveness.is_running, _visible_processes(folder)))


def _visible_processes(folder: RunFolder) -> list[Process]:
    """Return the open processes that can be seen on this machine, without this one."""
    processes = exit_reason.read(folder.path, events.read(folder.events_path).events).open
    return [
        process
        for process in processes
        if liveness.is_visible(process) and process.pid != os.getpid()
    ]


def _find_descriptor(process: Process) -> int | None:
    """Return a descriptor of a visible process; None where it has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if liveness.is_running(process):
        return descriptor
    os.close(descriptor)
    return None


def _end(descriptors: Descriptors, number: signal.Signals, grace_s: float) -> list[int]:
    """Send a signal and return the processes that ended within the grace period."""
    for descriptor in descriptors.values():
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            signal.pidfd_send_signal(descriptor, number)
    deadline = time.monotonic() + grace_s
    pids = []
    for pid, descriptor in descriptors.items():
        poll = select.poll()  # a server has more descriptors than the 1,024 that `select` takes
        poll.register(descriptor, select.POLLIN)
        pids += [pid] if poll.poll(1e3 * max(0.0, deadline - time.monotonic())) else []
    return pids
