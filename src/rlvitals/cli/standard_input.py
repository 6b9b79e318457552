"""A log that is pasted or piped: `rlvitals diagnose -`."""

import sys
from pathlib import Path

from rlvitals.errors import UsageError

SIGN = Path("-")
NAME = "standard-input"
MAX_BYTES = 2**26


def save(folder: Path) -> Path:
    """Write what standard input holds into a folder, named for what it starts as; return where.

    Raises UsageError where it is empty or larger than MAX_BYTES.
    """
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not data.strip() or len(data) > MAX_BYTES:
        what = "holds nothing" if len(data) <= MAX_BYTES else f"is over {MAX_BYTES // 2**20} MiB"
        raise UsageError(f"standard input {what}", hint="paste a log, or name its file")
    start = data.lstrip()[:2]
    # Python prints dicts with single quotes: rows of a console log, no JSON.
    document = start[:1] in {b"{", b"["} and start != b"{'" and data.rstrip()[-1:] in {b"}", b"]"}
    file = folder / f"{NAME}.{'json' if document else 'txt'}"
    # A paste often lacks the last line's end, and a line without one is left for later.
    file.write_bytes(data.rstrip() + b"\n")
    return file
