"""Other processes that record into the same run folder now, by their signs of life."""

import os
from pathlib import Path

from rlvitals.tracking import heartbeat, liveness
from rlvitals.tracking.heartbeat import Beat
from rlvitals.types import Process


class OtherProcesses:
    """Watches the other attempts of a run; `look` is to be called now and then."""

    def __init__(self, folder: Path, attempt: int) -> None:
        """Watch from now on, as an attempt of the run."""
        self._folder, self._attempt = folder, attempt
        self._beats: dict[int, tuple[float, int]] = {}  # attempt: its last beat, how many came

    def look(self) -> list[Beat]:
        """Return the processes that have become certain since the last call."""
        certain = []
        for beat in _beats(self._folder):
            is_own = beat.attempt == self._attempt or _is_this_process(beat)
            if is_own or beat.writer.pid == 0:
                continue
            time, count = self._beats.get(beat.attempt, (beat.time, 0))
            if beat.time != time:
                count += 1
                if count == 2:  # the last one may be its end
                    certain.append(beat)
            self._beats[beat.attempt] = beat.time, count
        return certain


def _is_this_process(beat: Beat) -> bool:
    writer = beat.writer
    same_machine = writer.boot == heartbeat.boot() and writer.namespace == heartbeat.namespace()
    return writer.pid == os.getpid() and same_machine


def recording(folder: Path, time_now: float) -> tuple[Beat, ...]:
    """Return the newest beat of each process that records into a run's folder now."""
    newest: dict[tuple[str, str, str, int], Beat] = {}
    for beat in _beats(folder):
        is_fresh = beat.exit_code is None and time_now - beat.time < 30.0  # three beats
        if is_fresh and _is_alive(beat, time_now):
            writer = beat.writer  # a process may record several attempts, one after the other
            newest[writer.host, writer.boot, writer.namespace, writer.pid] = beat
    return tuple(newest.values())


def _is_alive(beat: Beat, time_now: float) -> bool:
    writer = beat.writer
    process = Process(
        writer.pid,
        beat.time,
        host=writer.host,
        boot=writer.boot,
        namespace=writer.namespace,
        born=writer.born,
    )
    return liveness.check_processes((process,), time_now).alive is True


def _beats(folder: Path) -> list[Beat]:
    """Read the signs of life of the newest attempts' first processes, the oldest first."""
    paths = {}
    try:
        for path in (folder / heartbeat.HEARTBEAT_FOLDER).glob("*-0.beat"):
            number = path.stem.partition("-")[0]
            if number.isdecimal():
                paths[int(number)] = path
    except OSError:
        return []
    newest = (heartbeat.read_or_skip(paths[number]) for number in sorted(paths)[-8:])
    return [beat for beat in newest if beat is not None]
