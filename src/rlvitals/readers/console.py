"""Console output of training: what a trainer prints, kept in a file.

The dialects (`console_dialects/`) know how trainers print numbers. A traceback, a signal or an
exit code at the end is read as what ended the run.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.console_dialects import DIALECTS
from rlvitals.readers.console_dialects.dialect import Page, Parser, Shared
from rlvitals.readers.console_endings import HINTS, End
from rlvitals.readers.console_text import Pieces
from rlvitals.readers.lines import HEAD_BYTES, Position, opened
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.records import Log

SUFFIXES = (".log", ".txt", ".out", ".err")
TAIL_BYTES = 2**18  # looked at where the head holds no numbers yet
FEW = 3  # regular lines that make a log
NOTHING = "no row of numbers yet"


@dataclass(slots=True)
class _State:
    """What a reading leaves for the next one."""

    position: Position | None = None
    shared: Shared = field(default_factory=Shared)
    parsers: list[Parser] = field(default_factory=lambda: [d.start() for d in DIALECTS])
    end: End = field(default_factory=End)


def claims(path: Path, head: bytes) -> bool:
    """Tell whether lines of a dialect stand in the head, or in the tail of a long file."""
    if path.suffix.lower() not in SUFFIXES or b"\x00" in head or head.lstrip()[:1] == b"{":
        return False
    if _speaks(head):
        return True
    return len(head) >= HEAD_BYTES and _speaks(_tail(path))


def _tail(path: Path) -> bytes:
    try:
        with opened(path) as file:
            end = file.seek(0, 2)
            file.seek(max(end - TAIL_BYTES, 0))
            return file.read(TAIL_BYTES)
    except UnreadableLog:  # reading it says so
        return b""


def _speaks(sample: bytes) -> bool:
    state = _State()
    page = Page(state.shared)
    text = sample.decode(errors="replace")
    for number, piece in enumerate(text.replace("\r", "\n").split("\n")):
        _take(state, page, piece, number)
    return state.shared.rows > 0 or state.shared.regular >= FEW or _waits(state)


def _waits(state: _State) -> bool:
    return any(parser.open and getattr(parser, "waiting", None) for parser in state.parsers)


def _take(state: _State, page: Page, text: str, number: int) -> None:
    """Give a piece to the dialects that it may belong to, and to what watches for the end."""
    page.turn(text)
    before = page.shared.rows + page.shared.regular
    for dialect, parser in zip(DIALECTS, state.parsers, strict=True):
        if parser.open or any(hint in text for hint in dialect.hints):
            parser.take(page)
    if page.shared.rows + page.shared.regular > before:
        state.end.trained()
    elif state.end.busy or any(hint in text for hint in HINTS):
        state.end.take(page.text, number)


def read(path: Path, since: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the pieces after a cursor. Raises UnreadableLog."""
    state = deepcopy(since) if isinstance(since, _State) else _State()
    with opened(path) as file:
        pieces = Pieces(file, state.position)
        if pieces.replaced:
            state = _State()
        page = Page(state.shared)
        for text in pieces:
            _take(state, page, text, pieces.line + 1)
        state.position = pieces.position()
    series = page.columns.series()
    shared = state.shared
    notes = [*pieces.notes(), *shared.notes, *state.end.notes()]
    if shared.left_out:
        notes.append(f"{shared.left_out:,} rows left out: they count other steps")
    if not series and since is None:
        notes.append(NOTHING)
    settings = dict(shared.settings)
    if shared.bar and shared.bar.total and shared.unit in {"", "steps"}:
        settings.setdefault("total_steps", shared.bar.total)
    log = Log(
        source="console",
        series=series,
        settings=settings,
        notes=tuple(notes),
        where=str(path),
        step_unit=shared.unit or "steps",
        ending=state.end.ending(),
    )
    return log, state


READER = Reader(
    name="console",
    title="Console output of a trainer",
    looks_for="*.log, *.out, *.err or *.txt with a trainer's lines",
    example="run/train.log",
    files=("*.log", "*.txt", "*.out", "*.err"),
    claims=claims,
    read=read,
)
