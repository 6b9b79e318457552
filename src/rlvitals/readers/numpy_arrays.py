"""Read arrays saved with numpy: `np.save("rewards.npy", rewards)`, or several in a `.npz`.

One number an episode or evaluation, in order. Of two dimensions the longer one is the axis and the
shorter one (seeds, environments, episodes of one evaluation) is averaged, and the notes say so. An
array whose file has no measure's name ("pendulum_2021.npy") is read where a person names the file.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import arrays, column_guess, lists, run_labels
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log


def claims(path: Path, head: bytes) -> bool:
    """Return True if the file holds arrays and is named as training logs name their measures."""
    return claims_single(path, head) and column_guess.is_curve(path.stem)


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the file holds arrays, whatever its name."""
    start = {".npy": arrays.NPY_MAGIC, ".npz": arrays.NPZ_MAGIC}.get(path.suffix.lower())
    return start is not None and head.startswith(start)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the points after a cursor. Raises UnreadableLog."""
    data = read_document(path)
    try:
        if data.startswith(arrays.NPZ_MAGIC):
            by_name = dict(arrays.members(data))
        elif (content := arrays.plain_objects(data)) is not None:
            by_name = _lists(path, content)
        else:
            by_name = {_name(path): arrays.load(data)}
    except ValueError as error:
        hint = "save an array of numbers"
        raise UnreadableLog(str(error), where=str(path), hint=hint) from error
    notes: list[str] = []
    curves = {
        key: curve
        for key, values in by_name.items()
        if (curve := lists.mean_curve(key, values, notes)) is not None
    }
    columns, unit = lists.columns(curves)
    if not len(columns):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in by_name.items())
        raise UnreadableLog(
            "no array that is a curve",
            where=f"{path} ({shapes[:200]})",
            hint="one number an episode",
        )
    if unit == "rows":
        notes.append(lists.NUMBERED_NOTE)
    series, cursor, replaced = points_after(columns.series(), previous)
    return Log("numpy", series, {}, (*replaced, *notes), str(path), unit), cursor


def _lists(path: Path, content: object) -> dict[str, NDArray[np.float64]]:
    """Return the lists of numbers of a document by name: of a dict, or the content itself."""
    by_name = content if isinstance(content, dict) else {_name(path): content}
    curves = {}
    for key, value in by_name.items():
        with suppress(ValueError, TypeError):  # texts, lists of several lengths, nothing plain
            curves[key] = np.asarray(value, dtype=np.float64)
    return {key: curve for key, curve in curves.items() if curve.ndim}


def _name(path: Path) -> str:
    # The key of an array that has no measure's name.
    return run_labels.measure_name(path.name.split(".")[0]) or "values"


READER = Reader(
    name="numpy",
    title="Arrays that numpy saved",
    looks_for="*.npy or *.npz named for rewards, returns, scores or losses",
    example="results/episode_rewards.npy",
    files=("*.npy", "*.npz"),
    claims=claims,
    read=read,
    claims_single=claims_single,
)
