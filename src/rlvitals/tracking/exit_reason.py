"""What ended a run, from what its processes noted: their beats, crashes and events."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvitals.storage.events import Event
from rlvitals.tracking import heartbeat
from rlvitals.tracking.heartbeat import EXITING, Beat
from rlvitals.types import Ending, Process

FINISH = ("finish", "exit")  # events that a run ends with
EXCEPTION = "exception"  # an uncaught one
ENDS = frozenset({*FINISH, EXCEPTION, "crash"})  # events that tell of an end
BAD = ("failed", "crashed", "error")  # a status that says that it did not end well
CRASH_LETTERS = 16_000
# What the fault handler calls the fatal signals: Python's `faulthandler_handlers`.
FATAL = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
HEADLINE = re.compile(r"Fatal Python error: (.+)")
# The thread that the signal met comes last, and its innermost call first.
FRAME = re.compile(r'(?:Current thread|Stack) .*\n +File "(.+?)", line (\d+) in (.+)')
ONE_STACK = "Stack (most recent call first)"


@dataclass(frozen=True, slots=True)
class Found:
    """What the processes of the last attempt noted."""

    ending: Ending | None = None  # None while one of them recorded no end
    open: tuple[Process, ...] = ()  # those that did not
    attempt: int = 0  # 0 where nothing was noted


def read(run: Path, events: Iterable[Event], newest: int = 0) -> Found:
    """Say how the last attempt of a run ended, or which of its processes recorded no end.

    One that failed ends the run, whatever the others do. What cannot be read was not noted. Of an
    attempt `newest` of which no process noted anything its events alone tell.
    """
    noted = [one for path in _files(run) if (one := heartbeat.read_or_skip(path)) is not None]
    attempt = max((one.attempt for one in noted), default=0)
    last = [one for one in noted if one.attempt == attempt]
    events = list(events)
    if attempt < newest:
        return Found(_by_events(events, newest), (), newest)
    ends = [(one, _ending(run, one, events)) for one in last]
    failed = [(one, end) for one, end in ends if end is not None and _failed(end)]
    still = tuple(_process(one) for one, end in ends if end is None)
    if failed:
        first, end = min(failed, key=lambda pair: pair[0].time)
        return Found(_named(first, end, len(last)), still, attempt)
    done = [(one, end) for one, end in ends if end is not None]
    if still or not done:
        return Found(None, still, attempt)
    one, end = min(done, key=lambda pair: pair[0].rank)
    return Found(end, (), attempt)


def _files(run: Path) -> list[Path]:
    try:
        return sorted((run / heartbeat.FOLDER).glob("*.beat"))
    except OSError:
        return []


def _failed(end: Ending) -> bool:
    return bool(end.exit_code or end.signal or (end.traceback and not _by_hand(end.traceback)))


def _by_hand(traceback: str) -> bool:
    return traceback.strip().rpartition("\n")[2].startswith("KeyboardInterrupt")


def _named(one: Beat, end: Ending, ranks: int) -> Ending:
    """Say which of several processes it was."""
    if ranks == 1:
        return end
    said = f"rank {one.rank}: {end.reason}"
    return Ending(end.exit_code, end.traceback, end.signal, end.step, said)


def _ending(run: Path, one: Beat, events: Sequence[Event]) -> Ending | None:
    """Put together what one process noted of its end; None where it noted none.

    What a run says of itself comes first, then the exit code, then a signal, then an exception.
    """
    own = [event for event in events if _is_of(event, one)]
    said = next((event for event in reversed(own) if event.kind in FINISH), None)
    raised = next((event for event in reversed(own) if event.kind == EXCEPTION), None)
    trace = _text(raised, "traceback")
    step = max((e.step for e in own if e.step is not None), default=None)
    step = max((s for s in (step, one.step) if s is not None), default=None)
    signal, dump = _crash(run, one)
    status = _text(said, "status")
    if said is not None and status != EXITING:
        return _told(said, status, step)
    if one.exit_code is not None:
        trace = trace if one.exit_code else ""
        after = f" after {signal}" if signal else ""
        return Ending(one.exit_code, trace, "", step, f"exit code {one.exit_code}{after}")
    if signal:
        return Ending(None, dump, signal, step, _ended(signal) + _doing(dump))
    if raised is not None:
        by_hand = _by_hand(trace)
        return Ending(None, trace, "", step, "stopped by hand" if by_hand else "")
    if said is not None:
        return Ending(None, "", "", step, "the program ended")
    return None


def _by_events(events: Iterable[Event], attempt: int) -> Ending | None:
    """Tell how an attempt ended by what it said; of several ranks, by the first that failed."""
    own = [one for one in events if one.facts.get("attempt", attempt) == attempt]
    ends = [_alone(one) for one in own if one.kind in ENDS]
    return next((end for end in ends if _failed(end)), next(iter(ends), None))


def _alone(event: Event) -> Ending:
    """Read an event that is all there is of an end."""
    status = _text(event, "status")
    reason, signal = _text(event, "reason") or status, _text(event, "signal")
    return replace(_told(event, status, event.step), signal=signal, reason=reason)


def _told(event: Event, status: str, step: int | None) -> Ending:
    """Read what a run said as it was finished."""
    code, trace = event.facts.get("exit_code"), _text(event, "traceback")
    if isinstance(code, int) and code:
        return Ending(code, trace, "", step, f"exit code {code}")
    if trace or status in BAD:
        return Ending(None if trace else 1, trace, "", step, status)
    return Ending(0 if status == "finished" or code == 0 else None, "", "", step, status)


def _ended(signal: str) -> str:
    return signal if signal in FATAL.values() else f"ended from outside by {signal}"


def _doing(dump: str) -> str:
    """Say what the main thread of a crash was doing; empty where that is not told."""
    frame = FRAME.search(dump)
    return "" if frame is None else f", in {frame[3]} ({Path(frame[1]).name}:{frame[2]})"


def _crash(run: Path, one: Beat) -> tuple[str, str]:
    """Return the signal that the fault handler wrote of, and what it wrote; empty without one."""
    _, path = heartbeat.paths(run, one.attempt, one.rank)
    try:
        said = path.read_bytes()[:CRASH_LETTERS].decode(errors="replace").strip()
    except OSError:
        return "", ""
    if not said:
        return "", ""
    headline = HEADLINE.search(said)
    if headline is not None:
        word = headline[1].strip()
        # Any other headline is the interpreter's own: it gives up by SIGABRT.
        return FATAL.get(word, "SIGABRT"), said
    return ("SIGHUP" if ONE_STACK in said else "SIGTERM"), said


def _is_of(event: Event, one: Beat) -> bool:
    """Tell the events of a process: an event without a rank is the first one's."""
    said = event.facts
    return said.get("attempt") == one.attempt and said.get("rank", 0) == one.rank


def _text(event: Event | None, name: str) -> str:
    said = None if event is None else event.facts.get(name)
    return said if isinstance(said, str) else ""


def _process(one: Beat) -> Process:
    who = one.writer
    return Process(
        pid=who.pid,
        beat=one.time,
        step=one.step,
        rank=one.rank,
        attempt=one.attempt,
        host=who.host,
        boot=who.boot,
        namespace=who.namespace,
        born=who.born,
        cgroup=who.cgroup,
        kills=one.kills,
    )
