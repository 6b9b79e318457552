"""A run that is being recorded: what `rlvitals.start()` returns."""

import atexit
import os
import sys
import time as clock
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn, Self

from rlvitals.errors import UsageError
from rlvitals.recording import beats, compiled, content, control, redact, tensors
from rlvitals.recording.batches import FIELDS
from rlvitals.recording.beats import EXITING, exit_code_of
from rlvitals.recording.pump import Message, Pump
from rlvitals.recording.sinks.sink import AXIS, Opening
from rlvitals.records import Text
from rlvitals.store.events import Events
from rlvitals.store.run_folder import EVENTS_FILE

FINISHING = 40.0  # seconds that `finish` waits for the sinks at the most
FORKED = "a forked process logged: its rows are not recorded"
_copy, _now = dict.copy, clock.time


class _Never:
    """What no sum is."""


_started: "list[Run]" = []  # in this process, until they finish


class Run:
    """Records one process of one run. Its calls never raise into the loop and never wait.

    A `durable` run alone waits: until the system has taken the row, microseconds on a sound disk.

    What goes wrong (a full disk, a value that is no number, a sink that fails) is counted and
    noted in the run. Where `strict`, a wrong call raises UsageError at once instead.
    """

    def __init__(  # noqa: PLR0913 - what a run begins with, each by its name
        self,
        opening: Opening,
        pump: Pump,
        *,
        world_size: int,
        strict: bool,
        durable: bool,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Begin; `rlvitals.start()` is what calls this."""
        self.folder: Path = opening.folder
        self.id = opening.run_id
        self.name = opening.name
        self.attempt = opening.attempt
        self.rank = opening.rank
        self.world_size = world_size
        self._settings = dict(opening.settings if settings is None else settings)
        self._notes = pump.notes
        self._pump = pump
        self._strict = strict
        self._durable = durable
        self._rows = pump.rows
        self._limit = pump.limit
        self._closed = ""  # why nothing more is recorded
        self._told = False
        self._endings: list[Callable[[str], None]] = []
        self._control = control.Control(self.folder)
        # A sum of this type shows that a dict holds plain numbers, which can be kept as they are.
        self._plain: type = _Never if strict or durable else float
        ordinary = self._plain is float and type(self).log is _method
        short = compiled.shortcut(self.log, pump) if ordinary else None
        self.compiled = short is not None  # whether `log` takes plain rows by compiled code
        self._stop: Callable[[], object] = int if short is None else short.stop
        if short is not None:
            self.log = short.log  # type: ignore[method-assign]
        _started.append(self)
        pump.chores.append(self._look)
        pump.start()
        atexit.register(self._at_exit)

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings as they are now."""
        return MappingProxyType(self._settings)

    @property
    def step(self) -> int:
        """The step logged last; 0 before the first."""
        self._pump.gather()
        try:
            return tensors.whole(self._rows[-FIELDS]) or 0
        except IndexError:  # all is with the thread already
            return self._pump.last_step

    @property
    def overhead(self) -> float:
        """CPU seconds that recording took on its own thread so far."""
        return self._pump.spent

    def log(
        self,
        step: int,
        metrics: Mapping[str, object],
        episode: float | None = None,
        tokens: float | None = None,
        time: float | None = None,
    ) -> None:
        """Record numbers at a step: Python's, numpy's, torch's; nested dicts join with "/".

        None is left out and counted; NaN and infinity are kept. `episode` and `tokens` are other
        x-axes of the same row; `time` (seconds since the epoch) replaces now.
        """
        # A third of a microsecond for 20 numbers: a sum that fails or tells of a type where
        # anything is no plain number, a copy, and one extension of a list, which no signal divides.
        # Nothing here is closed over, as each variable of a closure is made anew at every call, and
        # no argument is keyword-only, as the interpreter has no short way to such a function.
        kind: type
        try:
            kind = type(sum(metrics.values(), 0.0))  # type: ignore[type-var]
            row: dict[str, Any] = _copy(metrics)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - nested dicts, tensors, None: looked at one by one
            kind = object
        if kind is self._plain and type(step) is int and episode is tokens is time is None:
            rows = self._rows
            rows += (step, _now(), row, None)
            if len(rows) > self._limit:
                self._pump.catch_up()
        else:
            axes = {"episode": episode, "tokens": tokens}
            self._safely(partial(self._log, step, metrics, axes, time))

    def log_histogram(
        self,
        step: int,
        name: str,
        values: object = None,
        *,
        edges: object = None,
        counts: object = None,
    ) -> None:
        """Record a distribution: `values` of any shape, or `counts` [n] between `edges` [n + 1]."""

        def send() -> None:
            at, key = self._at(step), self._named(name)
            made = content.histogram(at, clock.time(), values, edges, counts)
            self._send(lambda writing: writing.histogram(key, made()))

        self._safely(send)

    def log_text(self, step: int, name: str, text: str) -> None:
        """Record a text."""

        def send() -> None:
            at, key = self._at(step), self._named(name)
            one = Text(at, clock.time(), str(text))
            self._send(lambda writing: writing.text(key, one))

        self._safely(send)

    def log_table(self, step: int, name: str, columns: Mapping[str, object]) -> None:
        """Record rows of a table, columns of one length: completions with their rewards."""

        def send() -> None:
            at, key = self._at(step), self._named(name)
            one = content.table(at, columns)
            self._send(lambda writing: writing.table(key, one))

        self._safely(send)

    def update_settings(self, changed: Mapping[str, object], *, step: int | None = None) -> None:
        """Say that settings changed: each change is an event of the run, and holds from now on."""

        def send() -> None:
            at = self.step if step is None else self._at(step)
            new = content.settings(changed)
            facts = {
                key: {"from": self._settings.get(key), "to": value}
                for key, value in new.items()
                if key not in self._settings or self._settings[key] != value
            }
            if facts:
                self._settings |= new
                kept, told = redact.written(new), redact.written(facts)
                self._send(lambda writing: writing.settings(at, kept))
                self._send(lambda writing: writing.event("settings", at, {"changed": told}))

        self._safely(send)

    def event(self, kind: str, step: int | None = None, **facts: object) -> None:
        """Record that something happened: a checkpoint, an alert, a change of curriculum."""

        def send() -> None:
            at = None if step is None else self._at(step)
            name, said = self._named(kind), {"time": clock.time(), **redact.written(facts)}
            self._send(lambda writing: writing.event(name, at, said))

        self._safely(send)

    def note(self, text: str) -> None:
        """Count something a person should know of; equal texts are one note with a count."""
        self._notes.add(text)

    def requests(self) -> control.Requests:
        """Say what someone outside asked for since the last call; cheap enough for every step."""
        return self._control.requests()

    def at_finish(self, call: Callable[[str], None]) -> None:
        """Call something with the run's status before its sinks close; the last added is first."""
        self._endings.append(call)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until what is logged by now is with the system; False where that takes longer."""
        return self._pump.flush(timeout)

    def finish(
        self, status: str = "finished", *, traceback: str = "", exit_code: int | None = None
    ) -> None:
        """Record how the run ended, write what waits and close. Further calls do nothing."""
        if self._closed and self._pump.closed:
            return
        if not self._closed:
            self._end(status, traceback, exit_code)
        # A process that ends by itself, without a word: sinks know of no other end than that.
        word = "finished" if status == EXITING else status
        if not self._pump.close(word, FINISHING) and self._pump.alive:
            sys.stderr.write(f"rlvitals: {self.folder} could not be closed in time\n")
        if self._pump.closed:
            atexit.unregister(self._at_exit)
            if self in _started:
                _started.remove(self)

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
            return
        if error is None:
            self.finish()
            return
        word = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        self.finish(word, traceback="".join(traceback.format_exception(kind, error, trace)))

    def __reduce__(self) -> NoReturn:
        """Refuse to be sent to another process. Raises UsageError."""
        raise UsageError(
            "a run cannot be sent to another process",
            where=self.name,
            hint="call rlvitals.start() there, with RANK set",
        )

    def _log(self, step: object, metrics: object, axes: Mapping[str, object], time: object) -> None:
        if not isinstance(metrics, Mapping):
            raise UsageError(f"metrics must be a dict, not {tensors.kind(metrics)}")
        at = self._at(step)
        found = tensors.settled(metrics, at_once=self._durable)
        for name in found.none:
            self._notes.add(f"{name} was None: left out")
        for text in found.wrong:
            self._wrong(text)
        row = found.values
        for axis, value in axes.items():
            if value is not None:
                row[f"{AXIS}{axis}"] = self._number(axis, value)
        moment = clock.time() if time is None else self._number("time", time)
        if self._durable and self._pump.at_once(at, moment, row):
            return
        self._rows += (at, moment, row, None)
        if self._durable:
            self._pump.through()
        elif len(self._rows) > self._limit:
            self._pump.catch_up()

    def _send(self, message: Message) -> None:
        self._pump.send(message)
        if self._durable:
            self._pump.through()

    def _safely(self, call: Callable[[], None]) -> None:
        """Do what a caller asked for: the one place where the recorder promises not to raise."""
        if self._closed:
            self._refuse()
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
            self._notes.add(f"not recorded: {type(error).__name__}: {error}")

    def _refuse(self) -> None:
        if self._closed == FORKED and not self._told:
            self._told = True
            with suppress(OSError):
                Events(self.folder / EVENTS_FILE).append("note", text=FORKED, count=1)
        self._notes.add(f"not recorded: {self._closed}")
        if self._strict:
            raise UsageError(f"nothing is recorded: {self._closed}", where=self.name)

    def _wrong(self, text: str) -> None:
        if self._strict:
            raise UsageError(text, where=self.name)
        self._notes.add(text)

    def _at(self, step: object) -> int:
        number = tensors.whole(step)
        if number is None:
            raise UsageError(f"a step must be a whole number, not {tensors.kind(step)}")
        return number

    @staticmethod
    def _named(name: object) -> str:
        if not isinstance(name, str):
            raise UsageError(f"a name must be a string, not {tensors.kind(name)}")
        return name

    @staticmethod
    def _number(name: str, value: object) -> float:
        number = tensors.number(value)
        if number is None:
            raise UsageError(f"{name} must be a number, not {tensors.kind(value)}")
        return number

    def _look(self) -> None:
        for what in self._control.look():
            self.event("asked", self.step, what=what)

    def _end(self, status: str, trace: str, exit_code: int | None) -> None:
        for call in reversed(self._endings):
            try:
                call(status)
            except Exception as error:  # noqa: BLE001 - the end of a run is recorded all the same
                self._notes.add(f"at the end: {type(error).__name__}: {error}")
        facts: dict[str, object] = {"status": status, "time": clock.time()}
        if trace:
            facts["traceback"] = redact.homeless(redact.text(trace))
        if exit_code is not None:
            facts["exit_code"] = exit_code
        self._pump.send(lambda writing: writing.event("finish", None, facts))
        self._closed, self._plain = "the run is finished", _Never
        self._stop()

    def _at_exit(self) -> None:
        """Close a run that its script did not finish; how the process ends is noted by itself."""
        error = getattr(sys, "last_value", None)
        if error is None or not self._pump.alive:
            self.finish(EXITING)
        else:
            self.__exit__(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            beats.still_interrupted()

    def _forked(self) -> None:
        """Leave the run to the parent: in a forked child nothing of it is written."""
        self._closed, self._plain = FORKED, _Never
        self._stop()
        self._rows = []
        self._strict = False
        atexit.unregister(self._at_exit)


_method = Run.log  # what the compiled way stands in for; not for a subclass's, nor for a spy's


def current() -> Run | None:
    """Return the run of this process that was started last and is not finished."""
    return next((run for run in reversed(_started) if not run._closed), None)  # noqa: SLF001 - ours


def _after_fork() -> None:
    for run in _started:
        run._forked()  # noqa: SLF001 - ours
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
