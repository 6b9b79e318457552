"""The thread that takes the logged rows and passes them to the sinks of a run."""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking.last_values import LastValues
from rlvitals.tracking.lost_rows import Losses, LossReason
from rlvitals.tracking.redaction import Gate, Names, NativeGate, NativeSink
from rlvitals.tracking.row_batches import ROW_FIELDS, Batcher
from rlvitals.tracking.sink_worker import SinkWorker
from rlvitals.tracking.sinks.sink import OpenSink, Rows
from rlvitals.tracking.warnings_log import Notes, error_text

# Of a pending row, of each number in its dict, of a call without its content.
ROW_BYTES, NUMBER_BYTES, MESSAGE_BYTES = 200, 100, 500
MAX_CATCH_UP_SECONDS = 0.25  # seconds that such a loop waits where the budget is half used

Message = Callable[[OpenSink], None]


class Lock(Protocol):
    """The interface of `threading.Lock`: acquired and released without Python code in between."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:  # noqa: FBT001 - its own
        """Take it."""

    def release(self) -> None:
        """Give it back."""


@dataclass(frozen=True, slots=True)
class _Order:
    """A request of a caller that waits for the thread."""

    lock: Lock
    status: str | None = None  # of a run that ends with this
    all_sinks: bool = True
    written: list[bool] = field(default_factory=list)  # the answer: whether all is with the system


class WriterThread:
    """Takes rows and messages from any thread and passes them to the sinks on its own.

    Nothing here holds a lock while a signal's handler may come and want the same one: callers
    append to a list and a deque, and put orders into a SimpleQueue, which may be interrupted.
    """

    def __init__(
        self, native: NativeSink, sinks: Sequence[tuple[str, OpenSink]], notes: Notes,
        flush_seconds: float, budget: Budget | None = None,
    ) -> None:  # fmt: skip
        """Take over the sinks; `start` begins."""
        self.rows: list[object] = []  # step, time, dict, None; step, time, dict, None; ...
        self.gather: Callable[[], object] = int  # brings rows that wait elsewhere; this: nothing
        self.written: list[object] = []  # rows that the native sink has: they are the others' still
        self.limit = ROW_FIELDS * 1200  # laid out in about 1.5 ms for 20 numbers a row
        self.messages: deque[tuple[int, Message]] = deque()  # bytes and call
        self.budget = Budget() if budget is None else budget
        self.notes = notes
        self.losses = Losses(notes)
        self.spent = 0.0  # CPU seconds of the thread
        self.last_step: int | None = None  # of rows that were taken
        self.chores: list[Callable[[], object]] = []  # done each time the thread wakes
        self.measure_machine: Callable[[], Mapping[str, float]] = (
            dict  # what is logged with the last row
        )
        names = Names()  # of all gates: every sink writes a metric under the same name
        self._native = NativeGate(native, names)
        gates = ((name, Gate(writing, names)) for name, writing in sinks)
        self._outlets = [SinkWorker(name, gate, notes, self.budget) for name, gate in gates]
        self._seconds = flush_seconds
        self._batcher, self._latest = Batcher(notes), LastValues()
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._room = threading.Lock()
        self._room.acquire()
        self._taking = threading.Lock()  # held while rows leave a list
        self._writing_since = 0.0  # by the monotonic clock; 0: not writing
        self._awaited = False  # a caller waits for room
        self._tried = 0  # items that waited when a caller gave up
        self._stuck = False  # whether a durable caller gave up on the write that is under way
        self._failed = False  # whether the native sink raised since the last answer to `flush`
        self._dropped: Counter[str] = Counter()  # what the native sink gave up, as far as counted
        self._lost_before = 0  # losses at the last answer to `flush`
        self._pid = os.getpid()
        self._ended = True
        self.closed = False
        self._thread = threading.Thread(target=self._run, name="rlvitals", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        for outlet in self._outlets:
            outlet.start()
        self._ended = False
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread can take rows: not in a forked child."""
        # Not `Thread.is_alive`: interrupted by an exception it takes a thread for ended (3.11).
        return not self._ended and os.getpid() == self._pid

    def catch_up(self) -> None:
        """Let the thread process pending rows for a moment; without room, drop the newest rows."""
        waiting = len(self.rows) + len(self.written)
        # As many items of rows may wait as there is room for, were all as large as the newest.
        newest = (self.rows or self.written)[-ROW_FIELDS:]
        row = newest[2] if len(newest) == ROW_FIELDS else ()
        size = len(row) if isinstance(row, bytes) else NUMBER_BYTES * len(row)  # type: ignore[arg-type]
        room = ROW_FIELDS * max((self.budget.limit - self.budget.used) // (ROW_BYTES + size), 1)
        tried = self._tried <= waiting < self._tried + self.limit
        if self.alive and not self._is_blocked and not tried:
            if 2 * waiting > room:
                self._wait_for_room(room)
            elif not self._writing_since:
                self._tried = 0
                self._awaited = True
                self._orders.put(None)
                # The further behind, the longer: the thread may be short of a processor.
                if not self._room.acquire(
                    timeout=min(0.005 * waiting / self.limit, MAX_CATCH_UP_SECONDS)
                ):
                    self._tried = waiting  # once more only after as many rows again
                self._awaited = False
        if len(self.rows) + len(self.written) > room:
            # Not waited for: a signal's handler may log while its thread is in here.
            if not self._taking.acquire(blocking=False):
                return
            try:
                rows = self.rows or self.written
                excess = min(len(self.rows) + len(self.written) - room, len(rows))
                if excess > 0:
                    del rows[-excess:]
                    self.losses.add(
                        "rows",
                        excess // ROW_FIELDS,
                        LossReason.BLOCKED if self._is_blocked else LossReason.TOO_FAST,
                    )
            finally:
                self._taking.release()

    def _wait_for_room(self, room: int) -> None:
        """Sleep, so that the thread has a processor: every caller, where many log."""
        self._orders.put(None)
        deadline = time.monotonic() + MAX_CATCH_UP_SECONDS
        while 2 * (waiting := len(self.rows) + len(self.written)) > room:
            if time.monotonic() > deadline:
                self._tried = waiting  # once more only after as many rows again
            if self._tried == waiting or self._is_blocked or not self.alive:
                return
            time.sleep(0.002)
        self._tried = 0

    @property
    def _is_blocked(self) -> bool:
        start = self._writing_since
        # A write of 0.2 s: the disk is blocked, and callers do not wait.
        return bool(start) and time.monotonic() > start + 0.2

    def send(self, message: Message, kind: str = "events", size: int = 0) -> None:
        """Queue a call for every sink at the next flush; `size`: bytes of its content."""
        size += MESSAGE_BYTES
        # Texts, tables and histograms fill at most 75 % of the budget.
        if self.budget.fits(size, 1.0 if kind in {"events", "settings"} else 0.75):
            self.budget.used += size
            self.messages.append((size, message))
        else:
            self.losses.add(kind, 1, LossReason.BLOCKED if self._is_blocked else LossReason.FULL)

    def end(self, message: Message) -> None:
        """Queue the last call of a run, even where the budget is used up."""
        self.messages.append((0, message))

    def write_now(self, step: int, moment: float, row: Mapping[str, object]) -> bool:
        """Write a row on the caller's thread; False where other rows are pending."""
        if self.rows or not self._native.row(step, moment, row):
            return False
        self.last_step = step
        self.written += (step, moment, row, None)
        if len(self.written) > self.limit:
            self.catch_up()
        return True

    def wait_durable(self) -> None:
        """Wait until all logged data is with the system, for durable runs."""
        if self._stuck:
            self.notes.add("a durable row waits in memory: the disk blocks")
        elif not self._order(None, 2.0, all_sinks=False) and self.alive:
            # Another thread's write may take 2 s.
            self._stuck = True

    def last_values(self) -> dict[str, float]:
        """Return the last value of each logged metric, whether it is written or waits."""
        self.gather()
        return self._latest.read(self.written + self.rows)

    def flush(self, timeout: float) -> bool:
        """Wait until all logged data is with the system; return whether it is."""
        return self._order(None, timeout)

    def close(self, status: str, timeout: float) -> bool:
        """Write what is pending, close the sinks and end the thread. May be called again."""
        self._order(status, timeout)
        return self.closed

    def _order(self, status: str | None, timeout: float, *, all_sinks: bool = True) -> bool:
        (lock := threading.Lock()).acquire()
        order, deadline = _Order(lock, status, all_sinks), time.monotonic() + timeout
        if self.alive:
            self._orders.put(order)
        while self.alive and time.monotonic() < deadline:
            # A caller that waits checks each second that the thread is alive.
            if lock.acquire(timeout=min(max(0.0, deadline - time.monotonic()), 1.0)):
                return all(order.written)
        return self.closed and not self.losses.total

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended = True

    def _work(self) -> None:
        status = None
        deadline = looked = time.monotonic() + self._seconds
        while status is None:
            order = None
            with suppress(Empty):
                order = self._orders.get(timeout=max(deadline - time.monotonic(), 0.0))
            deadline = time.monotonic() + self._seconds  # of rows that are logged while it writes
            if order is None or order.all_sinks or time.monotonic() >= looked:
                for chore in list(self.chores):
                    self._safely(chore)
                looked = deadline
            self._safely(self._cycle)
            if order is not None:
                status = order.status
                self._answer(order)
            self.spent = time.thread_time()

    def _safely(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the recorder continues and counts
            self.notes.add(f"not done: {error_text(error)}")

    def _cycle(self) -> None:
        try:
            self._take()
            with suppress(RuntimeError):  # nobody waits
                self._room.release()
            self._write()
            self._count_drops()
            self._say(self.notes.news())
        finally:
            self._stuck = False

    def _answer(self, order: _Order) -> None:
        if order.status is not None:
            self._safely(partial(self._close, order.status))
            self._ended = True  # before the caller goes on, who may ask for more
        elif order.all_sinks:
            for outlet in self._outlets:
                outlet.flush()
            # Nothing is pending and nothing was lost since the last call.
            new_losses, self._lost_before = self.losses.total - self._lost_before, self.losses.total
            failed, self._failed = self._failed, False
            is_complete = not (new_losses or failed or self._native.pending)
            order.written.append(is_complete)
        order.lock.release()

    def _take(self) -> None:
        """Pass all logged data to the sinks, in chunks of rows."""
        self.gather()
        remaining, is_first = len(self.rows), True
        while remaining > 0 or is_first:
            with self._taking:
                # So many at once: they are in memory twice.
                flat, written = self.rows[: ROW_FIELDS * 65_536], self.written[:]
                if flat:  # said before they are gone: who counts on finds it here or there
                    self.last_step = flat[-ROW_FIELDS]  # type: ignore[assignment]
                self._latest.taken = (written, flat)
                del self.rows[: len(flat)]
                del self.written[: len(written)]
            remaining -= len(flat)
            if (flat or written) and is_first:
                self._add_machine_row(flat, flat or written)
            is_first = False
            self._latest.keep_flat(written)
            if self._outlets:
                for rows in self._batcher.rows(written, gently=not self._awaited):
                    self._others_do(partial(_scalars, rows), _size(rows), len(rows))
            for rows in self._batcher.rows(flat, gently=not self._awaited):
                self._latest.keep(rows)
                self._native_does(partial(_scalars, rows))
                self._others_do(partial(_scalars, rows), _size(rows), len(rows))
            self._latest.taken = ()
            if remaining > 0:
                self._write()
        for _ in range(len(self.messages)):
            size, message = self.messages.popleft()
            self.budget.used -= size
            self._native_does(message)
            self._others_do(message, size)

    def _add_machine_row(self, flat: list[object], logged: list[object]) -> None:
        """Add a row with the machine's measurements at the last step."""
        if measured := self.measure_machine():
            step, moment, *_ = logged[-ROW_FIELDS:]
            flat += (step, moment, dict(measured), None)

    def _others_do(self, call: Message, size: int, rows: int = 1) -> None:
        for outlet in self._outlets:
            outlet.put(call, size, rows)

    def _native_does(self, call: Message) -> None:
        try:
            call(self._native)
        except OSError as error:
            self._failed = True
            text = f"the disk takes no rows: {error.strerror or error}"
            self.losses.warn(text, f"up to {self.budget.limit >> 20} MiB wait in memory")
        except Exception as error:  # noqa: BLE001 - the recorder never raises: it counts
            self._failed = True
            self.notes.add(f"not recorded: {error_text(error)}")

    def _write(self) -> None:
        self._writing_since = time.monotonic()
        try:
            self._native_does(lambda native: native.flush())
        finally:
            self._writing_since = 0.0

    def _count_drops(self) -> None:
        dropped = self._native.dropped
        for kind, count in (dropped - self._dropped).items():
            self.losses.add(kind, count, LossReason.FULL)
        self._dropped = dropped

    def _say(self, news: list[tuple[str, int]]) -> None:
        for text, count in news:
            self._native_does(partial(_note, {"text": text, "count": count}))
            self.notes.remember(text, count)

    def _close(self, status: str) -> None:
        self._take()
        for outlet in self._outlets:
            outlet.close(status)
        for outlet in self._outlets:
            outlet.join()
        self._count_drops()
        self._say(self.notes.remaining())
        self._native_does(lambda native: native.close(status))
        for kind, count in self._native.waiting.items():
            self.losses.add(kind, count, LossReason.AT_END)
        self.losses.summarise()
        self.closed = True


def _size(rows: Rows) -> int:
    """Return the bytes of rows that wait for a sink."""
    return MESSAGE_BYTES + rows.values.nbytes + rows.steps.nbytes + rows.times.nbytes


def _scalars(rows: Rows, writing: OpenSink) -> None:
    writing.scalars(rows)


def _note(facts: Mapping[str, object], writing: OpenSink) -> None:
    writing.event("note", None, facts)
