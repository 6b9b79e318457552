"""Group the lines of the fleet by all settings but the seed, and trials by their experiment."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.comparison import statistics
from rlvitals.errors import join_first
from rlvitals.server.fleet_line import LAMPS, ROOT_KEY, Summary, is_bookkeeping
from rlvitals.server.run_summary import SPARK_COLUMNS, SPARK_LEVELS, to_heights
from rlvitals.startup.fast_dataclass import dataclass

SEED_SUFFIX = re.compile(r"[-_/.]*\b(s|seed)[-_]?\d+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FleetGroup:
    """Runs with the same settings but for the seed."""

    label: str
    keys: tuple[str, ...]
    lamps: dict[str, int]
    outcome: str  # the metric's label
    middle: float | None  # interquartile mean of the last outcomes
    low: float | None
    high: float | None
    spark: tuple[int | None, ...]  # heights of the interquartile mean of the runs
    spark_low: tuple[int | None, ...]  # heights of the lowest run
    spark_high: tuple[int | None, ...]


def group(rows: Sequence[Summary], names: Sequence[str]) -> list[FleetGroup]:
    """Return the groups of runs, those with the worst lamps first.

    `names`: the settings that differ in the fleet, which label a group.
    """
    members: dict[tuple[object, ...], list[Summary]] = {}
    for row in rows:
        settings = {n: v for n, v in row.settings.items() if not is_bookkeeping(n)}
        has_seed = any(name.rpartition("/")[2].lower() == "seed" for name in row.settings)
        # Without a logged seed only the name tells the runs of one experiment.
        key = (row.outcome, *settings.items()) if has_seed else (SEED_SUFFIX.sub("", row.key),)
        if row.experiment:
            key = ("experiment", row.experiment, row.outcome)
        members.setdefault(key, []).append(row)
    groups = [_group(runs, names) for runs in members.values()]
    return sorted(groups, key=lambda item: [-item.lamps[name] / len(item.keys) for name in LAMPS])


def _group(rows: Sequence[Summary], names: Sequence[str]) -> FleetGroup:
    first = rows[0]
    texts = [f"{name.rpartition('/')[2]} {_range(rows, name)}" for name in names
             if name in first.settings]  # fmt: skip
    stems = {SEED_SUFFIX.sub("", _path(row)) for row in rows}
    stem = first.experiment or (stems.pop() if len(stems) == 1 else "")
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    label = " · ".join([*([stem] if stem else []), *texts]) or f"{_path(first)}{more}"
    values = np.sort([float(row.value.replace(",", "")) for row in rows if row.value])
    counts = Counter(row.lamp for row in rows)
    middle, lowest, highest = _band(rows)
    return FleetGroup(
        label=label,
        keys=tuple(row.key for row in rows),
        lamps={name: counts[name] for name in LAMPS},
        outcome=first.outcome,
        middle=statistics.interquartile_mean([values]) if len(values) else None,
        low=float(values[0]) if len(values) else None,
        high=float(values[-1]) if len(values) else None,
        spark=middle,
        spark_low=lowest,
        spark_high=highest,
    )


def _path(row: Summary) -> str:
    return row.name if row.key == ROOT_KEY else row.key


def _range(rows: Sequence[Summary], name: str) -> str:
    """Return the values of a setting in a group, at most four of them."""
    values = sorted({row.settings[name] for row in rows if name in row.settings}, key=_number)
    return join_first(values, 4)


def _number(text: str) -> tuple[float, str]:
    """Return a sort key: numbers by size, then texts."""
    try:
        return float(text), ""
    except ValueError:
        return np.inf, text


def _band(rows: Sequence[Summary]) -> tuple[tuple[int | None, ...], ...]:
    """Return the heights of the interquartile mean, the lowest and the highest of the runs.

    Each is sampled at SPARK_COLUMNS steps, to the last one that half of the runs have reached: the
    mean of the few that go on is another group's. All steps have the same runs, so that the curves
    do not jump where one ends: a run that ended before stays at its last value, as in the mean
    of the last outcomes, and a running one that has not come as far is left out.
    """
    rows = [row for row in rows if len(row.spark) > 1]
    if not rows:
        return (), (), ()
    last = sorted(row.spark_steps[1] for row in rows)[len(rows) // 2]
    rows = [row for row in rows if row.state != "running" or row.spark_steps[1] >= last]
    steps = np.linspace(min(row.spark_steps[0] for row in rows), last, SPARK_COLUMNS)
    curves = np.array([_curve(row, steps) for row in rows])  # [runs, steps]
    band = np.full((3, SPARK_COLUMNS), np.nan)
    for index, column in enumerate(curves.T):
        values = column[np.isfinite(column)]
        if 2 * len(values) >= len(rows):
            mean = statistics.interquartile_mean([values])
            band[:, index] = mean, values.min(), values.max()
    if np.isnan(band).all():
        return (), (), ()
    low, high = float(np.nanmin(band)), float(np.nanmax(band))
    return tuple(tuple(to_heights(line, low, high)) for line in band)


def _curve(row: Summary, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a run's sparkline in its own values at steps; NaN before the run."""
    heights = np.array([np.nan if height is None else height for height in row.spark])
    low, high = row.spark_values
    values = low + heights / SPARK_LEVELS * (high - low)
    places = np.linspace(*row.spark_steps, len(values))
    is_drawn = np.isfinite(values)
    return np.interp(steps, places[is_drawn], values[is_drawn], left=np.nan)
