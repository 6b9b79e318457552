"""Golden files: what is printed is compared with what was accepted."""

from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def compare_golden(path, actual, *, update):
    """Fail with the file, the first line that differs, and the way to accept it."""
    if update:
        path.write_text(actual + "\n")
        return
    name = path.relative_to(ROOT)
    accept = "accept with: make golden (pytest --update-golden); review the diff"
    assert path.exists(), f"golden file {name} does not exist; {accept}"
    expected = path.read_text().removesuffix("\n")
    lines = zip_longest(expected.split("\n"), actual.split("\n"))
    for number, (before, now) in enumerate(lines, 1):
        if before != now:
            pytest.fail(
                f"golden file {name}, line {number} differs\n"
                f"  golden: {_line(before)}\n  actual: {_line(now)}\n{accept}",
                pytrace=False,
            )


def _line(text):
    return "(no such line)" if text is None else repr(text)
