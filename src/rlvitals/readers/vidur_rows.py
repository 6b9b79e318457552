"""Verify the cells of a scheduler's row by the types of its columns.

What the stack guarantees of a row that is in place:

* `data_type` is training, ppo_update or rollout; `datetime` an ISO time; `timestamp` seconds
  since the epoch at the same moment (their difference is a time zone); `mode` is a word;
* switches hold True, False or nothing; `step` and the replica columns hold whole numbers;
* every other cell holds a number or nothing;
* some quantities are written twice, under two names, from one variable: the texts are equal.
"""

import math
import re
from datetime import UTC, datetime

from rlvitals.errors import quantity
from rlvitals.readers.formats.columns import parse_number, to_step
from rlvitals.readers.formats.table_head import cell_number
from rlvitals.startup.fast_dataclass import dataclass

BASE_COLUMNS = ("data_type", "datetime", "step", "timestamp")  # not metrics, and in every row
VIDUR_TEXT_COLUMNS = frozenset({"data_type", "datetime", "mode"})
BOOLEAN_COLUMNS = ("has_temperature_control", "skipped_invalid_metrics", "temp_is_pulsing")
INTEGER_COLUMNS = (
    "step",
    "action",
    "action_value",
    "replica_id",
    "selected_replica",
    "temp_step_count",
)
EQUAL_COLUMNS = (
    ("action", "action_value"),
    ("action", "replica_id"),
    ("action", "selected_replica"),
    ("temperature", "temp_current_temperature"),
    *(
        (name, f"reward_{name}")
        for name in (
            "absolute_score",
            "delta_score",
            "latency_ema",
            "latency_var",
            "load_balance_penalty",
            "logistic_penalty",
            "raw_latency",
            "raw_reward",
            "raw_throughput",
            "step_count",
            "throughput_ema",
            "throughput_var",
            "total_reward",
        )
    ),
)
TIME_ZONE_SECONDS = 900.0  # s: every time zone is a multiple of it


@dataclass(frozen=True, slots=True)
class Header:
    """A header's names, and where the checks on its rows look."""

    names: tuple[str, ...]
    positions: dict[str, int]
    twins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, names: list[str]) -> "Header":
        """Find the checks that these names allow."""
        positions = {name: index for index, name in enumerate(names)}
        twins = tuple(
            (positions[a], positions[b])
            for a, b in EQUAL_COLUMNS
            if a in positions and b in positions
        )
        return cls(tuple(names), positions, twins)

    @property
    def checks(self) -> int:
        """Count the columns with a type of their own or a twin."""
        typed = {
            self.positions[name]
            for name in (*BASE_COLUMNS, *VIDUR_TEXT_COLUMNS, *BOOLEAN_COLUMNS, *INTEGER_COLUMNS)
            if name in self.positions
        }
        return len(typed.union(*self.twins))


@dataclass(frozen=True, slots=True)
class Placed:
    """A row in place: one cell a name. `missing` is the column that the row did not have."""

    cells: list[str]
    missing: str = ""


def align_row(header: Header, cells: list[str]) -> Placed | str:
    """Place cells under their names; else say why not, to follow "line 52 ...".

    A row one cell short is realigned where exactly one column can be the missing one. No other
    width is touched.
    """
    width = len(header.names)
    if len(cells) == width:
        wrong = _violation(header, cells)
        return f"is not in place: {wrong}" if wrong else Placed(cells)
    if len(cells) != width - 1:
        return f"has {quantity(len(cells), 'field')} under {quantity(width, 'name')}"
    fits = [
        (name, moved)
        for index, name in enumerate(header.names)
        if name not in BASE_COLUMNS
        and not _violation(header, moved := [*cells[:index], "", *cells[index:]])
    ]
    if len(fits) == 1:
        return Placed(fits[0][1], missing=fits[0][0])
    fitting = f"{len(fits)} columns could be" if fits else "no single column can be"
    shape = f"{quantity(len(cells), 'field')} under {quantity(width, 'name')}"
    return f"has {shape}, and {fitting} the missing one"


def _violation(header: Header, cells: list[str]) -> str:
    """Return the first inconsistency of the cells; "" without one."""
    for first, second in header.twins:
        if not _is_equal(cells[first], cells[second]):
            return f"`{header.names[first]}` and `{header.names[second]}` differ"
    for name in BOOLEAN_COLUMNS:
        if (column := header.positions.get(name)) is not None and cells[column] not in (
            "",
            "True",
            "False",
        ):
            return f"`{name}` holds {cells[column][:40]!r}"
    for name, cell in zip(header.names, cells, strict=True):
        if not _has_type(name, cell):
            return f"`{name}` holds {cell[:40]!r}"
    return _clocks(cells[header.positions["datetime"]], cells[header.positions["timestamp"]])


def _has_type(name: str, cell: str) -> bool:
    if name == "data_type":
        return cell in ("training", "ppo_update", "rollout")
    if name == "mode":
        return not cell or re.fullmatch(r"[A-Za-z][\w-]*", cell) is not None
    if name == "datetime":
        return True  # `_clocks` has it
    try:
        value = parse_number(cell)
    except ValueError:
        return False
    if name in INTEGER_COLUMNS:
        return to_step(value) is not None or (value is None and name != "step")
    return True


def _is_equal(first: str, second: str) -> bool:
    """Return True if two cells hold the same, but for how a writer rounded it."""
    if first == second:
        return True
    a, b = cell_number(first), cell_number(second)
    # A writer that keeps five digits.
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6)


def _clocks(iso: str, epoch: str) -> str:
    """Check that a row's two times are one moment, but for the time zone."""
    try:
        local = datetime.fromisoformat(iso)
    except ValueError:
        return f"`datetime` holds {iso[:40]!r}"
    seconds = cell_number(epoch)
    if seconds is None or not math.isfinite(seconds) or seconds < 1e8:  # before March 1973
        return f"`timestamp` holds {epoch[:40]!r}"
    difference_s = (local if local.tzinfo else local.replace(tzinfo=UTC)).timestamp() - seconds
    if (
        abs(difference_s - TIME_ZONE_SECONDS * round(difference_s / TIME_ZONE_SECONDS))
        > 1.0  # second, between the two clocks of a row
        or abs(difference_s) > 15 * 3600
    ):
        return "`datetime` and `timestamp` are different moments"
    return ""
