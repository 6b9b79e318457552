"""Read a text whose lines come again and again with other numbers, as any loop prints them.

    123: done 4 games, reward 3.4, eps 0.5, speed 99 f/s        the first number grows: the step
    Episode done: power=530.00, hottest=718.00                  rows are counted
    Episode 3/50 above lines of `Latency: 5.88 ms`              their mean is the episode's

For a file that a person names and that no other reader knows. A number is called by the words
before it, or by what it counts ("4 games"). Lines whose numbers have the same names are rows of one
kind; those with an outcome, or most of them, are the run's.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean

from rlvitals.errors import UnreadableLog
from rlvitals.metrics import languages
from rlvitals.readers.console_dialects import text as console_text
from rlvitals.readers.console_dialects.dialect import number
from rlvitals.readers.console_dialects.line_forms import NUMBER
from rlvitals.readers.console_dialects.pairs import name_in_row
from rlvitals.readers.formats import column_guess, lists
from rlvitals.readers.formats.columns import Columns, to_step
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

MIN_LINES = 10  # of one kind
MAX_LINE_CHARACTERS = 400  # longer ones are no rows of a loop
MAX_NUMBERS = 24  # in a line
MAX_KINDS = 2000  # of lines: a text of prose has as many as lines
# Words of which a line of training has at least one.
TRAINING_WORDS = re.compile(
    r"(?<![a-z])(?:episodes?|epochs?|iter(?:ation)?s?|generations?|(?:time)?steps?|games?|frames?"
    r"|rewards?|returns?|scores?|loss|eps(?:ilon)?|wins?|train(?:ing)?)(?![a-z])",
    re.IGNORECASE,
)
CELL = re.compile(
    rf"(?<![\w.])(?P<number>{NUMBER})(?:\s?/\s?(?P<total>\d+))?"
    r"(?P<unit> ?%|(?:[a-zA-Zµ]{1,8}(?:/[a-z]{1,8})?)?)(?![\w.]*\d)"
)
COUNTED = re.compile(
    r"\s?(games?|episodes?|(?:time)?steps?|frames?|iterations?|epochs?|wins|losses|draws|moves)"
    r"(?![\w/])",
    re.IGNORECASE,
)


@dataclass
class _Kind:
    """The lines whose numbers have the same names."""

    names: tuple[str, ...]
    first_text: str
    lines: list[int] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)

    def column(self, name: str) -> list[float]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    @property
    def has_outcome(self) -> bool:
        return any(column_guess.is_measure(n) and "loss" not in n for n in self.names)

    @property
    def varies(self) -> bool:
        return any(len(set(self.column(name))) > 2 for name in self.names)

    @cached_property
    def step(self) -> str:
        """Name of the number that counts the rows; empty where none does."""
        counters = [*column_guess.step_keys(self.names), *self.names[:1]]
        return next((name for name in counters if grows(self.column(name))), "")


def grows(values: Sequence[float]) -> bool:
    """Return True if each of some whole numbers is above the one before."""
    is_whole = all(to_step(value) is not None for value in values)
    return is_whole and all(a < b for a, b in zip(values, values[1:], strict=False))


def parse_line(text: str) -> tuple[tuple[str, ...], list[float]]:
    """Return the names of a line's numbers and the numbers; none for a line without."""
    text = console_text.plain(languages.english(text))
    counted = re.match(r"\s*\d{1,4}: ", text)  # a loop's number, or srun's of the process
    text = (counted[0] if counted else "") + console_text.message(text)
    names: list[str] = []
    numbers: list[float] = []
    at = 0
    if len(text) > MAX_LINE_CHARACTERS:
        return (), []
    for cell in CELL.finditer(text):
        value = number(cell["number"])
        if value is None or len(names) == MAX_NUMBERS:
            return (), []
        name, end = _words(text[at : cell.start()]), cell.end()
        if unit := COUNTED.match(text, cell.end("number")):
            name, end = unit[1].lower(), unit.end()
        name = name or cell["unit"].strip() or f"column {len(names) + 1}"
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
        numbers.append(value / 100.0 if cell["unit"].strip() == "%" else value)
        at = end
    return tuple(names), numbers


def _words(text: str) -> str:
    """Return the words that name the number after a text: up to four, since the last mark."""
    part = re.split(r"[|,;\t()\[\]{}]|\s{3,}|[.:!]\s|: |\s[-–>]+\s", text.rstrip(" :=#>-~\t([{"))[-1]
    words = re.findall(r"[^\W\d]\w*", part)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", "_".join(words[-4:])).lower()


def _kinds(text: str) -> list[_Kind]:
    """Return the kinds of lines that come often enough, and hold numbers that differ."""
    kinds: dict[tuple[str, ...], _Kind] = {}
    for place, line in enumerate(text.replace("\r", "\n").split("\n")):
        names, numbers = parse_line(line) if any(map(str.isdigit, line)) else ((), [])
        if not names or (names not in kinds and len(kinds) >= MAX_KINDS):
            continue
        kind = kinds.setdefault(names, _Kind(names, line))
        kind.lines.append(place)
        kind.rows.append(numbers)
    return [k for k in kinds.values() if len(k.rows) >= MIN_LINES and k.varies]


def _main(kinds: Iterable[_Kind]) -> _Kind | None:
    """Return the kind of a run's rows; None where no line is one of a training."""
    training = [k for k in kinds if _is_of_training(k)]
    return max(training, key=lambda k: (k.has_outcome, bool(k.step), len(k.rows)), default=None)


def _is_of_training(kind: _Kind) -> bool:
    text = languages.english(kind.first_text)
    is_named = any(not name.startswith("column ") for name in kind.names)
    return is_named and TRAINING_WORDS.search(text) is not None


def claims(_path: Path, _head: bytes) -> bool:
    """Return False: only a person can say that such a text is a run's log."""
    return False


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the beginning of a text holds such lines of a training."""
    suffix = path.suffix.lower()
    is_text = suffix in {".log", ".txt", ".out", ".err", "", ".md"} and b"\x00" not in head
    return is_text and _main(_kinds(head.decode(errors="replace"))) is not None


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points after a cursor. Raises UnreadableLog."""
    log = read_text(read_document(path).decode("utf-8-sig", errors="replace"), str(path))
    if log is None:
        raise UnreadableLog("no lines that come again", where=str(path), hint="wait for more")
    series, cursor, replaced = points_after(log.series, previous)
    return Log(log.source, series, {}, (*replaced, *log.notes), str(path), log.step_unit), cursor


def read_text(text: str, location: str) -> Log | None:
    """Return the rows of a text; None where no line of a training comes often enough."""
    kinds = _kinds(text)
    main = _main(kinds)
    if main is None:
        return None
    headings = [k for k in kinds if k is not main and len(k.names) == 1 and k.step]
    counter = main if main.step or not headings else headings[0]
    steps = counter.column(counter.step) if counter.step else range(1, len(main.rows) + 1)
    unit = column_guess.step_unit(counter.step) if counter.step else "rows"
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for kind in (main, *(k for k in kinds if k is not main and k not in headings)):
        places = _place(kind.lines, counter.lines)
        for name in kind.names:
            if name == counter.step or (kind is not main and name in main.names):
                continue
            key = name_in_row(name, counter.step)
            for place, value in zip(places, kind.column(name), strict=True):
                values[key, int(steps[place])].append(value)
    columns = Columns()
    for (name, step), of_step in values.items():
        columns.add(name, step, fmean(of_step))
    notes = () if counter.step else (lists.NUMBERED_NOTE,)
    return Log("repeated-lines", columns.series(), {}, notes, location, unit)


def _place(lines: Sequence[int], counted: Sequence[int]) -> list[int]:
    """Return the row, of those at the lines `counted`, that each of other lines belongs to.

    The last row before a line; where the lines begin before the first row, the next one.
    """
    places = []
    at, is_above = -1, bool(lines and lines[0] < counted[0])
    for line in lines:
        while at + 1 < len(counted) and counted[at + 1] <= line - is_above:
            at += 1
        places.append(min(at + is_above, len(counted) - 1))
    return places


READER = Reader(
    name="repeated-lines",
    title="Lines that a loop prints again and again",
    looks_for="a text that is named, with ten lines of the same words and other numbers",
    example="run/output.txt",
    files=(),
    claims=claims,
    read=read,
    claims_single=claims_single,
)
