"""How far many runs have come, for a person at a terminal."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
MANY = 20  # runs: fewer are done before one has read the line


def progress(items: Iterable[T], total: int) -> Iterator[T]:
    """Pass items on; where stderr is a terminal, count them there until the last has come."""
    if total < MANY or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415 - a small run needs no bar
    from rich.progress import track  # noqa: PLC0415

    console = Console(stderr=True)
    yield from track(items, "judging", total=total, console=console, transient=True)
