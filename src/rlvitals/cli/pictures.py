"""Pictures into a folder, for the commands that draw."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.errors import UsageError, nearest
from rlvitals.options import Plot

if TYPE_CHECKING:  # it loads numpy
    from rlvitals.views.figures.figure import Picture

FORMATS = ("png", "svg", "pdf", "json")
LEAST_DPI, MOST_DPI = 20, 1200


def check(chosen: Plot) -> None:
    """Refuse what cannot be drawn. Raises UsageError."""
    for name in chosen.format:
        if name not in FORMATS:
            hint = nearest(name, FORMATS) or f"one of {', '.join(FORMATS)}"
            raise UsageError(f"no picture is written as {name!r}", where="--format", hint=hint)
    if not LEAST_DPI <= chosen.dpi <= MOST_DPI:
        raise UsageError(
            f"{chosen.dpi} pixels to the inch cannot be drawn",
            where="--dpi",
            hint=f"{LEAST_DPI} to {MOST_DPI}",
        )


def write(pictures: "Iterable[Picture]", folder: Path, chosen: Plot) -> list[str]:
    """Draw pictures into a folder, which is made; return the files' names. Raises UsageError."""
    from rlvitals.storage.safe_files import remove_link
    from rlvitals.views.drawing import files

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"no pictures can be written there: {error.strerror}",
            where=str(folder),
            hint="--output-dir FOLDER",
        ) from error
    made = []
    for drawn in pictures:
        for kind in dict.fromkeys(chosen.format):
            path = folder / f"{drawn.name}.{kind}"
            remove_link(path)
            files.write(drawn, path, chosen.theme, chosen.dpi)
            made.append(path.name)
    return made
