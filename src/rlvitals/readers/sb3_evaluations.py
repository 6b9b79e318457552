"""Read Stable-Baselines3's `evaluations.npz`, which EvalCallback rewrites.

`timesteps` [n], `results` and `ep_lengths` [n, episodes], `successes` [n, episodes] where the
environment says `is_success`. Source: `common/callbacks.py`, `EvalCallback._on_step`.
"""

from pathlib import Path

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import arrays
from rlvitals.readers.formats.columns import MAX_STEP, Columns
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.sb3_csv import SB3_STEP_UNIT
from rlvitals.types import Log

EVALUATIONS_FILE = "evaluations.npz"


def claims(path: Path, head: bytes) -> bool:
    """Claim an archive whose first array is the callback's."""
    is_named = path.suffix.lower() == ".npz" and head.startswith(arrays.NPZ_MAGIC)
    return is_named and b"timesteps.npy" in head[:100]


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the evaluations after a cursor, the mean over the episodes of each.

    Raises UnreadableLog.
    """
    try:
        by_name = dict(arrays.members(read_document(path)))
    except ValueError as error:
        raise UnreadableLog(str(error), where=str(path), hint="wait for the next one") from error
    steps = by_name.get("timesteps", np.empty(0))
    count = steps.ndim == 1 and len(steps) > 0 and bool((np.abs(steps) < MAX_STEP).all())
    columns = Columns()
    # As the callback calls them in the logs that it writes beside.
    for name, key in {
        "results": "eval/mean_reward",
        "ep_lengths": "eval/mean_ep_length",
        "successes": "eval/success_rate",
    }.items():
        values = by_name.get(name, np.empty(0))
        if count and values.ndim and values.size and len(values) == len(steps):
            with np.errstate(all="ignore"):  # infinities of both signs, and overflow
                means = values.reshape(len(steps), -1).mean(axis=1)
            columns.extend(key, steps.astype(np.int64), means)
    if not len(columns):
        raise UnreadableLog(
            "no evaluation with its timesteps", where=str(path), hint="wait for the first"
        )
    series, cursor, notes = points_after(columns.series(), previous)
    return Log("sb3-evaluations", series, {}, tuple(notes), str(path), SB3_STEP_UNIT), cursor


def _folder(file: Path) -> Path:
    return file.parent


READER = Reader(
    name="sb3-evaluations",
    title="Stable-Baselines3 evaluations",
    looks_for=EVALUATIONS_FILE,
    example="logs/evaluations.npz",
    files=(EVALUATIONS_FILE,),
    claims=claims,
    read=read,
    home=_folder,
)
