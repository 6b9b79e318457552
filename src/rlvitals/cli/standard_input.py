"""Save a log from standard input: `rlvitals diagnose -`."""

import sys
from pathlib import Path

from rlvitals.errors import UsageError

STDIN_PATH = Path("-")


def save(folder: Path) -> Path:
    """Save standard input in a folder, its suffix by its content; return the file.

    Raises UsageError if it is empty or larger than 64 MiB.
    """
    limit = 2**26
    data = sys.stdin.buffer.read(limit + 1)
    if not data.strip() or len(data) > limit:
        problem = "holds nothing" if len(data) <= limit else f"is over {limit // 2**20} MiB"
        raise UsageError(f"standard input {problem}", hint="paste a log, or name its file")
    start = data.lstrip()[:2]
    # Python prints dicts with single quotes: rows of a console log, no JSON.
    document = start[:1] in {b"{", b"["} and start != b"{'" and data.rstrip()[-1:] in {b"}", b"]"}
    suffix = "json" if document else "txt"
    if document and b'"nbformat"' in data and b'"cells"' in data:
        suffix = "ipynb"
    file = folder / f"standard-input.{suffix}"
    # Pasted text often lacks the final newline, and readers skip an unfinished line.
    file.write_bytes(data.rstrip() + b"\n")
    return file
