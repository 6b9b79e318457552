"""Stable-Baselines3's `*.monitor.csv`: a row an episode, with return, length and time.

The first line is `#{"t_start": seconds since the epoch, "env_id": ...}`, the second names the
columns: `r,l,t` and what `info_keywords` asked for. Source: `common/monitor.py`.
"""

import csv
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlvitals.readers.formats.columns import NAN, Columns, json_number, whole
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.lines import Line, Lines, Position, opened
from rlvitals.readers.formats.rows import Refused, Row
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.sb3_csv import STEP_UNIT, row_numbers
from rlvitals.types import Log, Setting

RETURN, LENGTH, ELAPSED = "r", "l", "t"
NAMED = re.compile(r"monitor(?: ?\(\d+\))?\.csv$")  # "monitor (1).csv": downloaded twice
CLOCK_STEP = 1.0  # seconds that a clock may be set back within one attempt


@dataclass(frozen=True, slots=True)
class MonitorCursor:
    """Where to go on, and what the lines before said."""

    position: Position = field(default_factory=Position)
    names: tuple[str, ...] = (RETURN, LENGTH, ELAPSED)
    step: int = 0  # environment steps of the episodes so far
    started: float = NAN  # seconds since the epoch
    elapsed: float = -math.inf  # the last row's `t`, seconds since `started`
    attempts: int = 0  # process starts


def claims(path: Path, head: bytes) -> bool:
    """Claim what is named like a monitor file and starts like one."""
    named = NAMED.search(path.name) is not None
    return named and head.removeprefix(b"\xef\xbb\xbf").startswith((b"#", b"r,l,t"))


def read(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read the episodes after a cursor. Raises UnreadableLog where the file cannot be read."""
    cursor = since if isinstance(since, MonitorCursor) else MonitorCursor()
    with opened(path) as file:
        lines = Lines(file, cursor.position)
        episodes = Episodes(MonitorCursor() if lines.replaced else cursor)
        for line in lines:
            episodes.take(line)
        end = replace(episodes.now, position=lines.position())
    notes = (*lines.notes(), *episodes.notes())
    series = episodes.columns.series()
    return Log("sb3-monitor", series, episodes.settings, notes, str(path), STEP_UNIT), end


@dataclass(slots=True)
class Episodes:
    """Collects the episodes of a monitor file's lines."""

    now: MonitorCursor
    columns: Columns = field(default_factory=Columns)
    settings: dict[str, Setting] = field(default_factory=dict)
    rows: Refused = field(default_factory=Refused)
    cells: Refused = field(default_factory=lambda: Refused("cell"))
    seams: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Say what a person should know of these lines."""
        return [*self.seams, *self.rows.notes(), *self.cells.notes()]

    def take(self, line: Line) -> None:
        """Add one line, whichever kind it is."""
        if not line.text or line.text.isspace():
            return
        if line.text.startswith("#"):
            self._head(line)
            return
        try:
            (fields,) = csv.reader([line.text])
        except (csv.Error, ValueError):
            self.rows.add(line.number, "is not comma-separated text")
            return
        if {RETURN, LENGTH, ELAPSED} <= set(fields):
            self.now = replace(self.now, names=tuple(fields))
        elif len(fields) != len(self.now.names):
            why = f"has {len(fields)} fields under {len(self.now.names)} names"
            self.rows.add(line.number, why)
        else:
            self._episode(Row(line.number, fields))

    def _head(self, line: Line) -> None:
        """Start an attempt: a process that wrote its own header."""
        header = parse_object(line.text[1:])
        if header is None:
            self.rows.add(line.number, "is not a monitor header")
            header = {}
        started = json_number(header.get("t_start"))
        self._seam(line.number, NAN if started is None else started)
        if isinstance(header.get("env_id"), str):
            self.settings["env_id"] = str(header["env_id"])

    def _seam(self, line: int, started: float) -> None:
        now = self.now
        attempts = now.attempts + 1
        if attempts > 1:
            self.seams.append(f"attempt {attempts} starts at line {line}, step {now.step}")
        self.now = replace(now, started=started, elapsed=-math.inf, attempts=attempts)

    def _episode(self, row: Row) -> None:
        values = row_numbers(list(self.now.names), row, self.cells)
        length = whole(values.get(LENGTH))
        elapsed = values.get(ELAPSED)
        if length is None or length < 0 or values.get(RETURN) is None:
            self.rows.add(row.line, "has no return or no length")
            return
        if elapsed is None:
            elapsed = NAN
        if elapsed < self.now.elapsed - CLOCK_STEP:  # SB3 appends without a header
            self._seam(row.line, NAN)  # when it started is not known
        last = self.now.elapsed if math.isnan(elapsed) else elapsed
        attempts = max(self.now.attempts, 1)
        step = self.now.step + length
        self.now = replace(self.now, step=step, elapsed=last, attempts=attempts)
        self.columns.add_row(self.now.step, values.items(), self.now.started + elapsed)


READER = Reader(
    name="sb3-monitor",
    title="Stable-Baselines3 episode monitor",
    looks_for="*.monitor.csv",
    example="logs/ppo/0.monitor.csv",
    files=("*monitor.csv", "*monitor*([0-9]*).csv"),
    claims=claims,
    read=read,
    in_parts=True,
)
