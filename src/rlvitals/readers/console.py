"""Read the console output of a trainer from a file.

The dialects (`console_dialects/`) know how trainers print numbers. A traceback, a signal or an
exit code at the end is read as what ended the run.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import field, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.metrics import languages
from rlvitals.readers import console_dialects, table_runs
from rlvitals.readers.console_dialects.dialect import Page, Parser, Shared
from rlvitals.readers.console_dialects.dicts import Dicts
from rlvitals.readers.console_dialects.endings import HINTS, End
from rlvitals.readers.console_dialects.text import STREAM_RECORDS, Pieces, record_pieces
from rlvitals.readers.discovery.run_names import own_name
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.lines import HEAD_BYTES, Position, open_log, read_head
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log

CONSOLE_SUFFIXES = (".log", ".txt", ".out", ".err")
# Read where a person names the file: `python train.py > output` names no kind.
NAMED_SUFFIXES = ("", ".md", ".markdown")
CONSOLE_TAIL_BYTES = 2**18  # looked at where the head holds no numbers yet


@dataclass(slots=True)
class _State:
    """State of a reading that the next one continues."""

    position: Position | None = None
    shared: Shared = field(default_factory=Shared)
    parsers: list[Parser] = field(
        default_factory=lambda: [d.start() for d in console_dialects.DIALECTS]
    )
    end: End = field(default_factory=End)


def claims(path: Path, head: bytes) -> bool:
    """Return True if lines of a dialect stand in the head, or in the tail of a long file."""
    if (
        path.suffix.lower() not in CONSOLE_SUFFIXES
        or b"\x00" in head
        or (
            head.lstrip().startswith((b'{"', b"[{", b"{\n", b"{}"))
            and not head.startswith(STREAM_RECORDS[0].encode())
        )
    ):
        return False
    state = _parse_sample(head)
    if _speaks(state):
        return True
    if len(head) >= HEAD_BYTES:
        state = _parse_sample(_tail(path))
    return _speaks(state) or (state.end.failed and _is_of_a_run(path))


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if a text that a person names holds such lines, or how a process failed.

    A log that ends in a traceback before the first row of numbers is a run that crashed; a
    Markdown file may have a log pasted into it. A file without a suffix is read by its lines.
    """
    if path.suffix.lower() not in {*CONSOLE_SUFFIXES, *NAMED_SUFFIXES} or b"\x00" in head:
        return False
    sample = head if len(head) < HEAD_BYTES else _tail(path)
    state = _parse_sample(sample)
    if path.suffix.lower() in NAMED_SUFFIXES:
        return any(map(_speaks, (_parse_sample(head), state)))
    if state.end.failed and not state.end.interrupted:
        return True
    samples = (head, *_middle(path), sample) if len(head) >= HEAD_BYTES else ()
    return _speaks(_parse_sample(b"\n".join(samples)))


def _middle(path: Path, samples: int = 7) -> Iterator[bytes]:
    """Give samples between the head and the tail: texts may stand before and after the rows."""
    try:
        with open_log(path) as file:
            step = file.seek(0, 2) // (samples + 1)
            for number in range(1, samples + 1 if step >= HEAD_BYTES else 1):
                file.seek(number * step)
                yield file.read(HEAD_BYTES)
    except UnreadableLog:  # reading it says so
        return


def _is_of_a_run(path: Path) -> bool:
    """Return True if a file without numbers is known to be a run's: the errors of its process."""
    try:
        # Beside the output.log of a run that W&B tracks.
        if path.name == "output.log" and (path.parent / "wandb-metadata.json").exists():
            return True
        if _is_process_output(path):
            return any(_is_named_for_content(other) for other in path.parent.iterdir())
        twins = (path.with_suffix(suffix) for suffix in (".out", ".log"))
        return path.suffix == ".err" and any(
            twin.is_file() and claims(twin, read_head(twin)) for twin in twins
        )
    except (OSError, UnreadableLog):
        return False


def _is_process_output(path: Path) -> bool:
    return path.stem.lower() in {"console", "nohup", "stdout", "stderr"}


def _is_named_for_content(path: Path) -> bool:
    """Return True for a log that is named for what it holds: it is the only run of its folder."""
    is_log = path.suffix.lower() in {*CONSOLE_SUFFIXES, ".csv", ".jsonl"} or "tfevents" in path.name
    return is_log and not _is_process_output(path) and not own_name(path)


def _tail(path: Path) -> bytes:
    try:
        with open_log(path) as file:
            end = file.seek(0, 2)
            file.seek(max(end - CONSOLE_TAIL_BYTES, 0))
            return file.read(CONSOLE_TAIL_BYTES)
    except UnreadableLog:  # reading it says so
        return b""


def _parse_sample(sample: bytes) -> _State:
    state = _State()
    page = Page(state.shared)
    text = sample.decode(errors="replace")
    for number, line in enumerate(text.replace("\r", "\n").split("\n")):
        _take_line(state, page, line, number)
    return state


def _take_line(state: _State, page: Page, line: str, number: int) -> None:
    """Take the pieces of a line, as `Pieces` gives them."""
    for piece in record_pieces(line):
        if piece and not piece.isspace():
            _take(state, page, piece, number)


def _speaks(state: _State) -> bool:
    """Return True if a sample holds rows of training, or one that waits for its step."""
    waits = any(getattr(parser, "waiting", None) for parser in state.parsers)
    return waits or state.shared.rows > 0 or state.shared.regular >= 3


def _holds(text: str, hints: Sequence[str]) -> bool:
    for hint in hints:  # noqa: SIM110 - any() with a generator takes twice the time
        if hint in text:
            return True
    return False


def _take(state: _State, page: Page, text: str, number: int) -> None:
    """Give a piece to the dialects that it may belong to, and to what watches for the end."""
    text = languages.english(text)
    page.turn(text)
    rows_before = page.shared.rows + page.shared.regular
    for dialect, parser in zip(console_dialects.DIALECTS, state.parsers, strict=True):
        if parser.open or _holds(text, dialect.hints):
            parser.take(page)
    if page.shared.rows + page.shared.regular > rows_before:
        state.end.trained()
    elif state.end.busy or _holds(text, HINTS):
        state.end.take(page.text, number)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the pieces after a cursor. Raises UnreadableLog."""
    with open_log(path) as file:
        return _read_file(file, str(path), previous)


def read_whole(path: Path) -> Log:
    """Read a text that does not grow. Raises UnreadableLog."""
    with open_log(path) as file:
        return _read_file(file, str(path), None, is_whole=True)[0]


def read_text(text: str, location: str) -> tuple[Log, bool]:
    """Return what a text holds, and True if there are rows of training in it."""
    # Pieces that end without a line break are taken for incomplete.
    file = BytesIO(f"{text}\n".encode(errors="replace"))
    log, state = _read_file(file, location, None)
    return log, _speaks(state)


def read_trainings(text: str, log: Log) -> list[Log]:
    """Return a log for each training in the text of a log: its steps start again below the last.

    One training where a counter around its steps goes on ("Epoch 2"). What is printed under the
    word "test" or "evaluation" is none.
    """
    outcomes = (k for k in log.series if column_guess.is_measure(k) and "loss" not in k)
    key = max(outcomes, key=lambda name: len(log.series[name]), default="")
    # No process resumes what it has just trained: another method may log its first row later.
    sizes = table_runs.attempt_sizes(log.series[key].steps.tolist(), 0.1) if key else []
    if not sizes:
        return [log]
    lines = text.replace("\r", "\n").split("\n")
    starts = _training_starts(lines, key, sizes)
    spans = pairwise([*(start for start, _ in starts), len(lines)])
    logs = [read_text("\n".join(lines[a:b]), log.where)[0] for a, b in spans]
    headings = [languages.english("\n".join(lines[a : b + 1])) for a, b in starts]
    if [len(training.series.get(key, ())) for training in logs] != sizes or _counts_on(headings):
        return [log]
    trainings = []
    for n, (training, heading) in enumerate(zip(logs, headings, strict=True), 1):
        first_text = re.search(r"[^\W\d_].{0,59}", heading.rpartition("\n\n")[2])
        note = f"training {n} of {len(logs)} in one output: {first_text[0] if first_text else ''!r}"
        # The first row of a training, or the line above it, may tell of a test.
        last_lines = [line for line in heading.split("\n") if line.strip()][-2:]
        if not re.search(r"(?i)\b(?:eval|test)", "\n".join(last_lines)):
            trainings.append(replace(training, notes=(*training.notes, note)))
    return trainings or [log]


def _training_starts(lines: Sequence[str], key: str, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return where each training begins, and the line of its first point of a key.

    It begins below the last line of which a number of the training before was read.
    """
    state = _State()
    page = Page(state.shared)
    bounds = [sum(sizes[:n]) for n in range(len(sizes))]
    starts: list[tuple[int, int]] = []
    last, points = -1, 0
    for number, line in enumerate(lines):
        _take_line(state, page, line, number)
        total = sum(map(page.columns.count, page.columns.keys()))
        if total != points:
            while len(starts) < len(bounds) and page.columns.count(key) > bounds[len(starts)]:
                starts.append((last + 1 if starts else 0, number))
            last, points = number, total
    return starts


def _counts_on(headings: Sequence[str]) -> bool:
    """Return True if a counter at the first row of each training grows."""
    units = "epoch|iteration|generation|episode|game|round|cycle|stage|phase|level|task"
    counter = re.compile(rf"\b({units})s?\b\W{{0,3}}(\d{{1,9}})", re.IGNORECASE)
    counts = [{unit.lower(): int(n) for unit, n in counter.findall(text)} for text in headings]
    common = set.intersection(*map(set, counts))
    return any(all(a[unit] < b[unit] for a, b in pairwise(counts)) for unit in common)


def _read_file(
    file: BinaryIO, location: str, previous: Cursor | None, *, is_whole: bool = False
) -> tuple[Log, _State]:
    state = deepcopy(previous) if isinstance(previous, _State) else _State()
    pieces = Pieces(file, state.position)
    if pieces.replaced:
        state = _State()
    page = Page(state.shared)
    for line in pieces:
        for text in record_pieces(line):
            _take(state, page, text, pieces.line + 1)
    state.position = pieces.position()
    if is_whole:
        _close(state, page)
    series = page.columns.series()
    shared = state.shared
    notes = [*pieces.notes(), *shared.notes, *state.end.notes()]
    if shared.left_out:
        notes.append(f"{quantity(shared.left_out, 'row')} left out: they count other steps")
    if not series and previous is None and state.end.ending() is None:
        notes.append("no row of numbers yet")
    settings = dict(shared.settings)
    if shared.bar and shared.bar.total and shared.unit in {"", "steps"}:
        settings.setdefault("total_steps", shared.bar.total)
    log = Log(
        source="console",
        series=series,
        settings=settings,
        notes=tuple(notes),
        where=location,
        step_unit=shared.unit or "steps",
        ending=state.end.ending(),
    )
    return log, state


def _close(state: _State, page: Page) -> None:
    """Add the rows that wait for a bar where they are most of a text: a paste ends so."""
    for parser in state.parsers:
        if isinstance(parser, Dicts) and len(parser.waiting) >= max(state.shared.rows, 1):
            parser.close(page)


READER = Reader(
    name="console",
    title="Console output of a trainer",
    looks_for="*.log, *.out, *.err or *.txt with a trainer's lines",
    example="run/train.log",
    files=("*.log", "*.txt", "*.out", "*.err"),
    claims=claims,
    read=read,
    read_whole=read_whole,
    sums_up=True,
    claims_single=claims_single,
)
