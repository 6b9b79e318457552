"""Which reader reads a file."""

import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers import READERS, plain_csv
from rlvitals.readers.lines import read_head
from rlvitals.readers.reader import Reader


def looked_for() -> str:
    """List the files that the readers look for."""
    kinds = (kind for reader in READERS for kind in reader.looks_for.split(", "))
    return ", ".join(dict.fromkeys(kinds))


@lru_cache(maxsize=1)
def _names() -> re.Pattern[str]:
    patterns = {pattern for reader in READERS for pattern in reader.files}
    return re.compile("|".join(translate(pattern) for pattern in sorted(patterns)))


def may_be_log(path: Path) -> bool:
    """Tell by its name alone whether a file in a folder is worth opening."""
    return _names().match(path.name.lower()) is not None


def claim(path: Path) -> Reader | None:
    """Return the reader that claims a file. Raises UnreadableLog where it cannot be opened."""
    head = read_head(path)
    return next((reader for reader in READERS if reader.claims(path, head)), None)


def reader_of(path: Path) -> Reader:
    """Return the reader that claims a file. Raises UnreadableLog where none does."""
    if reader := claim(path):
        return reader
    head = read_head(path)
    problem = "not a training log that any reader knows" if head else "the file is empty"
    table = plain_csv.head_of(head)
    columns = f", a table with the columns {', '.join(table.names[:12])}" if table else ""
    raise UnreadableLog(
        problem,
        where=f"{path}{columns}",
        hint=f"point at one of these, or at the folder that holds it: {looked_for()}",
    )
