"""Read the HTML table that transformers shows in a notebook while it trains.

    log = read_table(list_tables(pages)[0], path)

Source: transformers' `utils/notebook.py` (NotebookTrainingTracker), Unsloth's `models/_utils.py`
for the columns of metrics.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlvitals.errors import quantity
from rlvitals.readers.console_dialects.dialect import number
from rlvitals.readers.formats.columns import Columns, to_step
from rlvitals.readers.formats.html_tables import HtmlTable, tables
from rlvitals.types import Log


def list_tables(pages: Iterable[str]) -> list[HtmlTable]:
    """Return the tables in HTML outputs that a trainer shows, the fullest state of each."""
    fullest: list[HtmlTable] = []
    for table in (table for page in pages for table in tables(page)):
        is_tracker = table.names[:1] in (["Step"], ["Epoch"])
        if table.progress is None or not (table.rows or is_tracker):
            continue
        if fullest and _goes_on(fullest[-1], table):
            if _extent(table) >= _extent(fullest[-1]):
                fullest[-1] = table
        else:
            fullest.append(table)
    return fullest


def _extent(table: HtmlTable) -> tuple[int, int]:
    return len(table.rows), len(table.names)


def _goes_on(table: HtmlTable, later: HtmlTable) -> bool:
    """Return True if one of two tables is an earlier state of the other.

    An evaluation fills the last row of a state in, and adds columns.
    """
    if not table.progress or not later.progress or table.progress[1] != later.progress[1]:
        return False
    pairs = list(zip(table.rows, later.rows, strict=False))
    settled = pairs[:-1] or pairs
    same_steps = all(row[0] == other[0] for row, other in pairs)
    return same_steps and all(
        cell == other for rows in settled for cell, other in zip(*rows, strict=False)
    )


def read_table(table: HtmlTable, path: Path) -> Log:
    """Return the rows of a trainer's table under the keys that it logs."""
    keys = [_key(name) for name in table.names]
    columns, dropped = Columns(), 0
    for row in table.rows:
        # A row is shorter where columns were added after it.
        step = to_step(number(row[0])) if len(row) <= len(keys) else None
        if step is None:
            dropped += 1
            continue
        cells = zip(keys[1:], map(number, row[1:]), strict=False)
        columns.add_row(step, ((key, value) for key, value in cells if key))
    is_step = table.names[:1] == ["Step"]
    total = table.progress[1] if is_step and table.progress else 0
    return Log(
        source="trainer-state",
        series=columns.series(),
        settings={"total_steps": total} if total else {},
        notes=(f"{quantity(dropped, 'row')} of the table refused: no step",) if dropped else (),
        where=str(path),
        step_unit="steps" if is_step else "epochs",
    )


def _key(name: str) -> str:
    """Return the key that a trainer logs under the name of a column: "Training Loss" is "loss".

    Names that begin with a capital are those of an evaluation, without their "eval_".
    """
    keys = {"Training Loss": "loss", "Validation Loss": "eval_loss"}
    if name in keys:
        return keys[name]
    key = re.sub(r"\s*/\s*", "/", name)
    return f"eval_{key.lower().replace(' ', '_')}" if key[:1].isupper() else key


def is_complete(states: Sequence[HtmlTable]) -> bool:
    """Return True if the bar of the last training is full."""
    progress = states[-1].progress if states else None
    return progress is not None and progress[0] >= progress[1]
