"""Select one run of a database: `mlflow.db/EXPERIMENT/RUN`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from rlvitals.errors import UnreadableLog
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

Run = TypeVar("Run")
MAX_HINT_RUNS = 3  # runs that a hint names


def readers(
    reader: Reader, runs: Mapping[str, Run], read: Callable[..., tuple[Log, Cursor]]
) -> dict[str, Reader]:
    """Return a database's reader for each of its runs; `read` takes the run as `run`."""
    return {
        name: replace(reader, read=partial(read, run=run), runs=None, read_thin=None, run=run)
        for name, run in runs.items()
    }


def only(path: Path, runs: Mapping[str, Run]) -> Run:
    """Return the run of a database that has one. Raises UnreadableLog where there are several."""
    if len(runs) == 1:
        return next(iter(runs.values()))
    raise UnreadableLog(
        f"a database of {len(runs)} runs: say which",
        where=str(path),
        hint=", ".join(f"{path}/{name}" for name in list(runs)[:MAX_HINT_RUNS]),
    )


def unique(runs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the ids of runs under unique names, given (name, id) in order.

    The first of a name keeps it; the others have the beginning of their id behind it. Names
    are spelt as paths are, so that a person can type them behind the file's.
    """
    ids: dict[str, str] = {}
    for title, key in runs:
        segments = [segment for segment in title.split("/") if segment not in {"", ".", ".."}]
        name = "/".join(segments) or key
        spellings = (name, f"{name} ({key[:8]})", f"{name} ({key})")
        ids[next((s for s in spellings if s not in ids), spellings[-1])] = key
    return ids
