"""TensorBoard event files under `<run>/tensorboard/`, a new one for each attempt.

The option `folder` names another one in the run's. `names` maps a key to the tag it has there; any
other key has `prefix` before it, and is its own tag where there is none. `tables` set to False
leaves tables out: TensorBoard can only show them as texts.

Encoded here in numpy: no torch, no TensorFlow, no protobuf. Scalars are stored as float32, as
TensorBoard has them. Ranks other than 0 are separate runs there: `tensorboard/rank-3/`.
"""

import os
import shlex
import sys
import time as clock
from collections.abc import Mapping
from pathlib import Path

from rlvitals.errors import harmless
from rlvitals.storage.safe_files import make_folder
from rlvitals.tracking.sinks.append_file import AppendFile
from rlvitals.tracking.sinks.event_files import scalars, summaries
from rlvitals.tracking.sinks.flatten import flatten
from rlvitals.tracking.sinks.lazy import open_lazily
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.tracking.sinks.tags import tags
from rlvitals.types import Histogram, Table, Text


class EventFile:
    """The event file of an attempt."""

    def __init__(self, path: Path, opening: Opening) -> None:
        """Create the file, with the run's settings as its hyperparameters."""
        self._restarted = not opening.resumed
        self._tag = tags(opening.options)
        self._tables = opening.options.get("tables") is not False
        self._file = AppendFile.new(path)
        time, name = clock.time(), opening.name or opening.run_id
        self._file.write(summaries.head(time))
        self._file.write(summaries.settings(flatten(opening.settings), name, time))

    def scalars(self, rows: Rows) -> None:
        """Write rows: float32, one event for each number."""
        if len(rows.steps):
            self._begin(int(rows.steps.min()))
        tag_names = tuple(map(self._tag, rows.keys))
        for data in scalars.encode(tag_names, rows.steps, rows.times, rows.values):
            self._file.write(data)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Write a histogram."""
        self._begin(histogram.step)
        self._file.write(summaries.histogram(self._tag(key), histogram))

    def text(self, key: str, text: Text) -> None:
        """Write a text."""
        self._begin(text.step)
        self._file.write(summaries.text(key, text))

    def table(self, key: str, table: Table) -> None:
        """Write a table's first rows as a text."""
        if not self._tables:
            return
        if len(table):
            self._begin(int(table.steps.min()))
        self._file.write(summaries.table(key, table, clock.time()))

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Write a change of settings as a text: hyperparameters are those of the start."""
        rows = "\n".join(f"|{key}|{value}|" for key, value in flatten(changed).items())
        self.text("settings/changed", Text(step, clock.time(), f"|setting|value|\n|-|-|\n{rows}"))

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Leave events out: TensorBoard has no place for them."""

    def flush(self) -> None:
        """Do nothing: every call has written its events."""

    def close(self, status: str) -> None:
        """Write how the run ended."""
        try:
            self._file.write(summaries.end(status, clock.time()))
        finally:
            self._file.close()

    def _begin(self, step: int) -> None:
        """Mark once from which step a resumed run continues."""
        if not self._restarted:
            self._restarted = True
            self._file.write(summaries.restart(clock.time(), step))


def _open_sink(opening: Opening) -> EventFile:
    name = opening.options.get("folder")
    if isinstance(name, str) and name:
        home = opening.folder / name  # the user's own path may be a link
        home.mkdir(parents=True, exist_ok=True)
    else:
        home = make_folder(opening.folder / "tensorboard")
    folder = make_folder(home / f"rank-{opening.rank}") if opening.rank else home
    port = opening.options.get("port")
    if port and not opening.rank:
        logdir = shlex.quote(str(home))
        sys.stderr.write(f"tensorboard --logdir {harmless(logdir)} --port {port}\n")
    # TensorBoard reads a folder's files in the order of their names.
    attempt = f"{int(clock.time()):010d}.{opening.attempt:04d}.{opening.run_id}.{os.getpid()}"
    path = folder / f"events.out.tfevents.{attempt}"
    return EventFile(path, opening)


SINK = Sink("tensorboard", "TensorBoard event files", "", open_lazily(_open_sink))
