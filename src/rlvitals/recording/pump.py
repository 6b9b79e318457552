"""The thread that owns a run's sinks: it takes what the loop logged and hands it on."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from rlvitals.recording.batches import FIELDS, Batcher
from rlvitals.recording.gate import Gate, Names, NativeGate
from rlvitals.recording.notes import Notes
from rlvitals.recording.outlet import Outlet
from rlvitals.recording.sinks.sink import Rows, Writing

BURST_ROWS = 1200  # logged faster than flushed: laid out in about 1.5 ms for 20 numbers a row
MAX_ROWS = 65_536  # kept while the disk blocks: some 100 MB of 20 numbers a row
MAX_MESSAGES = 10_000
STUCK = 2.0  # seconds that a durable log waits for another thread's write
PATIENCE = 0.005  # seconds that a loop faster than its recorder lets it catch up

Message = Callable[[Writing], None]


class Lock(Protocol):
    """What `threading.Lock` returns: released and acquired without Python code in between."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:  # noqa: FBT001 - its own
        """Take it."""

    def release(self) -> None:
        """Give it back."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What a caller waits for."""

    done: Lock
    status: str | None = None  # of a run that ends with this
    all_sinks: bool = True


class Keeping(Writing, Protocol):
    """The native sink: it keeps what the disk does not take, and counts what it gave up."""

    def row(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Write a row on the caller's own thread, where nothing waits before it."""

    def rename(self, names: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        """Write single rows under other names."""

    @property
    def dropped(self) -> int:
        """Rows given up."""


class Pump:
    """Takes rows and messages from any thread and hands them to the sinks from its own.

    Nothing here holds a lock while a signal's handler may come and want the same one: callers
    append to a list and a deque, and put orders into a SimpleQueue, which may be interrupted.
    """

    def __init__(
        self,
        native: Keeping,
        others: Sequence[tuple[str, Writing]],
        notes: Notes,
        flush_seconds: float,
    ) -> None:
        """Own the sinks from now on; `start` begins."""
        self.rows: list[object] = []  # step, time, dict, None; step, time, dict, None; ...
        self.gather: Callable[[], object] = int  # brings rows that wait elsewhere; this: nothing
        self.written: list[object] = []  # rows that the native sink has: they are the others' still
        self.limit = FIELDS * BURST_ROWS
        self.messages: deque[Message] = deque()
        self.notes = notes
        self.spent = 0.0  # CPU seconds of the thread
        self.last_step: int | None = None  # of rows that were taken
        self.chores: list[Callable[[], object]] = []  # done each time the thread wakes
        self.beside: Callable[[], Mapping[str, float]] = dict  # what is logged with the last row
        names = Names()  # of all gates: every sink writes a metric under the same name
        self._native = NativeGate(native, names)
        self._outlets = [Outlet(name, Gate(writing, names), notes) for name, writing in others]
        self._seconds = flush_seconds
        self._batcher = Batcher(notes)
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._room = threading.Lock()
        self._room.acquire()
        self._writing = False
        self._awaited = False  # a caller waits for room
        self._tried = 0  # items that waited when a caller gave up
        self._stuck = False  # whether a durable caller gave up on the write that is under way
        self._dropped = 0  # rows that the native sink gave up, as far as noted
        self._pid = os.getpid()
        self._ended = True
        self.closed = False
        self._thread = threading.Thread(target=self._run, name="rlvitals", daemon=True)

    def start(self) -> None:
        """Begin."""
        for outlet in self._outlets:
            outlet.start()
        self._ended = False
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread is there to take rows: not in a forked child."""
        # Not `Thread.is_alive`: interrupted by an exception it takes a thread for ended (3.11).
        return not self._ended and os.getpid() == self._pid

    def catch_up(self) -> None:
        """Let the thread lay out what waits, for a moment; without room, drop the newest rows."""
        waiting = len(self.rows) + len(self.written)
        if (over := waiting - FIELDS * MAX_ROWS) > 0:
            rows = self.rows or self.written
            lost = min(over, len(rows)) // FIELDS
            del rows[-over:]
            self.notes.add("rows lost: the disk blocked for too long", lost)
        if self._writing or not self.alive or self._tried <= waiting < self._tried + self.limit:
            return
        self._tried = 0
        self._awaited = True
        self._orders.put(None)
        # The further behind, the longer: the thread may be short of a processor.
        if not self._room.acquire(timeout=PATIENCE * waiting / self.limit):
            self._tried = waiting  # once more only after as many rows again
        self._awaited = False

    def send(self, message: Message) -> None:
        """Hand a call on to every sink at the next flush."""
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(message)
        else:
            self.notes.add("histograms, texts or events dropped: the disk took none for too long")

    def at_once(self, step: int, moment: float, row: Mapping[str, object]) -> bool:
        """Write a row before this returns, on the caller's own thread; False where others wait."""
        if self.rows or not self._native.row(step, moment, row):
            return False
        self.last_step = step
        self.written += (step, moment, row, None)
        if len(self.written) > self.limit:
            self.catch_up()
        return True

    def through(self) -> None:
        """Wait until what is logged by now is with the system: the durable way."""
        if self._stuck:
            self.notes.add("a durable row waits in memory: the disk blocks")
        elif not self._order(None, STUCK, all_sinks=False) and self.alive:
            self._stuck = True

    def flush(self, timeout: float) -> bool:
        """Wait until what is logged by now is with the system; False where that takes longer."""
        return self._order(None, timeout)

    def close(self, status: str, timeout: float) -> bool:
        """Hand on what waits, close the sinks, end the thread. May be called again."""
        return self.closed or self._order(status, timeout)

    def _order(self, status: str | None, timeout: float, *, all_sinks: bool = True) -> bool:
        if not self.alive:
            return False
        done = threading.Lock()
        done.acquire()
        self._orders.put(_Order(done, status, all_sinks))
        return done.acquire(timeout=timeout)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended = True

    def _work(self) -> None:
        status = None
        due = looked = time.monotonic() + self._seconds
        while status is None:
            order = None
            with suppress(Empty):
                order = self._orders.get(timeout=max(due - time.monotonic(), 0.0))
            if order is None or order.all_sinks or time.monotonic() >= looked:
                self._do_chores()
                looked = time.monotonic() + self._seconds
            self._safely(self._cycle)
            if order is not None:
                status = order.status
                self._settle(order)
            due = time.monotonic() + self._seconds
            self.spent = time.thread_time()

    def _do_chores(self) -> None:
        for chore in list(self.chores):
            self._safely(chore)

    def _safely(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the recorder goes on: it counts
            self.notes.add(f"not done: {type(error).__name__}: {error}")

    def _cycle(self) -> None:
        try:
            self._take()
            self._writing = True
            with suppress(RuntimeError):  # nobody waits
                self._room.release()
            self._flush_native()
        finally:
            self._writing = self._stuck = False

    def _settle(self, order: _Order) -> None:
        if order.status is not None:
            self._safely(partial(self._close, order.status))
        elif order.all_sinks:
            for outlet in self._outlets:
                outlet.flush()
        order.done.release()

    def _take(self) -> None:
        """Hand what is logged by now to the sinks."""
        self.gather()
        flat, written = self.rows[:], _taken(self.written)
        if (
            flat
        ):  # said before they are gone: whoever counts on from the last finds it here or there
            self.last_step = flat[-FIELDS]  # type: ignore[assignment]
        del self.rows[: len(flat)]
        if flat or written:
            self._stand_beside(flat, flat or written)
        if self._outlets:
            for rows in self._batcher.rows(written, gently=not self._awaited):
                self._others_do(partial(_scalars, rows), len(rows))
        for rows in self._batcher.rows(flat, gently=not self._awaited):
            self._each(partial(_scalars, rows), len(rows))
        for _ in range(len(self.messages)):
            self._each(self.messages.popleft())

    def _stand_beside(self, flat: list[object], logged: list[object]) -> None:
        """Add a row at the step logged last: what the machine did until then."""
        if measured := self.beside():
            step, moment, *_ = logged[-FIELDS:]
            flat += (step, moment, dict(measured), None)

    def _each(self, call: Message, weight: int = 1) -> None:
        self._native_does(call)
        self._others_do(call, weight)

    def _others_do(self, call: Message, weight: int) -> None:
        for outlet in self._outlets:
            outlet.put(call, weight)

    def _native_does(self, call: Message) -> None:
        try:
            call(self._native)
        except OSError as error:
            self.notes.add(f"the disk takes no rows: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - the recorder never raises: it counts
            self.notes.add(f"not recorded: {type(error).__name__}: {error}")

    def _flush_native(self) -> None:
        self._native_does(lambda native: native.flush())
        if (lost := self._native.dropped) > self._dropped:
            self.notes.add("rows lost: the disk was full for too long", lost - self._dropped)
            self._dropped = lost
        self._say(self.notes.news())

    def _say(self, news: list[tuple[str, int]]) -> None:
        for text, count in news:
            self._native_does(partial(_note, {"text": text, "count": count}))
            self.notes.said(text, count)

    def _close(self, status: str) -> None:
        self._take()
        for outlet in self._outlets:
            outlet.close(status)
        for outlet in self._outlets:
            outlet.join()
        self._say(self.notes.rest())
        self._native_does(lambda native: native.close(status))
        self.closed = True


def _taken(rows: list[object]) -> list[object]:
    """Take what a list holds by now; others may append to it meanwhile."""
    taken = rows[:]
    del rows[: len(taken)]
    return taken


def _scalars(rows: Rows, writing: Writing) -> None:
    writing.scalars(rows)


def _note(facts: Mapping[str, object], writing: Writing) -> None:
    writing.event("note", None, facts)
