"""The log of one file, accumulated from its readings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rlvitals.following.append_buffer import AppendBuffer
from rlvitals.following.thin_buffer import ThinBuffer
from rlvitals.metrics.steps.resume import without_repeats
from rlvitals.readers.discovery.join import newest_rows
from rlvitals.readers.formats.lines import REPLACED_NOTE, REREAD_NOTE, REWRITTEN_NOTE, TORN_NOTE
from rlvitals.readers.reader import Reader
from rlvitals.readers.wandb_offline import NO_EXIT_NOTE
from rlvitals.types import Histogram, Log, Series, Setting, Table, Text

T = TypeVar("T")
# What is true of one reading alone, not of the log.
TRANSIENT_NOTES = frozenset({REPLACED_NOTE, REREAD_NOTE, REWRITTEN_NOTE, TORN_NOTE, NO_EXIT_NOTE})


class FileState:
    """The log of one file, accumulated from its readings."""

    def __init__(self, reader: Reader) -> None:
        """Start empty, for the readings of `reader`."""
        self.columns: AppendBuffer | ThinBuffer = AppendBuffer()
        self._reader = reader
        self._last: Log | None = None
        self._settings: dict[str, Setting] = {}
        self._notes: dict[str, str] = {}  # the last of each kind, whatever its numbers
        self._histograms: dict[str, list[Histogram]] = {}
        self._texts: dict[str, list[Text]] = {}
        self._tables: dict[str, Table] = {}

    @property
    def is_over(self) -> bool:
        """Whether the log records the end of the process."""
        return self._last is not None and self._last.ending is not None

    def add(self, log: Log) -> None:
        """Add the result of one reading."""
        self.columns.add(log.series)
        if self._reader.sums_up:
            self._settings = dict(log.settings)
        else:
            self._settings |= log.settings
        for note in log.notes:
            kind = re.sub(r"[\d,.]+", "#", note)
            if note not in TRANSIENT_NOTES and (kind in self._notes or len(self._notes) < 24):
                self._notes[kind] = note
        _append_items(self._histograms, log.histograms)
        _append_items(self._texts, log.texts)
        for key, table in log.tables.items():
            previous = self._tables.get(key)
            self._tables[key] = table if previous is None else newest_rows([previous, table])
        self._last = replace(log, series={})  # the columns have the points

    def log(self) -> Log:
        """Return the complete log; of transient notes only those of the last reading."""
        last = self._last or Log(self._reader.name, {})
        passing = [
            note for note in last.notes if note in TRANSIENT_NOTES - {REPLACED_NOTE, REREAD_NOTE}
        ]
        return replace(
            last,
            series=self.columns.series(),
            settings=dict(self._settings),
            notes=(*self._notes.values(), *passing),
            histograms={key: tuple(items) for key, items in self._histograms.items()},
            texts={key: tuple(items) for key, items in self._texts.items()},
            tables=dict(self._tables),
        )

    def series(self) -> Mapping[str, Series]:
        """Return the current columns."""
        return self.columns.series()

    @property
    def is_thin(self) -> bool:
        """Whether only thinned points are kept."""
        return isinstance(self.columns, ThinBuffer)

    def try_thin(self) -> bool:
        """Keep thinned points from now on; return False where rows repeat or often go back."""
        series = self.columns.series()
        columns = ThinBuffer({})
        columns.add(series)
        if columns.has_too_many_seams or without_repeats(series) is not series:
            return False
        self.columns = columns
        return True


def _append_items(items_by_key: dict[str, list[T]], new: Mapping[str, Sequence[T]]) -> None:
    for key, items in new.items():
        stored = items_by_key.setdefault(key, [])
        stored += items
        while len(stored) > 1024:  # histograms or texts: of more, every second one is dropped
            del stored[1::2]
