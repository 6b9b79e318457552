"""Which cell of a scheduler's row stands under which name, where its types prove it.

What the stack guarantees of a row that is in place:

* `data_type` is training, ppo_update or rollout; `datetime` an ISO time; `timestamp` seconds
  since the epoch at the same moment (their difference is a time zone); `mode` is a word;
* switches hold True, False or nothing; `step` and the replica columns hold whole numbers;
* every other cell holds a number or nothing;
* some quantities are written twice, under two names, from one variable: the texts are equal.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from rlvitals.readers.formats.columns import parse_number, whole

BASE = ("data_type", "datetime", "step", "timestamp")  # not metrics, and in every row
KINDS = ("training", "ppo_update", "rollout")
TEXT = frozenset({"data_type", "datetime", "mode"})
SWITCHES = ("has_temperature_control", "skipped_invalid_metrics", "temp_is_pulsing")
WHOLE = (
    "step",
    "action",
    "action_value",
    "replica_id",
    "selected_replica",
    "temp_step_count",
)
TWINS = (
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
WORD = re.compile(r"[A-Za-z][\w-]*")
QUARTER = 900.0  # s: every time zone is a multiple of it
ROUNDED = 1e-4  # relative: a writer that keeps five digits
SAME_MOMENT = 1.0  # s between the two clocks of one row
EPOCH = 1e8  # s: a time after March 1973


@dataclass(frozen=True, slots=True)
class Header:
    """A header's names, and where the checks on its rows look."""

    names: tuple[str, ...]
    at: dict[str, int]
    twins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, names: list[str]) -> "Header":
        """Find the checks that these names allow."""
        at = {name: index for index, name in enumerate(names)}
        twins = tuple((at[a], at[b]) for a, b in TWINS if a in at and b in at)
        return cls(tuple(names), at, twins)

    @property
    def checks(self) -> int:
        """Count the columns with a type of their own or a twin."""
        typed = {self.at[name] for name in (*BASE, *TEXT, *SWITCHES, *WHOLE) if name in self.at}
        return len(typed.union(*self.twins))


@dataclass(frozen=True, slots=True)
class Placed:
    """A row in place: one cell a name. `missing` is the column that the row did not have."""

    cells: list[str]
    missing: str = ""


def place(header: Header, cells: list[str]) -> Placed | str:
    """Place cells under their names; else say why not, to follow "line 52 ...".

    A row one cell short is realigned where exactly one column can be the missing one. No other
    width is touched.
    """
    width = len(header.names)
    if len(cells) == width:
        wrong = _violation(header, cells)
        return f"is not in place: {wrong}" if wrong else Placed(cells)
    if len(cells) != width - 1:
        return f"has {len(cells)} fields under {width} names"
    fits = [
        (name, moved)
        for index, name in enumerate(header.names)
        if name not in BASE
        and not _violation(header, moved := [*cells[:index], "", *cells[index:]])
    ]
    if len(fits) == 1:
        return Placed(fits[0][1], missing=fits[0][0])
    found = f"{len(fits)} columns could be" if fits else "no single column can be"
    return f"has {len(cells)} fields under {width} names, and {found} the missing one"


def _violation(header: Header, cells: list[str]) -> str:
    """Say what shows that these cells are not in place; "" where nothing does."""
    for one, other in header.twins:
        if not _same(cells[one], cells[other]):
            return f"`{header.names[one]}` and `{header.names[other]}` differ"
    for name in SWITCHES:
        if (at := header.at.get(name)) is not None and cells[at] not in (
            "",
            "True",
            "False",
        ):
            return f"`{name}` holds {cells[at][:40]!r}"
    for name, cell in zip(header.names, cells, strict=True):
        if not _typed(name, cell):
            return f"`{name}` holds {cell[:40]!r}"
    return _clocks(cells[header.at["datetime"]], cells[header.at["timestamp"]])


def _typed(name: str, cell: str) -> bool:
    if name == "data_type":
        return cell in KINDS
    if name == "mode":
        return not cell or WORD.fullmatch(cell) is not None
    if name == "datetime":
        return True  # `_clocks` has it
    try:
        value = parse_number(cell)
    except ValueError:
        return False
    if name in WHOLE:
        return whole(value) is not None or (value is None and name != "step")
    return True


def _same(one: str, other: str) -> bool:
    """Tell whether two cells hold the same, but for how a writer rounded it."""
    if one == other:
        return True
    a, b = _number(one), _number(other)
    return a is not None and b is not None and math.isclose(a, b, rel_tol=ROUNDED, abs_tol=1e-6)


def _number(cell: str) -> float | None:
    try:
        return parse_number(cell)
    except ValueError:
        return None


def _clocks(iso: str, epoch: str) -> str:
    """Check that a row's two times are one moment, but for the time zone."""
    try:
        local = datetime.fromisoformat(iso)
    except ValueError:
        return f"`datetime` holds {iso[:40]!r}"
    seconds = _number(epoch)
    if seconds is None or not math.isfinite(seconds) or seconds < EPOCH:
        return f"`timestamp` holds {epoch[:40]!r}"
    apart = (local if local.tzinfo else local.replace(tzinfo=UTC)).timestamp() - seconds
    if abs(apart - QUARTER * round(apart / QUARTER)) > SAME_MOMENT or abs(apart) > 15 * 3600:
        return "`datetime` and `timestamp` are different moments"
    return ""
