"""Determine how a run ended from the heartbeats, crashes and events of its processes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rlvitals.metrics.ending import is_interrupt
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.events import Event
from rlvitals.tracking import heartbeat
from rlvitals.tracking.heartbeat import EXITING, Beat
from rlvitals.types import STOPPED_BY_HAND, Ending, Process

FINISH_KINDS = ("finish", "exit")  # events that a run ends with
END_KINDS = frozenset({*FINISH_KINDS, "exception", "crash"})  # events that report an end
# What the fault handler calls the fatal signals: Python's `faulthandler_handlers`.
FATAL_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The recorded end of the last attempt."""

    ending: Ending | None = None  # None while one of them recorded no end
    open: tuple[Process, ...] = ()  # those that did not
    attempt: int = 0  # 0 where nothing was noted


def read(run: Path, events: Iterable[Event], newest: int = 0) -> AttemptEnd:
    """Return how the last attempt of a run ended, or which of its processes recorded no end.

    One that failed ends the run, whatever the others do. Unreadable files are skipped. For an
    attempt `newest` without files of its processes, the events decide.
    """
    beats = [beat for path in _files(run) if (beat := heartbeat.read_or_skip(path)) is not None]
    attempt = max((beat.attempt for beat in beats), default=0)
    last = [beat for beat in beats if beat.attempt == attempt]
    events = list(events)
    if attempt < newest:
        # Of several ranks, the first failure.
        attempt_events = [event for event in events if event.facts.get("attempt", newest) == newest]
        event_ends = [
            _ending_from_event(event) for event in attempt_events if event.kind in END_KINDS
        ]
        ending = next((end for end in event_ends if _is_failure(end)), next(iter(event_ends), None))
        return AttemptEnd(ending, (), newest)
    ends = [(beat, _process_ending(run, beat, events)) for beat in last]
    failed = [(beat, end) for beat, end in ends if end is not None and _is_failure(end)]
    open_processes = tuple(_process(beat) for beat, end in ends if end is None)
    if failed:
        first, end = min(failed, key=lambda pair: pair[0].time)
        if len(last) > 1:
            end = replace(end, reason=f"rank {first.rank}: {end.reason}")
        return AttemptEnd(end, open_processes, attempt)
    finished = [(beat, end) for beat, end in ends if end is not None]
    if open_processes or not finished:
        return AttemptEnd(None, open_processes, attempt)
    beat, end = min(finished, key=lambda pair: pair[0].rank)
    return AttemptEnd(end, (), attempt)


def _files(run: Path) -> list[Path]:
    try:
        return sorted((run / heartbeat.HEARTBEAT_FOLDER).glob("*.beat"))
    except OSError:
        return []


def _is_failure(end: Ending) -> bool:
    return bool(end.exit_code or end.signal or (end.traceback and not is_interrupt(end.traceback)))


def _process_ending(run: Path, beat: Beat, events: Sequence[Event]) -> Ending | None:
    """Combine the records of a process's end; None where there are none.

    The run's own status has priority, then the exit code, then a signal, then an exception.
    """
    # An event without a rank is the first process's.
    own_events = [
        event
        for event in events
        if event.facts.get("attempt") == beat.attempt and event.facts.get("rank", 0) == beat.rank
    ]
    finish_event = next(
        (event for event in reversed(own_events) if event.kind in FINISH_KINDS), None
    )
    exception_event = next(
        (event for event in reversed(own_events) if event.kind == "exception"), None
    )
    trace = _text(exception_event, "traceback")
    step = max((e.step for e in own_events if e.step is not None), default=None)
    step = max((s for s in (step, beat.step) if s is not None), default=None)
    signal, dump = _read_crash(run, beat)
    status = _text(finish_event, "status")
    if finish_event is not None and status != EXITING:
        return _finish_ending(finish_event, status, step)
    if beat.exit_code is not None:
        trace = trace if beat.exit_code else ""
        after = f" after {signal}" if signal else ""
        return Ending(beat.exit_code, trace, "", step, f"exit code {beat.exit_code}{after}")
    if signal:
        reason = signal if signal in FATAL_SIGNALS.values() else f"ended from outside by {signal}"
        return Ending(None, dump, signal, step, reason + _crash_location(dump))
    if exception_event is not None:
        return Ending(None, trace, "", step, STOPPED_BY_HAND if is_interrupt(trace) else "")
    if finish_event is not None:
        return Ending(None, "", "", step, "the program ended")
    return None


def _ending_from_event(event: Event) -> Ending:
    """Return the end that a single event reports."""
    status = _text(event, "status")
    reason, signal = _text(event, "reason") or status, _text(event, "signal")
    return replace(_finish_ending(event, status, event.step), signal=signal, reason=reason)


def _finish_ending(event: Event, status: str, step: int | None) -> Ending:
    """Return the end that a run reported as it finished."""
    code, trace = event.facts.get("exit_code"), _text(event, "traceback")
    if isinstance(code, int) and code:
        return Ending(code, trace, "", step, f"exit code {code}")
    if trace or status in ("failed", "crashed", "error"):
        return Ending(None if trace else 1, trace, "", step, status)
    return Ending(0 if status == "finished" or code == 0 else None, "", "", step, status)


def _crash_location(dump: str) -> str:
    """Return where the main thread crashed; empty where that is not known."""
    # The thread that the signal met comes last, and its innermost call first.
    frame = re.search(r'(?:Current thread|Stack) .*\n +File "(.+?)", line (\d+) in (.+)', dump)
    return "" if frame is None else f", in {frame[3]} ({Path(frame[1]).name}:{frame[2]})"


def _read_crash(run: Path, beat: Beat) -> tuple[str, str]:
    """Return the signal and text that the fault handler wrote; empty without a crash."""
    _, path = heartbeat.paths(run, beat.attempt, beat.rank)
    try:
        dump = path.read_bytes()[:16_000].decode(errors="replace").strip()
    except OSError:
        return "", ""
    if not dump:
        return "", ""
    headline = re.search(r"Fatal Python error: (.+)", dump)
    if headline is not None:
        error_name = headline[1].strip()
        # Any other headline is the interpreter's own: it gives up by SIGABRT.
        return FATAL_SIGNALS.get(error_name, "SIGABRT"), dump
    return ("SIGHUP" if "Stack (most recent call first)" in dump else "SIGTERM"), dump


def _text(event: Event | None, name: str) -> str:
    value = None if event is None else event.facts.get(name)
    return value if isinstance(value, str) else ""


def _process(beat: Beat) -> Process:
    writer = beat.writer
    return Process(
        pid=writer.pid,
        beat=beat.time,
        step=beat.step,
        rank=beat.rank,
        attempt=beat.attempt,
        host=writer.host,
        boot=writer.boot,
        namespace=writer.namespace,
        born=writer.born,
        cgroup=writer.cgroup,
        kills=beat.kills,
    )
