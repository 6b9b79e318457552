"""Read TRL's `completions/completions_00010.parquet`: completions and their rewards.

With `log_completions`, each logging step leaves a file with the last generation batch: `step`,
`prompt`, `completion`, a column of floats for each reward function (null where it gave None),
extras of the user's, `advantage`. An evaluation at the same step writes over it. Columns that
hold floats are taken for reward functions. Source: `trl/trainer/grpo_trainer.py`, `log`.

Needs pyarrow, the extra `parquet`.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import Columns, to_step
from rlvitals.readers.formats.lines import REPLACED_NOTE, open_log
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Table

COMPLETIONS_FILE = re.compile(r"completions_(\d+)\.parquet")
COMPLETIONS_FOLDER = "completions"
COMPLETION_STEP, COMPLETION_TEXT, COMPLETION_ADVANTAGE = "step", "completion", "advantage"
MAX_PARQUET_BYTES = 256 * 2**20
MAX_COMPLETIONS_BYTES = 2**30  # of the columns, unpacked
MAX_COMPLETIONS = 100_000

Cells = Mapping[str, list[object]]


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The file that was read before."""

    size: int
    crc: int


def claims(path: Path, head: bytes) -> bool:
    """Claim a Parquet file that is named as TRL names it."""
    return head.startswith(b"PAR1") and COMPLETIONS_FILE.fullmatch(path.name) is not None


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read a file's rows, unless it is the one read before. Raises UnreadableLog."""
    with open_log(path) as file:
        data = file.read(MAX_PARQUET_BYTES + 1)
    resume = _Cursor(len(data), zlib.crc32(data))
    if previous == resume:
        return Log("trl-completions", {}, where=str(path)), resume
    cells, scored = read_cells(path, data)
    steps = _steps(path, cells)
    columns = Columns()
    for step in np.unique(steps).tolist():
        rows = np.flatnonzero(steps == step).tolist()
        step_cells = {key: [column[row] for row in rows] for key, column in cells.items()}
        columns.add_row(step, _measures(step_cells, scored))
    table = Table(steps, {key: column for key, column in cells.items() if key != COMPLETION_STEP})
    log = Log(
        source="trl-completions",
        series=columns.series(),
        notes=(REPLACED_NOTE,) if isinstance(previous, _Cursor) else (),
        where=str(path),
        tables={COMPLETIONS_FOLDER: table} if len(table) else {},
    )
    return log, resume


def read_cells(path: Path, data: bytes) -> tuple[Cells, list[str]]:
    """Return the columns' cells, None for null, and the reward columns. Raises UnreadableLog."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415 - optional
    except ImportError:
        raise UnreadableLog(
            "Parquet needs pyarrow: pip install 'rlvitals[parquet]'",
            where=str(path),
            hint="pip install 'rlvitals[parquet]'",
        ) from None
    damage = (pa.ArrowException, OSError, ValueError, LookupError, NotImplementedError)
    too_long = len(data) > MAX_PARQUET_BYTES
    columns: dict[str, list[object]] = {}
    floats: list[str] = []
    try:
        if not too_long:
            file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            too_long = _is_too_long(file.metadata)
        if not too_long:
            table = file.read(use_threads=False)
            columns = table.to_pydict()
            floats = [str(f.name) for f in table.schema if pa.types.is_floating(f.type)]
    except (*damage, MemoryError, OverflowError):
        raise UnreadableLog(
            "not a whole Parquet file", where=str(path), hint="copy it again from the run"
        ) from None
    if too_long:
        raise UnreadableLog(
            f"more than {MAX_COMPLETIONS:,} completions or"
            f" {MAX_COMPLETIONS_BYTES // 2**20:,} MiB of them",
            where=str(path),
            hint="log fewer of them a step",
        )
    # These columns are pandas' own.
    cells = {key: column for key, column in columns.items() if not key.startswith("__index_level_")}
    return cells, [
        key for key in floats if key in cells and key not in {COMPLETION_STEP, COMPLETION_ADVANTAGE}
    ]


def _is_too_long(metadata: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    size = sum(group.total_byte_size for group in groups)
    return bool(metadata.num_rows > MAX_COMPLETIONS or size > MAX_COMPLETIONS_BYTES)


def _steps(path: Path, cells: Cells) -> NDArray[np.int64]:
    """Return each row's step, int64 [n]: the file's name says it where a column does not."""
    count = max((len(column) for column in cells.values()), default=0)
    step_cells = cells.get(COMPLETION_STEP, [None] * count)
    steps = [to_step(cell) if isinstance(cell, int | float) else None for cell in step_cells]
    if any(step is None for step in steps):
        name_step = COMPLETIONS_FILE.fullmatch(path.name)
        if name_step is None:
            raise UnreadableLog(
                "rows without a step", where=str(path), hint="give the file the name TRL gave it"
            )
        steps = [int(name_step[1]) if step is None else step for step in steps]
    return np.array(steps, np.int64)


def _measures(cells: Cells, scored: Sequence[str]) -> list[tuple[str, float | None]]:
    """Return what one step's completions amount to, under the names of TRL's own metrics."""
    measures: list[tuple[str, float | None]] = []
    for key in scored:
        scores = _numbers(cells[key])
        measures += [
            (f"rewards/{key}/mean", float(scores.mean()) if len(scores) else None),
            # One degree of freedom less, as TRL's nanstd.
            (f"rewards/{key}/std", float(scores.std(ddof=1)) if len(scores) > 1 else None),
            (f"completions/unscored_share/{key}", 1 - len(scores) / len(cells[key])),
        ]
    advantages = _numbers(cells.get(COMPLETION_ADVANTAGE, []))
    if len(advantages):
        measures.append(("completions/zero_advantage_share", float(np.mean(advantages == 0))))
    texts = [cell for cell in cells.get(COMPLETION_TEXT, []) if isinstance(cell, str)]
    if texts:
        measures += [
            ("completions/unique_share", len(set(texts)) / len(texts)),
            ("completions/empty_share", sum(not text.strip() for text in texts) / len(texts)),
            ("completions/mean_characters", float(np.mean([len(text) for text in texts]))),
        ]
    return measures


def _numbers(column: Sequence[object]) -> NDArray[np.float64]:
    """Return the numbers that a reward function gave: TRL has NaN for its None."""
    numbers = np.array([cell for cell in column if isinstance(cell, float)], np.float64)
    return numbers[~np.isnan(numbers)]


def home(path: Path) -> Path:
    """Return the run's folder: the trainer's output."""
    return path.parent.parent if path.parent.name == COMPLETIONS_FOLDER else path.parent


READER = Reader(
    name="trl-completions",
    title="TRL completions (with the extra parquet)",
    looks_for="completions/completions_*.parquet",
    example="out/completions/completions_00010.parquet",
    files=("completions_*.parquet",),
    claims=claims,
    read=read,
    in_parts=True,
    home=home,
)
