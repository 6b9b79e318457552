"""Check picture options and write pictures into a folder."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from rlvitals.errors import UsageError, VitalsError, nearest
from rlvitals.options import Plot
from rlvitals.storage.safe_files import remove_link
from rlvitals.views.drawing import files
from rlvitals.views.figures.figure import Picture

PICTURE_FORMATS = ("png", "svg", "pdf", "json")
MIN_DPI, MAX_DPI = 20, 1200


def check(plot: Plot) -> None:
    """Check format and resolution. Raises UsageError, VitalsError without matplotlib."""
    for name in plot.format:
        if name not in PICTURE_FORMATS:
            hint = nearest(name, PICTURE_FORMATS) or f"one of {', '.join(PICTURE_FORMATS)}"
            raise UsageError(f"no picture is written as {name!r}", where="--format", hint=hint)
    if not MIN_DPI <= plot.dpi <= MAX_DPI:
        raise UsageError(
            f"{plot.dpi} pixels to the inch cannot be drawn",
            where="--dpi",
            hint=f"{MIN_DPI} to {MAX_DPI}",
        )
    if {*plot.format} != {"json"} and find_spec("matplotlib") is None:
        raise VitalsError(
            "pictures need matplotlib, which is not installed",
            where=f"--format {','.join(plot.format)}",
            hint='pip install "rlvitals[plot]", or --format json; a report needs neither',
        )


def write(pictures: Iterable[Picture], folder: Path, plot: Plot) -> list[str]:
    """Draw pictures into a folder, created if missing; return the file names.

    Raises UsageError where the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"no pictures can be written there: {error.strerror}",
            where=str(folder),
            hint="--output-dir FOLDER",
        ) from error
    file_names = []
    for picture in pictures:
        for kind in dict.fromkeys(plot.format):
            path = folder / f"{picture.name}.{kind}"
            remove_link(path)
            files.write(picture, path, plot.theme, plot.dpi)
            file_names.append(path.name)
    return file_names
