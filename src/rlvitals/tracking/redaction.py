"""Redact all that is passed to the sinks of a run.

A run's pump hands rows and messages to sinks through a `Gate` and in no other way. `Names` is
shared by the gates of a run, so that all sinks write the same names. Files that are written beside
the sinks have the same gate at their own writer: `storage.events` and `storage.run_folder`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from rlvitals.storage import redact
from rlvitals.tracking.sinks.sink import OpenSink, Rows
from rlvitals.types import Histogram, Table, Text


class Names:
    """Metric names without secrets. A name is looked at once, with the first row that has it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._layouts: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._renamed: dict[str, str] = {}
        self._taken: set[str] = set()

    def layout(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the redacted names of a row; the same tuple where none has a secret."""
        clean = self._layouts.get(keys)
        if clean is None:
            names = tuple(map(self.name, keys))
            clean = keys if names == keys else names
            if len(self._layouts) >= 10_000:  # names are new at every step
                self._layouts.clear()
            self._layouts[keys] = clean
        return clean

    def name(self, raw: str) -> str:
        """Return a name; two that differ in their secret alone get a number each."""
        clean = redact.text(raw)
        if clean == raw:
            return raw
        if raw not in self._renamed and len(self._renamed) < 10_000:  # the others share one number
            count, base = 1, clean
            while clean in self._taken:
                count += 1
                clean = f"{base} ({count})"
            self._taken.add(clean)
            self._renamed.setdefault(raw, clean)  # of two threads that log it first, one wins
        return self._renamed.get(raw, clean)


class Gate:
    """A sink that gets redacted data. It has the calls of `OpenSink` and no others."""

    def __init__(self, sink: OpenSink, names: Names) -> None:
        """Stand before a sink."""
        self._sink = sink
        self._names = names

    def scalars(self, rows: Rows) -> None:
        """Pass rows on, unchanged where no name has a secret."""
        keys = self._names.layout(rows.keys)
        self._sink.scalars(rows if keys is rows.keys else replace(rows, keys=keys))

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Pass a histogram on."""
        self._sink.histogram(self._names.name(key), histogram)

    def text(self, key: str, text: Text) -> None:
        """Pass a text on."""
        clean = redact.cell(key, text.text)
        self._sink.text(self._names.name(key), replace(text, text=str(clean)))

    def table(self, key: str, table: Table) -> None:
        """Pass rows of a table on."""
        columns = {
            self._names.name(name): [redact.cell(name, cell) for cell in cells]
            for name, cells in table.columns.items()
        }
        self._sink.table(self._names.name(key), replace(table, columns=columns))

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Pass changed settings on."""
        self._sink.settings(step, redact.clean_mapping(changed))

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Pass an event on."""
        self._sink.event(redact.text(kind), step, redact.clean_mapping(facts))

    def flush(self) -> None:
        """Flush the sink."""
        self._sink.flush()

    def close(self, status: str) -> None:
        """Close the sink."""
        self._sink.close(redact.text(status))


class NativeSink(OpenSink, Protocol):
    """The native sink: it keeps what a full disk does not take, and counts what it dropped."""

    def row(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Write a row on the caller's own thread, where nothing waits before it."""

    def rename(self, names: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        """Write single rows under other names."""

    @property
    def pending(self) -> int:
        """Bytes that the system has not taken yet."""

    @property
    def dropped(self) -> Counter[str]:
        """Rows and other calls given up, by kind."""

    @property
    def waiting(self) -> Counter[str]:
        """Rows and other calls that the system has not taken yet, by kind."""


class NativeGate(Gate):
    """The native sink behind the gate, with the calls that it alone has."""

    def __init__(self, sink: NativeSink, names: Names) -> None:
        """Stand before the native sink; single rows ask for their names once for each layout."""
        super().__init__(sink, names)
        self._native = sink
        sink.rename(names.layout)
        self.row = sink.row  # as it is: a durable row is written on the caller's own thread

    @property
    def pending(self) -> int:
        """Bytes that the system has not taken yet."""
        return self._native.pending

    @property
    def dropped(self) -> Counter[str]:
        """Rows and other calls given up because the disk took none for too long, by kind."""
        return self._native.dropped

    @property
    def waiting(self) -> Counter[str]:
        """Rows and other calls that the system has not taken yet, by kind."""
        return self._native.waiting
