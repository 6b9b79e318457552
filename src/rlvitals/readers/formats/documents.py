"""Return the new points of a log that is rewritten completely.

    series, cursor, notes = points_after(columns.series(), since)

A cursor holds, of each column, how many points were read and a checksum of them.
"""

import zlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.lines import REPLACED_NOTE, open_log
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

MAX_DOCUMENT_BYTES = 2**28  # the document is read into memory


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """The number of points and their checksum, by column."""

    columns: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def read_document(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableLog where it cannot be read or is too large."""
    with open_log(path) as file:
        data = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise UnreadableLog(
            f"a document of more than {MAX_DOCUMENT_BYTES // 2**20} MiB",
            where=str(path),
            hint="write one row a line, as CSV or JSON lines",
        )
    return data


def points_after(
    series: Mapping[str, Series], previous: object
) -> tuple[dict[str, Series], DocumentCursor, list[str]]:
    """Return the points after a cursor, the new cursor, and a note where the old one is void."""
    cursor = DocumentCursor(
        {key: (len(column), _checksum(column)) for key, column in series.items()}
    )
    old_columns = previous.columns if isinstance(previous, DocumentCursor) else {}
    is_prefix = all(
        key in series and count <= len(series[key]) and _checksum(series[key], count) == checksum
        for key, (count, checksum) in old_columns.items()
    )
    if not is_prefix:
        return dict(series), cursor, [REPLACED_NOTE]
    tails = {
        key: column.where(slice(old_columns.get(key, (0, 0))[0], None))
        for key, column in series.items()
    }
    return tails, cursor, []


def _checksum(series: Series, count: int | None = None) -> int:
    mark = 0
    for column in (series.steps, series.times, series.values):
        mark = zlib.crc32(column[:count].tobytes(), mark)
    return mark
