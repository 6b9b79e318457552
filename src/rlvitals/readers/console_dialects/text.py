"""A console log as text: pieces between line breaks and carriage returns, colours, prefixes, times.

    pieces = Pieces(file, since)            # since: a Position, or None for the start
    for text in pieces: ...
    cursor = pieces.position()              # after the last complete piece

A progress bar writes its whole history between two newlines, each state after a carriage
return: each state is a piece. Text after the last break is still being written.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO

from rlvitals.readers.formats.columns import NAN
from rlvitals.readers.formats.lines import BOM, REPLACED_NOTE, Position, is_replaced, position_at
from rlvitals.startup.lazy_pattern import lazy_pattern

MAX_PIECE_BYTES = 2**18  # longer ones are no lines of numbers: skipped and counted
ANSI = lazy_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-Z\\-_])")
DATE = lazy_pattern(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
# Who prints: `(TaskRunner pid=123, ip=10.0.0.1) `, `[rank0]:`, `[default3]:`, `0: ` of srun -l.
SPEAKER = lazy_pattern(
    r"(?:\x1b\[\d+m)?\([\w .-]{1,60} pid=\d+(?:, ip=[\d.]+)?\)(?:\x1b\[0m)? ?"
    r"|\[(?:rank|default)\d+\]: ?"
    r"|\d{1,4}: (?=\S)"
)
LEVEL_WORDS = ("DEBUG", "INFO", "NOTICE", "WARNING", "WARN", "ERROR", "CRITICAL", "SUCCESS")
LEVEL_PATTERN = f"(?:{'|'.join(LEVEL_WORDS)})"
# What logging puts before a message: dates, times of day, levels, modules, in any order.
PREFIX = lazy_pattern(
    rf"\s*(?:\[?{DATE.pattern}\]?|\[?\d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?\]?|\d\d-\d\d(?= \d\d:)"
    rf"|-?\[?{LEVEL_PATTERN}(?: *\])?(?=[\s:|>-]|\[|$)|\[{LEVEL_PATTERN}\|[^\]]{{1,80}}\]"
    r"|\[[\w./-]{1,60}\.py:\d+\]|[\w./-]{1,60}\.py:\d+"
    r"|[\w.]{1,60}:[\w<>]{1,60}:\d+(?= - )"
    r"|\[(?=[^\]]{0,30}[._])[\w.]{1,60}\](?=[\s:\[-])"
    r"|(?<=:)[\w.]{1,60}(?=:)|(?<=- )[\w.]{1,60}(?= - )|[\w.]{1,60}(?= - (?:DEBUG|INFO|WARN))"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,6} +\d{1,9} [\w./-]{1,60}:\d{1,6}\]"  # absl's, glog's
    r"|>>|[:|>-](?=\s|$)|(?<=INFO):(?=\S))"
)
# Kaggle's log of a notebook: a JSON list of what each stream printed, one record a line.
STREAM_RECORDS = ('[{"stream_name":', ',{"stream_name":')
# A logger's name after its level: `INFO trainer: step 10`, but not `INFO loss: 0.5`.
LOGGER = lazy_pattern(r"\s*[\w.]{1,60}:(?=\s+(?!nan|inf)[^\s\d.+-])")


def record_pieces(text: str) -> list[str]:
    """Return the pieces that a line holds: its own, or those of a notebook's stream record."""
    if not text.startswith(STREAM_RECORDS):
        return [text]
    try:
        data = json.loads(text.strip().lstrip("[,").removesuffix("]"))["data"]
    except (ValueError, KeyError, TypeError):
        return [text]
    pieces = str(data).replace("\r", "\n").split("\n")
    return [piece for piece in pieces if piece and not piece.isspace()]


def plain(text: str) -> str:
    """Return a piece without its colours and cursor movements."""
    return ANSI.sub("", text) if "\x1b" in text else text


def without_speaker(text: str) -> str:
    """Return a line without what says which of several processes printed it."""
    speaker = SPEAKER.match(text)
    return text[speaker.end() :] if speaker else text


def message(text: str) -> str:
    """Return what a line says, without speaker, date, level and module before it."""
    text = without_speaker(text)
    at = 0
    for _ in range(10):
        found = PREFIX.match(text, at)
        if found is None or found.end() == at:
            break
        at = found.end()
        if text[found.start() : at].strip(" []-") in LEVEL_WORDS:
            named = LOGGER.match(text, at)
            at = named.end() if named else at
    return text[at:].strip()


def printed_at(text: str) -> float:
    """Return the date before a message, in epoch seconds; NaN where there is none.

    A date without a zone is the local time of this machine, as loggers print it.
    """
    found = DATE.search(text, 0, 80)  # a date further on is text
    if found is None:
        return NAN
    try:
        return datetime.fromisoformat(found[0]).timestamp()
    except (ValueError, OverflowError, OSError):
        return NAN


class Pieces:
    """Iterates over the complete pieces after a Position; see the module for its use."""

    def __init__(self, file: BinaryIO, since: Position | None = None) -> None:
        """Go to `since`; to the start where the file before it is no longer the same."""
        since = since or Position()
        self.replaced = is_replaced(file, since)
        start = Position() if self.replaced else since
        self.skipped = 0  # pieces over MAX_PIECE_BYTES
        self.line = start.line  # lines before the piece that is given out
        self._file, self._offset = file, start.offset

    def position(self) -> Position:
        """Return where to go on: after the last complete piece."""
        return position_at(self._file, self._offset, self.line)

    def notes(self) -> list[str]:
        """Say what a person should know of this reading: empty where all is well."""
        notes = [REPLACED_NOTE] if self.replaced else []
        if self.skipped:
            some = "1 line" if self.skipped == 1 else f"{self.skipped:,} lines"
            notes.append(f"{some} over {MAX_PIECE_BYTES // 2**10} KiB skipped")
        return notes

    def __iter__(self) -> Iterator[str]:
        """Yield every complete piece that is not blank once, in order."""
        at = self._offset
        rest, lost = b"", 0  # what has no break yet; how much of it was too long to hold
        while True:
            self._file.seek(at)
            chunk = self._file.read(2**20)
            if not chunk:
                return
            at += len(chunk)
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if not end:
                rest += chunk
                if len(rest) > MAX_PIECE_BYTES:
                    rest, lost = b"", lost + len(rest)
                continue
            whole, rest = rest + chunk[:end], chunk[end:]
            yield from self._pieces(whole, first_is_lost=lost > 0)
            self._offset = at - len(rest)
            lost = 0

    def _pieces(self, whole: bytes, *, first_is_lost: bool) -> Iterator[str]:
        if self._offset == 0:
            whole = whole.removeprefix(BOM)
        for number, line in enumerate(whole.split(b"\n")):
            self.line += number > 0
            for place_in_line, piece in enumerate(line.split(b"\r")):
                first = number == place_in_line == 0
                if len(piece) > MAX_PIECE_BYTES or (first and first_is_lost):
                    self.skipped += 1
                elif piece and not piece.isspace():
                    yield piece.decode(errors="replace")
