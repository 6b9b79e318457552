"""Move series that count other steps to the main steps of their log, by wall time.

Tianshou writes returns at environment steps and losses at gradient steps, into one file. Both
contain the time of writing, which gives the environment step of a loss.
"""

import re
from dataclasses import replace

import numpy as np

from rlvitals.errors import quantity
from rlvitals.metrics.frameworks.key import Table
from rlvitals.types import Log, Series


def to_main_steps(log: Log, table: Table | None) -> Log:
    """Return a log with all series at its main steps; unchanged without times or a clock."""
    if table is None or table.off_axis is None:
        return log
    columns = [log.series[key] for key in table.off_axis.clock if key in log.series]
    times = np.concatenate([np.empty(0), *(s.times for s in columns)])
    has_time = np.isfinite(times)
    if not has_time.any():
        return log
    steps = np.concatenate([s.steps for s in columns]).astype(np.float64)
    order = np.argsort(times[has_time], kind="stable")
    clock = times[has_time][order], steps[has_time][order]
    moved = {
        key: Series(
            np.rint(np.interp(series.times, *clock)).astype(np.int64), series.times, series.values
        )
        for key, series in log.series.items()
        if re.fullmatch(table.off_axis.keys, key) and np.isfinite(series.times).all()
    }
    if not moved:
        return log
    note = f"{quantity(len(moved), 'column')} not in {table.step_unit or 'steps'}: each"
    note += " point stands at the step that was written at its time"
    return replace(log, series={**log.series, **moved}, notes=(*log.notes, note))
