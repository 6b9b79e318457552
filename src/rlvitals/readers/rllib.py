"""Read RLlib's (Ray Tune's) `progress.csv` and `result.json`.

`result.json` has an object a line; `progress.csv` the same with nested objects as columns
("info/learner/kl") or, before Ray 0.8, as Python literals in one cell. `config` is settings, not
numbers. Source: `ray/tune/logger/{csv,json}.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import (
    MAX_SETTING_CHARACTERS,
    NAN,
    Columns,
    json_number,
    parse_number,
    to_step,
)
from rlvitals.readers.formats.json_lines import Objects, flatten
from rlvitals.readers.formats.lines import HEAD_BYTES, Lines, Position, open_log
from rlvitals.readers.formats.literals import parse_literal
from rlvitals.readers.formats.rows import NO_ROW_NOTE, Refusals, Row, Rows, read_header
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.thin_columns import ThinReader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting

ITERATION_KEY, CONFIG_KEY = "training_iteration", "config"
# The first that a log's first row, or a result, has is its step.
RLLIB_STEPS = (
    "timesteps_total",
    "num_env_steps_sampled_lifetime",
    "env_runners/num_env_steps_sampled_lifetime",
    "num_env_steps_sampled",
    ITERATION_KEY,
)
# Who and where, not how it goes: text, or digits that mean nothing as a number.
IDENTITY_KEYS = frozenset(
    {"experiment_id", "trial_id", "experiment_tag", "node_ip", "hostname", "pid", "date"}
)


@dataclass(frozen=True, slots=True)
class RLlibCursor:
    """Position to resume from, and which column the steps are."""

    position: Position
    step: str = ""  # empty before the first row


def claims(path: Path, head: bytes) -> bool:
    """Claim CSV and JSON lines of Ray Tune's."""
    if path.suffix == ".csv":
        return ITERATION_KEY.encode() in head.partition(b"\n")[0]
    is_named = path.name == "result.json" or f'"{ITERATION_KEY}"'.encode() in head
    return path.suffix in {".json", ".jsonl"} and is_named and _is_json(head)


def _is_json(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def read(path: Path, previous: Cursor | None, columns: Columns | None = None) -> tuple[Log, Cursor]:
    """Read the results after a cursor. Raises UnreadableLog where these are none."""
    cursor = previous if isinstance(previous, RLlibCursor) else None
    results = Results(cursor.step if cursor else "", Columns() if columns is None else columns)
    position = cursor.position if cursor else None
    with open_log(path) as file:
        as_json = _is_json(file.read(HEAD_BYTES))
        if as_json:
            lines = Lines(file, position)
            objects = Objects(lines)
            source: Source | None = Source(objects, objects, lines)
        else:
            source = _rows(path, file, position)
        if source is None:
            return Log("rllib", {}, results.settings, (NO_ROW_NOTE,), str(path)), cursor
        if source.replaced:
            results.step = ""
        for line, item in source:
            if not results.take(item):
                source.refused.add(line, f"has no {results.step or 'step'}")
        end = RLlibCursor(source.position(), results.step)
    unit = "iterations" if results.step == ITERATION_KEY else "environment steps"
    series = results.columns.drain()
    return Log("rllib", series, results.settings, tuple(source.notes()), str(path), unit), end


@dataclass(slots=True)
class Source:
    """The results of a file, whichever its format: (line, {name: value}) and how it went."""

    items: Iterable[tuple[int, dict[str, object]]]
    inner: Rows | Objects
    lines: Lines
    cells: Refusals = field(default_factory=lambda: Refusals("cell"))

    def __iter__(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield (line from 1, values) in order."""
        return iter(self.items)

    @property
    def replaced(self) -> bool:
        """True if the file is another one than the cursor's."""
        return self.lines.replaced

    @property
    def refused(self) -> Refusals:
        """The count of refused rows."""
        return self.inner.refused

    def position(self) -> Position:
        """Return the position to resume from."""
        return self.inner.position()

    def notes(self) -> list[str]:
        """Return notes for the user."""
        return [*self.inner.notes(), *self.cells.notes()]


def _rows(path: Path, file: BinaryIO, position: Position | None) -> Source | None:
    if (header := read_header(file)) is None:
        return None
    names, first = header
    if ITERATION_KEY not in names:
        raise UnreadableLog(
            f"not an RLlib log: no column {ITERATION_KEY}",
            where=f"{path}, line {first.line}",
            hint="rlvitals readers",
        )
    lines = Lines(file, position or first)
    if replaced := lines.replaced:
        lines = Lines(file, first)
        lines.replaced = replaced
    rows, cells = Rows(lines, len(names)), Refusals("cell")
    return Source(_parse_rows(names, rows, cells), rows, lines, cells)


def _parse_rows(
    names: list[str], rows: Rows, cells: Refusals
) -> Iterator[tuple[int, dict[str, object]]]:
    config: tuple[str, object] = ("", {})  # the same text on every row: parsed once
    for row in rows:
        item: dict[str, object] = {}
        for name, text in zip(names, row.fields, strict=True):
            if name == CONFIG_KEY and text == config[0]:
                item[name] = config[1]
                continue
            item[name] = _cell(name, text, row, cells)
            if name == CONFIG_KEY:
                config = (text, item[name])
        yield row.line, item


def _cell(name: str, text: str, row: Row, cells: Refusals) -> object:
    """Return a cell's value: a number, a dict, settings as they stand; None for the rest."""
    if name in IDENTITY_KEYS:
        return None
    if text.startswith("{"):
        try:
            return parse_literal(text)
        except ValueError:
            cells.add(row.line, f"has no readable dict under {name}")
            return None
    if text.startswith("["):  # lists are histograms, not numbers
        return text if name.startswith(f"{CONFIG_KEY}/") else None
    try:
        return parse_number(text)
    except ValueError:
        return text


class Results:
    """Collects the numbers and settings of results."""

    def __init__(self, step: str, columns: Columns) -> None:
        """Go on with the step column of a cursor; empty to choose it by the first row."""
        self.step = step
        self.columns = columns
        self.settings: dict[str, Setting] = {}
        self._config: object = None

    def take(self, item: Mapping[str, object]) -> bool:
        """Add one result; False where it has no step."""
        config = item.get(CONFIG_KEY)
        if isinstance(config, Mapping) and config != self._config:
            self._config = config
            self._set(dict(flatten(config, CONFIG_KEY)))
        plain = {name: value for name, value in item.items() if name != CONFIG_KEY}
        values = {key: value for key, value in flatten(plain) if key not in IDENTITY_KEYS}
        flat_config = {k: v for k, v in values.items() if k.startswith(f"{CONFIG_KEY}/")}
        if flat_config:
            self._set(flat_config)
        numbers = {k: json_number(v) for k, v in values.items() if k not in flat_config}
        self.step = self.step or next(
            (name for name in RLLIB_STEPS if to_step(numbers.get(name)) is not None), ""
        )
        step = to_step(numbers.pop(self.step, None))
        if step is None:
            return False
        time = numbers.pop("timestamp", None)
        self.columns.add_row(step, numbers.items(), NAN if time is None else time)
        return True

    def _set(self, flat: Mapping[str, object]) -> None:
        for key, value in flat.items():
            if isinstance(value, bool | int | float | str):
                self.settings[key] = value
            elif isinstance(value, list):
                self.settings[key] = str(value)[:MAX_SETTING_CHARACTERS]
        env = self.settings.get(f"{CONFIG_KEY}/env")
        if isinstance(env, str):
            self.settings["env_id"] = env


READER = Reader(
    name="rllib",
    title="RLlib results",
    looks_for="progress.csv, result.json",
    example="ray_results/PPO/PPO_CartPole-v1_0/progress.csv",
    files=("*.csv", "*.json", "*.jsonl"),
    claims=claims,
    read=read,
    read_thin=ThinReader(read),
    thins_alone=True,
)
