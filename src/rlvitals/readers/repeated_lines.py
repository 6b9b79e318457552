"""Read a text whose lines come again and again with other numbers, as any loop prints them.

    123: done 4 games, reward 3.4, eps 0.5, speed 99 f/s        the first number grows: the step
    Episode done: power=530.00, hottest=718.00                  rows are counted
    Episode 3/50 above lines of `Latency: 5.88 ms`              their mean is the episode's
    (0.41, 0.22)                 two numbers, the second the mean of the first so far: a score

For a file that a person names and that no other reader knows. A number is called by the words
before it, or by what it counts ("4 games"). Lines whose numbers have the same names are rows of one
kind; those with an outcome, or most of them, are the run's.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise, permutations
from pathlib import Path
from statistics import fmean

import numpy as np

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
from rlvitals.signals.finite import Array
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.startup.lazy_pattern import lazy_pattern
from rlvitals.types import Log

CELL = lazy_pattern(
    rf"(?<![\w.])(?P<number>{NUMBER})(?:\s?/\s?(?P<total>\d+))?"
    r"(?P<unit> ?%|(?:[a-zA-Zµ]{1,8}(?:/[a-z]{1,8})?)?)(?![\w.]*\d)"
)
COUNTED_UNIT = lazy_pattern(
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
        index = self.names.index(name)
        return [row[index] for row in self.rows]

    @property
    def has_outcome(self) -> bool:
        return any(column_guess.is_measure(n) and "loss" not in n for n in self.names)

    @property
    def varies(self) -> bool:
        return any(len(set(self.column(name))) > 2 for name in self.names)

    @cached_property
    def step(self) -> str:
        """Name of the number that counts the rows; empty where none does."""
        counters = column_guess.step_keys(self.names)
        counters += [name for name in self.names[:1] if not column_guess.is_measure(name)]
        return next((name for name in counters if grows(self.column(name))), "")


def grows(values: Sequence[float]) -> bool:
    """Return True if each of some whole numbers is above the one before."""
    is_whole = all(to_step(value) is not None for value in values)
    return is_whole and all(a < b for a, b in pairwise(values))


def parse_line(text: str) -> tuple[tuple[str, ...], list[float]]:
    """Return the names of a line's numbers and the numbers; none for a line without."""
    text = console_text.plain(languages.english(text))
    counter = re.match(r"\s*\d{1,4}: ", text)  # a loop's number, or srun's of the process
    text = (counter[0] if counter else "") + console_text.message(text)
    names: list[str] = []
    numbers: list[float] = []
    start = 0
    if len(text) > 400:  # characters: no row of a loop
        return (), []
    for cell in CELL.finditer(text):
        value = number(cell["number"])
        if value is None or len(names) == 24:
            return (), []
        # Up to four words since the last mark name the number.
        marks = r"[|,;\t()\[\]{}]|\s{3,}|[.:!]\s|\s[-–>]+\s"
        phrase = re.split(marks, text[start : cell.start()].rstrip(" :=#>-~\t([{"))[-1]
        terms = re.findall(r"[^\W\d]\w*", phrase)
        name, end = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", "_".join(terms[-4:])).lower(), cell.end()
        if unit := COUNTED_UNIT.match(text, cell.end("number")):
            name, end = unit[1].lower(), unit.end()
        name = name or cell["unit"].strip() or f"column {len(names) + 1}"
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
        numbers.append(value / 100.0 if cell["unit"].strip() == "%" else value)
        start = end
    return tuple(names), numbers


def _kinds(text: str, min_lines: int = 10) -> list[_Kind]:
    """Return the kinds of lines that come often enough, and hold numbers that differ."""
    kinds: dict[tuple[str, ...], _Kind] = {}
    for line_number, line in enumerate(text.replace("\r", "\n").split("\n")):
        names, numbers = parse_line(line) if any(map(str.isdigit, line)) else ((), [])
        if not names or (names not in kinds and len(kinds) >= 2000):
            continue
        kind = kinds.setdefault(names, _Kind(names, line))
        kind.lines.append(line_number)
        kind.rows.append(numbers)
    often = [k for k in kinds.values() if len(k.rows) >= min_lines and k.varies]
    for kind in often:
        _name_scores(kind)
    return often


def _main(kinds: Iterable[_Kind]) -> _Kind | None:
    """Return the kind of a run's rows; None where no line is one of a training."""
    training_words = (
        r"(?i)(?<![a-z])(?:episodes?|epochs?|iter(?:ation)?s?|generations?|(?:time)?steps?|games?"
        r"|frames?|rewards?|returns?|scores?|loss|eps(?:ilon)?|wins?|train(?:ing)?)(?![a-z])"
    )
    training = [
        kind
        for kind in kinds
        if "score" in kind.names
        or (
            any(not name.startswith("column ") for name in kind.names)
            and re.search(training_words, languages.english(kind.first_text))
        )
    ]
    return max(training, key=lambda k: (k.has_outcome, bool(k.step), len(k.rows)), default=None)


def _name_scores(kind: _Kind) -> None:
    """Name a number without a name, and its mean so far: only what counts is averaged."""
    columns = np.array(kind.rows).T
    unnamed = [n for n, name in enumerate(kind.names) if name.startswith("column ")]
    for mean, value in permutations(unnamed, 2):
        if any(_is_mean(columns[mean], columns[value], window) for window in (0, 10, 100)):
            names = {value: "score", mean: "mean_score"}
            kind.names = tuple(names.get(n, name) for n, name in enumerate(kind.names))
            return


def _is_mean(means: Array, values: Array, window: int) -> bool:
    """Return True for the means of the last `window` values; of all values where it is 0."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - window, 0) if window else np.zeros_like(end)
    expected = (sums[end] - sums[start]) / (end - start)
    near = np.isclose(means, expected, rtol=1e-3, atol=0.006)  # as two digits print it
    return bool(np.ptp(values) > 0.1 and near.mean() > 0.95)


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
    text = read_document(path).decode("utf-8-sig", errors="replace")
    whole_lines = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]  # the last may be cut
    log = read_text(whole_lines, str(path), 9)  # of the ten lines that claim a file
    if log is None:
        raise UnreadableLog("no lines that come again", where=str(path), hint="wait for more")
    series, cursor, replaced = points_after(log.series, previous)
    return Log(log.source, series, {}, (*replaced, *log.notes), str(path), log.step_unit), cursor


def read_text(text: str, location: str, min_lines: int = 10) -> Log | None:
    """Return the rows of a text; None where no line of a training comes often enough."""
    kinds = _kinds(text, min_lines)
    main = _main(kinds)
    if main is None:
        return None
    lines = text.replace("\r", "\n").split("\n")
    starts = _training_starts(lines, main.lines)
    last = "\n".join(lines[starts[-1] :])
    if len(starts) > 1 and (log := read_text(last, location, min_lines)):
        note = f"{len(starts)} trainings: the last one is judged, from line {starts[-1] + 1:,}"
        return replace(log, notes=(*log.notes, note))
    headings = [k for k in kinds if k is not main and len(k.names) == 1 and k.step]
    counter = main if main.step or not headings else headings[0]
    steps = counter.column(counter.step) if counter.step else range(1, len(main.rows) + 1)
    unit = column_guess.step_unit(counter.step) if counter.step else "rows"
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for kind in (main, *(k for k in kinds if k is not main and k is not counter)):
        # A line belongs to the last row before it, or to the next one if lines stand above rows.
        is_above = bool(kind.lines and kind.lines[0] < counter.lines[0])
        indices = (
            np.searchsorted(counter.lines, np.array(kind.lines) - is_above, side="right")
            - 1
            + is_above
        )
        row_indices = [min(int(index), len(counter.lines) - 1) for index in indices]
        for name in kind.names:
            if name == counter.step or (kind is not main and name in main.names):
                continue
            key = name_in_row(name, counter.step)
            for row, value in zip(row_indices, kind.column(name), strict=True):
                values[key, int(steps[row])].append(value)
    columns = Columns()
    for (name, step), of_step in values.items():
        columns.add(name, step, fmean(of_step))
    notes = () if counter.step else (lists.NUMBERED_NOTE,)
    return Log("repeated-lines", columns.series(), {}, notes, location, unit)


def _training_starts(lines: Sequence[str], rows: Sequence[int]) -> list[int]:
    """Return where each training begins: all that stands above the first row comes again."""
    opening = _plain_texts(lines[: rows[0]])
    starts = [0]
    for last, row in pairwise(rows):
        texts = _plain_texts(lines[last + 1 : row]) if row - last > len(opening) else []
        if texts and texts[-len(opening) :] == opening:
            starts.append(last + 1)
    counts = np.diff(np.searchsorted(rows, [*starts, len(lines)]))
    are_trainings = len({*opening}) > 2 and len(starts) <= 20 and counts.min() >= 5
    return starts if are_trainings else starts[:1]


def _plain_texts(lines: Iterable[str]) -> list[str]:
    """Return what lines with letters say, without dates and other long numbers."""
    texts = (console_text.message(console_text.plain(line)) for line in lines)
    texts = (re.sub(r"\d[\d_:.-]{5,}", "", text) for text in texts)
    return [text for text in texts if re.search(r"[^\W\d_]", text)]


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
