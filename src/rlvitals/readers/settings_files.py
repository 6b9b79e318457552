"""Files that hold a run's settings and nothing else, as its trainer writes them beside the log."""

from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.lines import opened
from rlvitals.readers.objects import flatten, parse_object
from rlvitals.records import Setting

NAMES = frozenset({"params.json", "args.json", "config.json"})
MAX_BYTES = 4 * 2**20


def is_settings(path: Path) -> bool:
    """Tell by its name whether a file holds settings."""
    return path.name in NAMES


def beside(path: Path) -> tuple[Path, ...]:
    """Return the files of settings in a log's folder, sorted."""
    return tuple(sorted(file for name in NAMES if (file := path.parent / name).is_file()))


def read(path: Path) -> tuple[dict[str, Setting], list[str]]:
    """Return the settings under their own names, nested ones joined by "/", and notes."""
    try:
        with opened(path) as file:
            item = parse_object(file.read(MAX_BYTES).decode(errors="replace"))
    except UnreadableLog as error:
        return {}, [error.problem]
    if item is None:
        return {}, ["not JSON: its settings are not known"]
    flat = {k: v for k, v in flatten(item) if isinstance(v, bool | int | float | str)}
    return flat, []
