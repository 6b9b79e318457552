"""Read DVCLive: `dvclive/plots/metrics/train/loss.tsv` contains the points of `train/loss`.

Each metric has a separate table, of `step` and a value, with a `timestamp` in milliseconds
where it was asked for. Source: `dvclive/plots/metric.py` (`Metric.dump`), 3.49.
"""

from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import compressed
from rlvitals.readers.formats.columns import NAN, Columns, parse_number, to_step
from rlvitals.readers.formats.lines import REPLACED_NOTE, Lines, Position, open_log
from rlvitals.readers.formats.rows import NO_ROW_NOTE, Refusals, Row, Rows
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

DVCLIVE = "dvclive"
DVCLIVE_FOLDER = ("plots", "metrics")


def claims(path: Path, head: bytes) -> bool:
    """Claim a table under `plots/metrics/` with a step and a column named as the file."""
    first = head.partition(b"\n")[0].decode(errors="replace").rstrip("\r")
    return _root(path) is not None and _is_header(path, first.split("\t"))


def home(path: Path) -> Path:
    """Return the folder that holds `plots/metrics/`: `dvclive/`, or what was named in its place."""
    return _root(path) or path.parent


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog where it is no metric's table."""
    resume = previous if isinstance(previous, Position) else None
    table = compressed.bare(path)
    root = _root(table)
    key, columns, texts = (
        (
            table.stem
            if root is None
            else table.relative_to(root.joinpath(*DVCLIVE_FOLDER)).with_suffix("").as_posix()
        ),
        Columns(),
        Refusals("value"),
    )
    with open_log(path) as file:
        head = Lines(file)
        line = next(iter(head), None)
        if line is None:
            return Log(DVCLIVE, {}, {}, (NO_ROW_NOTE,), str(path)), resume
        names = line.text.split("\t")
        if not _is_header(table, names):
            raise UnreadableLog(
                f"not DVCLive's: its columns are no step and {table.stem}",
                where=f"{path}, line 1",
                hint="rlvitals readers",
            )
        lines = Lines(file, resume or head.position(line))
        replaced = lines.replaced
        if replaced:
            lines = Lines(file, head.position(line))
        rows = Rows(lines, len(names), delimiter="\t")
        for row in rows:
            _add(columns, key, row, rows.refused, texts)
        notes = (*([REPLACED_NOTE] if replaced else []), *rows.notes(), *texts.notes())
        return Log(DVCLIVE, columns.series(), {}, notes, str(path)), rows.position()


def _add(columns: Columns, key: str, row: Row, refused: Refusals, texts: Refusals) -> None:
    *step_cells, cell = row.fields
    try:
        numbers = [parse_number(text) for text in step_cells]
    except ValueError:
        numbers = [None]
    step = to_step(numbers[-1])
    if step is None:
        refused.add(row.line, f"has no step: {step_cells[-1][:40]!r}")
        return
    try:
        value = parse_number(cell)
    except ValueError:
        texts.add(row.line, f"is the text {cell[:40]!r}")
        return
    time = numbers[0] if len(numbers) > 1 else None
    columns.add_row(step, [(key, value)], NAN if time is None else time / 1000.0)


def _root(path: Path) -> Path | None:
    """Return the folder that holds `plots/metrics/`; None where the file is under none."""
    for folder in path.parents:
        if (folder.parent.name, folder.name) == DVCLIVE_FOLDER:
            return folder.parent.parent
    return None


def _is_header(path: Path, names: list[str]) -> bool:
    # The step before the metric's own column, perhaps with the time.
    return names in [[*head, path.stem] for head in (["step"], ["timestamp", "step"])]


READER = Reader(
    name=DVCLIVE,
    title="DVCLive",
    looks_for="dvclive/plots/metrics/*.tsv",
    example="dvclive/plots/metrics/train/loss.tsv",
    files=("*.tsv",),
    claims=claims,
    read=read,
    home=home,
    in_parts=True,
)
