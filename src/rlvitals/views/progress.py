"""Show a progress bar on a terminal."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
MIN_PROGRESS_RUNS = 20  # fewer finish before a bar can be read


def progress(items: Iterable[T], total: int) -> Iterator[T]:
    """Yield the items, with a progress bar if stderr is a terminal."""
    if total < MIN_PROGRESS_RUNS or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415 - a small run needs no bar
    from rich.progress import track  # noqa: PLC0415

    console = Console(stderr=True)
    yield from track(items, "judging", total=total, console=console, transient=True)
