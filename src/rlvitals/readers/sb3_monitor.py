"""Read Stable-Baselines3's `*.monitor.csv`: a row per episode, with return, length and time.

The first line is `#{"t_start": seconds since the epoch, "env_id": ...}`, the second names the
columns: `r,l,t` and what `info_keywords` asked for. Source: `common/monitor.py`.
"""

import csv
import math
import re
from dataclasses import field, replace
from pathlib import Path

from rlvitals.errors import quantity
from rlvitals.readers.formats.columns import NAN, Columns, json_number, to_step
from rlvitals.readers.formats.json_lines import parse_object
from rlvitals.readers.formats.lines import Line, Lines, Position, open_log
from rlvitals.readers.formats.rows import Refusals, Row
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.sb3_csv import SB3_STEP_UNIT, row_numbers
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting

MONITOR_RETURN, MONITOR_LENGTH, MONITOR_ELAPSED = "r", "l", "t"


@dataclass(frozen=True, slots=True)
class MonitorCursor:
    """Position to resume from, and the state of the earlier lines before."""

    position: Position = field(default_factory=Position)
    names: tuple[str, ...] = (MONITOR_RETURN, MONITOR_LENGTH, MONITOR_ELAPSED)
    step: int = 0  # environment steps of the episodes so far
    started: float = NAN  # seconds since the epoch
    elapsed: float = -math.inf  # the last row's `t`, seconds since `started`
    attempts: int = 0  # process starts


def claims(path: Path, head: bytes) -> bool:
    """Claim what is named like a monitor file and starts like one, or has its first line."""
    # "monitor (1).csv": downloaded twice.
    is_named = re.search(r"monitor(?: ?\(\d+\))?\.csv$", path.name) is not None
    start = head.removeprefix(b"\xef\xbb\xbf")
    first_lines = (b"r,l,t\n", b"r,l,t\r\n", b'#{"t_start":')
    has_columns = path.suffix == ".csv" and start.startswith(first_lines)
    return has_columns or (is_named and start.startswith((b"#", b"r,l,t")))


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read the episodes after a cursor. Raises UnreadableLog where the file cannot be read."""
    cursor = previous if isinstance(previous, MonitorCursor) else MonitorCursor()
    with open_log(path) as file:
        lines = Lines(file, cursor.position)
        episodes = Episodes(MonitorCursor() if lines.replaced else cursor)
        for line in lines:
            episodes.take(line)
        end = replace(episodes.now, position=lines.position())
    notes = (*lines.notes(), *episodes.notes())
    series = episodes.columns.series()
    return Log("sb3-monitor", series, episodes.settings, notes, str(path), SB3_STEP_UNIT), end


@dataclass(slots=True)
class Episodes:
    """Collects the episodes of a monitor file's lines."""

    now: MonitorCursor
    columns: Columns = field(default_factory=Columns)
    settings: dict[str, Setting] = field(default_factory=dict)
    rows: Refusals = field(default_factory=Refusals)
    cells: Refusals = field(default_factory=lambda: Refusals("cell"))
    seams: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Return notes for the user."""
        return [*self.seams, *self.rows.notes(), *self.cells.notes()]

    def take(self, line: Line) -> None:
        """Add one line, whichever kind it is."""
        if not line.text or line.text.isspace():
            return
        if line.text.startswith("#"):  # an attempt: a process that wrote its own header
            header = parse_object(line.text[1:])
            if header is None:
                self.rows.add(line.number, "is not a monitor header")
                header = {}
            started = json_number(header.get("t_start"))
            self._seam(line.number, NAN if started is None else started)
            if isinstance(header.get("env_id"), str):
                self.settings["env_id"] = str(header["env_id"])
            return
        try:
            (fields,) = csv.reader([line.text])
        except (csv.Error, ValueError):
            self.rows.add(line.number, "is not comma-separated text")
            return
        if {MONITOR_RETURN, MONITOR_LENGTH, MONITOR_ELAPSED} <= set(fields):
            self.now = replace(self.now, names=tuple(fields))
        elif len(fields) != len(self.now.names):
            names = quantity(len(self.now.names), "name")
            reason = f"has {quantity(len(fields), 'field')} under {names}"
            self.rows.add(line.number, reason)
        else:
            self._episode(Row(line.number, fields))

    def _seam(self, line: int, started: float) -> None:
        state = self.now
        attempts = state.attempts + 1
        if attempts > 1:
            self.seams.append(f"attempt {attempts} starts at line {line}, step {state.step}")
        self.now = replace(state, started=started, elapsed=-math.inf, attempts=attempts)

    def _episode(self, row: Row) -> None:
        values = row_numbers(list(self.now.names), row, self.cells)
        length = to_step(values.get(MONITOR_LENGTH))
        elapsed = values.get(MONITOR_ELAPSED)
        if length is None or length < 0 or values.get(MONITOR_RETURN) is None:
            self.rows.add(row.line, "has no return or no length")
            return
        if elapsed is None:
            elapsed = NAN
        # SB3 appends without a header; a clock may be set back by a second within an attempt.
        if elapsed < self.now.elapsed - 1.0:
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
    files=("*monitor*.csv",),
    claims=claims,
    read=read,
    in_parts=True,
)
