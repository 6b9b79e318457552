"""Series whose steps count something else than their log's others: put at the steps of their time.

Tianshou writes returns at environment steps and losses at gradient steps, into one file. Both
hold the time of writing, and by that time a loss is placed among the environment steps.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.frameworks.key import Table
from rlvitals.types import Log, Series

Clock = tuple[NDArray[np.float64], NDArray[np.float64]]  # times [n] ascending, steps [n]


def aligned(log: Log, table: Table | None) -> Log:
    """Place a log's series on its main steps; as it is where times or the clock are missing."""
    if table is None or table.off_axis is None:
        return log
    clock = _clock(log.series, table.off_axis.clock)
    if clock is None:
        return log
    moved = {
        key: found
        for key, series in log.series.items()
        if re.fullmatch(table.off_axis.keys, key) and (found := _moved(series, clock)) is not None
    }
    if not moved:
        return log
    note = f"{len(moved)} columns count something else than {table.step_unit or 'steps'}: each"
    note += " point stands at the step that was written at its time"
    return replace(log, series={**log.series, **moved}, notes=(*log.notes, note))


def _clock(series: Mapping[str, Series], keys: tuple[str, ...]) -> Clock | None:
    found = [series[key] for key in keys if key in series]
    if not found:
        return None
    times = np.concatenate([s.times for s in found])
    steps = np.concatenate([s.steps for s in found]).astype(np.float64)
    known = np.isfinite(times)
    order = np.argsort(times[known], kind="stable")
    return (times[known][order], steps[known][order]) if known.any() else None


def _moved(series: Series, clock: Clock) -> Series | None:
    if not np.isfinite(series.times).all():
        return None
    steps = np.rint(np.interp(series.times, *clock)).astype(np.int64)
    return Series(steps, series.times, series.values)
