"""Find out whether a process that recorded no end still lives, or why it ended."""

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking import clock, heartbeat, machine
from rlvitals.types import Process

LOST_SECONDS = 300.0  # without a beat, 30 of them: gone, where the process itself cannot be seen
KERNEL_LOG = Path("/dev/kmsg")
NO_END_REASON = "killed or lost: no end was recorded"
OUT_OF_MEMORY_REASON = "killed for want of memory"


@dataclass(frozen=True, slots=True)
class Presence:
    """The state of the processes of a run that recorded no end."""

    alive: bool | None = None  # False once one of them has ended; None where unknown
    lost: str = ""  # in words, where one is gone
    step: int | None = None  # the last of the one that is gone
    beat_age: float | None = None  # seconds since the newest heartbeat, where all are alive


def check_processes(
    processes: Sequence[Process],
    time_now: float,
    last_row: float | None = None,
    *,
    live: bool = False,
) -> Presence:
    """Look for processes on this machine, and elsewhere by their heartbeats.

    `now` and `last_row`, the wall time of the newest row, are seconds since the epoch. `live`: a
    user declares that the run continues, so that an old heartbeat is that of a copy.
    """
    if not processes:
        return Presence()
    states = [
        (process, _check_process(process, time_now, last_row, live=live)) for process in processes
    ]
    dead = [(process, reason) for process, (alive, reason) in states if alive is False]
    if dead:
        process, reason = min(dead, key=lambda pair: pair[0].beat)
        prefix = f"rank {process.rank} " if len(processes) > 1 or process.rank else ""
        return Presence(False, f"{prefix}{reason}", process.step)
    if not all(alive for _, (alive, _) in states):
        return Presence()
    return Presence(True, beat_age=max(0.0, time_now - max(process.beat for process in processes)))


def is_visible(process: Process) -> bool:
    """Return whether a process would be seen from here: same machine, start and namespace."""
    boot = heartbeat.boot()
    return bool(boot) and process.boot == boot and process.namespace == heartbeat.namespace()


def is_running(process: Process) -> bool:
    """Return whether a visible process runs; its number may be another's by now."""
    born = heartbeat.start_time(process.pid)
    return bool(born) and (not process.born or born == process.born)


def _check_process(
    process: Process, time_now: float, last_row: float | None, *, live: bool
) -> tuple[bool | None, str]:
    if is_visible(process):
        return (True, "") if is_running(process) else (False, _cause(process))
    boot = heartbeat.boot()
    if boot and process.boot and process.boot != boot and process.host == socket.gethostname():
        return False, f"{NO_END_REASON}; the machine has been started again since"
    silence_s = time_now - process.beat  # below 0 where the clocks differ
    if abs(silence_s) < LOST_SECONDS / 2:
        return True, ""
    # Rows that are much newer than the heartbeat: the file of heartbeats was not copied with them.
    torn = last_row is not None and last_row - process.beat > LOST_SECONDS
    if live or torn or silence_s <= LOST_SECONDS:
        return None, ""
    return False, f"{NO_END_REASON}; {_last_beat(process, last_row)}"


def _last_beat(process: Process, last_row: float | None) -> str:
    """Format the time of the last heartbeat, as a date and relative to the last row."""
    origin = f" from {process.host}" if process.host else ""
    text = f"last heartbeat{origin} at {clock.date(process.beat)}"
    delay_s = None if last_row is None else process.beat - last_row
    if delay_s is None or delay_s < LOST_SECONDS:
        return text
    return f"{text}, {delay_s / 60:.0f} min after the last row"


def _cause(process: Process) -> str:
    """Return why a process of this machine ended: out of memory, where the kernel reports it."""
    if process.kills is not None and process.cgroup:
        kills = machine.kills(Path(process.cgroup))
        if kills is not None and kills > process.kills:
            return f"{OUT_OF_MEMORY_REASON}: its group's limit was reached"
    # The kernel's log says which processes it killed; it is empty without access.
    beat_uptime = _since_boot(process.beat)
    matches = re.finditer(r"^\d+,\d+,(\d+),.*Killed process (\d+)\b", _kernel_log(), re.MULTILINE)
    if any(
        int(match[2]) == process.pid
        and (beat_uptime is None or int(match[1]) / 1e6 > beat_uptime - LOST_SECONDS)
        for match in matches
    ):
        return f"{OUT_OF_MEMORY_REASON}, says the kernel's log"
    return NO_END_REASON


def _since_boot(moment: float) -> float | None:
    """Return a time in seconds since this machine started; None where that is unknown."""
    try:
        text = Path("/proc/stat").read_text()
    except OSError:
        return None
    match = re.search(r"^btime (\d+)$", text, re.MULTILINE)
    return moment - float(match[1]) if match else None


def _kernel_log() -> str:
    """Return the kernel's log, as far as it can be read without waiting."""
    try:
        file = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, AttributeError):
        return ""
    data = b""
    try:
        while len(data) < 4 << 20 and (line := os.read(file, 8192)):
            data += line
    except OSError:  # nothing more for now
        pass
    finally:
        os.close(file)
    return data.decode(errors="replace")
