"""Reward for writing out the chart's table in its form and with its values."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rlvitals.trainers.language.rewards import parts, values
from rlvitals.trainers.language.rewards.reward import Measure, Sample


def score(sample: Sample) -> float | None:
    """Pay for a JSON object, for its two keys, and for the share of columns and cells met.

    None where the data has no table. Raises ValueError where the data's own is none.
    """
    table = sample.columns.get("table")
    if table is None or table == "":
        return None
    expected = table if isinstance(table, Mapping) else _object(str(table), longest=None)
    if expected is None or not _columns(expected) or not _rows(expected):
        msg = f"the data's table is no JSON object of columns and rows: {str(table)[:80]!r}"
        raise ValueError(msg)
    table = _object(parts.inner(sample.completion, "table") or "")
    if table is None:
        return 0.0
    keys = 0.25 * (set(table) == {"columns", "rows"})
    columns, rows = _columns(table), _rows(table)
    shared = sum((Counter(columns) & Counter(_columns(expected))).values())
    met = 0.25 * shared / max(len(columns), len(_columns(expected)), 1)
    return 0.5 + keys + met + 0.25 * _cells_met(rows, _rows(expected))


def _object(text: str, *, longest: int | None = 20_000) -> dict[str, Any] | None:
    if longest is not None and len(text) > longest:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _columns(table: Mapping[str, Any]) -> list[str]:
    names = table.get("columns")
    return [values.plain(str(name)) for name in names] if isinstance(names, list) else []


def _rows(table: Mapping[str, Any]) -> list[list[str]]:
    rows = table.get("rows")
    if not isinstance(rows, list):
        return []
    return [[str(cell) for cell in row] for row in rows if isinstance(row, list) and row]


def _cells_met(rows: list[list[str]], expected: list[list[str]]) -> float:
    """Return the share of cells that are right: rows are found by their first cell.

    A row too many, or a cell, counts as wrong: guesses are not rewarded.
    """
    unmatched: dict[str, list[list[str]]] = {}
    for row in rows:
        unmatched.setdefault(values.plain(row[0]), []).append(row)
    met = 0
    for row in expected:
        candidates = unmatched.get(values.plain(row[0]))
        if candidates:
            pairs = zip(candidates.pop(0)[1:], row[1:], strict=False)
            met += 1 + sum(
                values.is_same(cell, reference, values.CHART_TOLERANCE) for cell, reference in pairs
            )
    cells = max(sum(map(len, rows)), sum(map(len, expected)))
    return met / cells


MEASURE = Measure(
    name="table_style_reward",
    meaning="the chart's table: JSON with the keys columns and rows, and what they hold",
    low=0,
    high=1.25,
    title="Table style rewards",
    score=score,
    needs=(("table",),),
)
