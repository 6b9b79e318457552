"""A log that is rewritten as a whole: what of it is new since the last reading.

    series, cursor, notes = points_after(columns.series(), since)

A cursor holds, of each column, how many points were read and a checksum of them.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.lines import REPLACED, opened
from rlvitals.types import Series

MAX_BYTES = 2**28  # a document is held as a whole


@dataclass(frozen=True, slots=True)
class Seen:
    """The number of points and their checksum, by column."""

    columns: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def content(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableLog where it cannot be read or is too large."""
    with opened(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnreadableLog(
            f"a document of more than {MAX_BYTES // 2**20} MiB",
            where=str(path),
            hint="write one row a line, as CSV or JSON lines",
        )
    return data


def points_after(
    series: Mapping[str, Series], since: object
) -> tuple[dict[str, Series], Seen, list[str]]:
    """Return the points after a cursor, the new cursor, and a note where the old one is void."""
    now = Seen({key: (len(one), _checksum(one)) for key, one in series.items()})
    before = since.columns if isinstance(since, Seen) else {}
    known = all(
        key in series and count <= len(series[key]) and _checksum(series[key], count) == checksum
        for key, (count, checksum) in before.items()
    )
    if not known:
        return dict(series), now, [REPLACED]
    tails = {key: one.where(slice(before.get(key, (0, 0))[0], None)) for key, one in series.items()}
    return tails, now, []


def _checksum(series: Series, count: int | None = None) -> int:
    mark = 0
    for column in (series.steps, series.times, series.values):
        mark = zlib.crc32(column[:count].tobytes(), mark)
    return mark
