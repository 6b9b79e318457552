"""The run that `rlvitals.start()` returns."""

import atexit
import os
import sys
import time as clock
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn, Self, cast, overload

from rlvitals.errors import UsageError
from rlvitals.storage import redact, tail_index
from rlvitals.storage.events import Events
from rlvitals.storage.run_folder import EVENTS_FILE
from rlvitals.tracking import fastlog, heartbeat, media, tensors, validation
from rlvitals.tracking import requests as control
from rlvitals.tracking.heartbeat import EXITING, exit_code_of
from rlvitals.tracking.rollout_log import RolloutLog
from rlvitals.tracking.row_batches import ROW_FIELDS
from rlvitals.tracking.safe_calls import catch_errors
from rlvitals.tracking.sinks.sink import Opening
from rlvitals.tracking.tracker_names import TrackerNames
from rlvitals.tracking.warnings_log import error_text
from rlvitals.tracking.writer_thread import Message, WriterThread
from rlvitals.types import Text

FORKED_REASON = "a forked process logged: its rows are not recorded"
_copy, _now = dict.copy, clock.time
Metrics = Mapping[str, object]
Axis = float | None


class _Never:
    """A type that no sum has."""


_started: "list[Run]" = []  # in this process, until they finish


class Run(TrackerNames):
    """Records one process of one run. Its calls do not raise and do not block.

    Only a `durable` run blocks, until the operating system has the row (about 10 microseconds).
    Problems (a full disk, a value that is not a number, a failing sink) are counted and noted in
    the run. With `strict`, an invalid call raises at once. Invalid arguments of `note`,
    `requests`, `at_finish`, `flush` and `finish` always raise TypeError.

    `rlvitals.start()` sets `opening` (folder and attempt), `pump` (writer thread), `world_size`
    (processes), `settings`, and `rollout_bytes` (limit of the rollouts on the disk, 0: none).
    """

    at_close: Callable[[], object] = int  # called once all is written; this one does nothing

    def __init__(  # noqa: PLR0913 - what a run begins with, each by its name
        self,
        opening: Opening,
        pump: WriterThread,
        *,
        world_size: int,
        strict: bool,
        durable: bool,
        settings: Mapping[str, object] | None = None,
        rollout_bytes: float = 0.0,
    ) -> None:
        """Begin; `rlvitals.start()` is what calls this."""
        self.folder: Path = opening.folder
        self.id, self.name = opening.run_id, opening.name
        self.attempt, self.rank = opening.attempt, opening.rank
        self.world_size, self.mirror = world_size, ""  # URL that `start` uploads it to
        self._settings = dict(opening.settings if settings is None else settings)
        self._notes = pump.notes
        self._rollouts = RolloutLog(opening, rollout_bytes, pump.notes.add)
        self._thinning = validation.Thinning(pump.notes)
        self._pump = pump
        self._strict, self._durable = strict, durable
        self._rows, self._limit = pump.rows, pump.limit
        self._last_values = pump.last_values
        self._closed = ""  # why nothing more is recorded
        self._is_fork_noted = False
        self._endings: list[Callable[[str], None]] = []
        self._control = control.Control(self.folder)
        # A sum of this type shows that a dict holds plain numbers, which can be kept as they are.
        self._plain: type = _Never if strict or durable else float
        ordinary = self._plain is float and type(self).log is _method
        short = fastlog.shortcut(self.log, pump) if ordinary else None
        self.compiled = short is not None  # whether `log` takes plain rows by compiled code
        self._stop: Callable[[], object] = int if short is None else short.stop
        if short is not None:
            self.log = short.log  # type: ignore[method-assign]
        _started.append(self)
        pump.chores += (self._look, self._rollouts.write)
        pump.start()
        atexit.register(self._at_exit)

    @property
    def settings(self) -> Mapping[str, object]:
        """The current settings."""
        return MappingProxyType(self._settings)

    @property
    def step(self) -> int:
        """The last logged step; 0 before the first row."""
        return self._last() or 0

    @property
    def overhead(self) -> float:
        """CPU seconds used by the recording thread."""
        return self._pump.spent

    @overload
    def log(
        self, step: int, metrics: Metrics, episode: Axis = ..., tokens: Axis = ..., time: Axis = ...
    ) -> None: ...
    @overload
    def log(
        self,
        metrics: Metrics,
        step: int | None = ...,
        episode: Axis = ...,
        tokens: Axis = ...,
        time: Axis = ...,
    ) -> None: ...
    def log(  # type: ignore[misc]
        self, step: Any = None, metrics: Any = None, /, *more: Any, **named: Any
    ) -> None:
        """Record numbers at a step: Python's, numpy's, torch's; nested dicts join with "/".

        `log(step, metrics)`, or as other trackers have it `log(metrics, step=step)`. Without a step
        the row's step is that of the last row plus 1, also of an earlier attempt; the first is 0.

        None in `metrics` is left out and counted; NaN and infinity are kept. `step` is an integer.
        By place (`more`) or name (`named`): `episode`, `tokens`, further x-axes of the row, and
        `time` in seconds since the epoch (default: now).
        """
        # A third of a microsecond for 20 numbers: a sum that fails or has another type where
        # anything is no plain number, a copy, and one extension of a list, which no signal divides.
        # Nothing here is closed over, as each variable of a closure is made anew at every call. The
        # first two have no name that a caller can use: `step=` may follow a dict.
        kind: type
        try:
            row: dict[str, Any] = _copy(metrics)
            kind = type(sum(row.values(), 0.0))
        except Exception:  # noqa: BLE001 - nested dicts, tensors, None: looked at one by one
            kind = object
        if kind is self._plain and type(step) is int and not named and not more:
            rows = self._rows
            rows += (step, _now(), row, None)
            if len(rows) > self._limit:
                self._pump.catch_up()
        else:
            self._safely(partial(self._log, step, metrics, more, named))

    @catch_errors
    def log_histogram(
        self,
        step: int,
        name: str,
        values: object = None,
        *,
        edges: object = None,
        counts: object = None,
    ) -> None:
        """Record `values` of any shape, or `counts` [n] and `edges` [n + 1]: `name` at `step`."""
        checked_step, key = validation.step(step), validation.name(name)
        build, size = media.histogram(checked_step, clock.time(), values, edges, counts)
        self._send(lambda writing: writing.histogram(key, build()), "histograms", size)

    @catch_errors
    def log_text(self, step: int, name: str, text: str) -> None:
        """Record a `text` as `name` at a `step`."""
        checked_step, key = validation.step(step), validation.name(name)
        entry = Text(checked_step, clock.time(), media.text(text))
        self._send(lambda writing: writing.text(key, entry), "texts", media.size(entry.text))

    @catch_errors
    def log_table(self, step: int, name: str, columns: Mapping[str, object]) -> None:
        """Record rows of a table `name` at a `step`: `columns` by name, all of one length."""
        checked_step, key = validation.step(step), validation.name(name)
        rows = media.table(checked_step, columns)
        self._send(lambda writing: writing.table(key, rows), "tables", media.size(rows))

    @catch_errors
    def log_rollouts(self, step: int, samples: Sequence[Mapping[str, object]]) -> None:
        """Record `samples` of a `step` for `rlvitals samples RUN`: dicts of "prompt", "reward"."""
        self._rollouts.add(validation.step(step), samples)

    @catch_errors
    def update_settings(self, changed: Mapping[str, object], *, step: int | None = None) -> None:
        """Record that settings `changed` at a `step` (default: the last row's), as an event."""
        checked_step = self.step if step is None else validation.step(step)
        new = media.settings(changed)
        facts = validation.changes(self._settings, new)
        if facts:
            self._settings |= new
            if self._thinning.lets_through("settings"):
                size = media.size(new)
                self._send(lambda writing: writing.settings(checked_step, new), "settings", size)
                self._event("settings", checked_step, {"changed": facts})

    @catch_errors
    def event(self, /, kind: str, step: int | None = None, **facts: object) -> None:
        """Record an event of a `kind` at a `step`, with its `facts`: an alert, a new curriculum."""
        checked_step = None if step is None else validation.step(step)
        name, plain = validation.name(kind), cast("dict[str, object]", media.plain(facts))
        if self._thinning.lets_through(name):
            self._event(name, checked_step, {"time": clock.time(), **redact.clean_mapping(plain)})

    def note(self, text: object) -> None:
        """Count a note for the user; equal texts are one note with a count."""
        self._notes.add(media.text(text))

    def requests(self) -> control.Requests:
        """Return the requests since the last call; cheap enough for every step."""
        return self._control.requests()

    def at_finish(self, call: Callable[[str], None]) -> None:
        """Call a function with the run's status before its sinks close; the last added is first."""
        self._endings.append(call)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all logged data is with the system; return whether it is.

        False also where something was lost since the last call. Other sinks are not waited for.
        """
        return self._pump.flush(timeout)

    def finish(
        self, status: str | int = "finished", *, traceback: str = "", exit_code: int | None = None
    ) -> None:
        """Record the end (`status`: a word or exit code; `traceback`, `exit_code`), and close."""
        status, exit_code = validation.ending(status, exit_code)
        if self._closed and self._pump.closed:
            return
        if not self._closed:
            self._end(status, traceback, exit_code)
        # A process that ends by itself, without a word: sinks know of no other end than that.
        final_status = "finished" if status == EXITING else status
        if not self._pump.close(final_status, timeout=40.0) and self._pump.alive:
            sys.stderr.write(f"rlvitals: {self.folder} could not be closed in time\n")
        if self._pump.closed:
            atexit.unregister(self._at_exit)
            if self in _started:
                _started.remove(self)
            self.at_close()

    def __enter__(self) -> Self:
        """Record until the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish: "failed" with the traceback where an exception ended the block."""
        if isinstance(error, SystemExit):
            code = exit_code_of(error)
            self.finish("failed" if code else "finished", exit_code=code or None)
        elif error is None:
            self.finish()
        else:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self.finish(status, traceback="".join(traceback.format_exception(kind, error, trace)))

    def __reduce__(self) -> NoReturn:
        """Refuse to be sent to another process. Raises UsageError."""
        raise UsageError(
            "a run cannot be sent to another process",
            where=self.name,
            hint="call rlvitals.start() there, with RANK set",
        )

    def _log(
        self, first: object, second: object, more: Sequence[object], keywords: Mapping[str, object]
    ) -> None:
        call = validation.parse_call(first, second, more, keywords)
        for text in call.wrong:
            self._wrong(text)
        metrics = call.metrics()
        step = validation.step(self._next() if call.is_counted else call.arguments.get("step"))
        numbers = tensors.flatten_metrics(metrics, at_once=self._durable)
        for name in numbers.none:
            self._notes.add(f"{name} was None: left out")
        for text in numbers.wrong:
            self._wrong(text)
        row, moment = numbers.values | call.axes(), call.moment()
        if self._durable and self._pump.write_now(step, moment, row):
            return
        self._rows += (step, moment, row, None)
        if self._durable:
            self._pump.wait_durable()
        elif len(self._rows) > self._limit:
            self._pump.catch_up()

    def _last(self) -> int | None:
        self._pump.gather()
        try:
            return tensors.to_int64(self._rows[-ROW_FIELDS])
        except IndexError:  # all is with the thread already
            return self._pump.last_step

    def _next(self) -> int:
        """Return the step after the last row; in a resumed run, after the stored rows."""
        last = self._last()
        if last is None and self.attempt > 1:
            row = tail_index.newest_row_before(self.folder, self.attempt, self.rank)
            last = None if row is None else row[0]
        return 0 if last is None else last + 1

    def _event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        self._send(lambda writing: writing.event(kind, step, facts), "events", media.size(facts))

    def _send(self, message: Message, kind: str, size: int) -> None:
        self._pump.send(message, kind, size)
        if self._durable:
            self._pump.wait_durable()

    def _safely(self, call: Callable[[], None]) -> None:
        """Run a call: the one place where the recorder promises not to raise."""
        if self._closed:
            if self._closed == FORKED_REASON and not self._is_fork_noted:
                self._is_fork_noted = True
                with suppress(OSError):
                    Events(self.folder / EVENTS_FILE).append("note", text=FORKED_REASON, count=1)
            self._notes.add(f"not recorded: {self._closed}")
            if self._strict:
                raise UsageError(f"nothing is recorded: {self._closed}", where=self.name)
            return
        try:
            call()
        except UsageError as error:
            if self._strict:
                raise
            self._notes.add(error.problem)
        except Exception as error:
            if self._strict:
                raise
            self._notes.add(f"not recorded: {error_text(error)}")

    def _wrong(self, text: str) -> None:
        if self._strict:
            raise UsageError(text, where=self.name)
        self._notes.add(text)

    def _look(self) -> None:
        for facts in self._control.look():
            self.event("asked", self.step, **facts)

    def _end(self, status: str, trace: str, exit_code: int | None) -> None:
        for call in reversed(self._endings):
            try:
                call(status)
            except Exception as error:  # noqa: BLE001 - the end of a run is recorded all the same
                self._notes.add(f"at the end: {error_text(error)}")
        facts = validation.end(status, trace, exit_code)
        self._rollouts.write()
        self._pump.end(lambda writing: writing.event("finish", None, facts))
        self._closed, self._plain, self._status = "the run is finished", _Never, status
        self._stop()

    def _at_exit(self) -> None:
        """Close a run that its script did not finish; the exit code is recorded separately."""
        error = getattr(sys, "last_value", None)
        if error is None or not self._pump.alive:
            self.finish(EXITING)
        else:
            self.__exit__(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            heartbeat.keep_interrupt_flag()

    def _abandon(self) -> None:
        """Leave the run to the parent process: a forked child writes nothing."""
        self._closed, self._plain, self._status = FORKED_REASON, _Never, "forked"
        self._stop()
        self._rows = []
        self._strict = False
        atexit.unregister(self._at_exit)


_method = Run.log  # the compiled way replaces this method only, not a subclass's nor a spy's


def current() -> Run | None:
    """Return the run of this process that was started last and is not finished."""
    return next((run for run in reversed(_started) if not run._closed), None)  # noqa: SLF001 - ours


def _after_fork() -> None:
    for run in _started:
        run._abandon()  # noqa: SLF001 - ours
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
