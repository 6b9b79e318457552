"""Sum up a judged run in the line that the fleet shows."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.checkpoints import progress
from rlvitals.diagnosis.engine import Diagnosis, thin_trace
from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery.settings_files import experiment_of_trial
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import is_provisional
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import OUTCOME_UNKNOWN, label
from rlvitals.server import fleet_line
from rlvitals.server.fleet_line import Summary
from rlvitals.storage.run_folder import RUN_FILE, read_about
from rlvitals.storage.run_query import Indexed, job_text
from rlvitals.types import Series, Trace
from rlvitals.views import phrases

SPARK_COLUMNS = 48  # points of a sparkline
SPARK_LEVELS = 100  # heights of a sparkline
BAD_VERDICTS = (Word.FAILED, Word.HUNG, Word.COLLAPSED, Word.UNSTABLE)


def from_store(entry: Indexed, text: str) -> Summary:
    """Return the line of a run in an index that another program fills; `text`: its judgement."""
    summary = fleet_line.from_index(entry)
    if not text:
        return summary
    judgement = json.loads(text)
    row, worst = judgement["row"], -judgement["rank"][0]
    lamp_name = "good"
    if row["verdict"] in {*BAD_VERDICTS, "unreadable"} or worst >= Severity.ERROR:
        lamp_name = "bad"
    elif worst == Severity.WARNING or row["verdict"] in {Word.STALLED, Word.PLATEAU}:
        lamp_name = "watch"
    elif row["verdict"] == Word.UNKNOWN:
        lamp_name = "unknown"
    hours = row["hours"]
    return replace(
        summary,
        lamp=lamp_name,
        verdict=row["verdict"],
        reason=row["reason"],
        rule=row["cause"],
        trained=None if hours is None else 3600 * hours,
    )


def from_diagnosis(summary: Summary, diagnosis: Diagnosis, folder: Path, time_s: float) -> Summary:
    """Return the line of a judged run. `time_s`: seconds since the epoch."""
    trace, cases = diagnosis.trace, diagnosis.cases
    status = standing(summary.name, diagnosis, progress.read(folder), None, time_s)
    worst = max(cases, key=lambda case: case.severity, default=None)
    is_severe = worst is not None and worst.severity > Severity.NOTE
    metric = verdict_trend(thin_trace(trace)).metric  # as the verdict was found
    series = trace.get(metric) if metric else None
    numbers = series.finite() if series is not None else None
    heights, values = spark(series) if series else ((), (0.0, 0.0))
    return replace(
        summary,
        lamp=lamp(diagnosis),
        verdict=diagnosis.verdict.word.value,
        is_provisional=is_provisional(trace),
        reason=worst.finding.summary
        if worst and is_severe
        else diagnosis.verdict.why.removeprefix(OUTCOME_UNKNOWN),  # the lamp says that already
        rule=worst.rule.name if worst and is_severe else "",
        onset=worst.finding.began if worst and is_severe else _end_of_failure(trace),
        counts=phrases.counts(diagnosis) if cases else "",
        state=status.state,
        step=status.step,
        total=status.total,
        trained=status.trained,
        eta=status.eta if status.state == "running" else None,
        outcome=label(metric) if metric else "",
        value=phrases.number(float(numbers.values[-1])) if numbers and len(numbers) else "",
        spark=heights,
        spark_values=values,
        spark_steps=(int(series.steps[0]), int(series.steps[-1])) if series else (0, 0),
        time=trace.lifecycle.last_row or summary.time,
        job=_job(folder),
        experiment=experiment_of_trial(folder),
        settings={
            name: str(value)[:40]
            for name, value in sorted(trace.settings.items())
            if not name.startswith("rlvitals/")  # what the recorder adds: name, tags, id
        },
    )


def _job(folder: Path) -> str:
    """Return the scheduler's job of a recorded run; "" of any other."""
    try:
        return job_text(read_about(folder / RUN_FILE).more.get("job"))
    except (OSError, UnreadableLog):
        return ""


def lamp(diagnosis: Diagnosis) -> str:
    """Return the lamp of a run: green only where it learns and no warning speaks against it."""
    verdict, worst = diagnosis.verdict.word, diagnosis.worst
    if verdict in BAD_VERDICTS or worst is Severity.ERROR:
        return "bad"
    if verdict is Word.UNKNOWN:
        return "watch" if worst is Severity.WARNING else "unknown"
    if worst is Severity.WARNING or verdict in {Word.STALLED, Word.PLATEAU}:
        return "watch"
    return "good"


def spark(series: Series) -> tuple[tuple[int | None, ...], tuple[float, float]]:
    """Return the heights of a sparkline, and the values at height 0 and at SPARK_LEVELS.

    A height is the mean of one of SPARK_COLUMNS equal ranges of steps; a range without a row has
    none. The series is not empty.
    """
    first, span = int(series.steps[0]), int(series.steps[-1]) - int(series.steps[0]) + 1
    edges = [first + column * span // SPARK_COLUMNS for column in range(1, SPARK_COLUMNS)]
    ranges = np.split(series.values, series.steps.searchsorted(edges))  # views: no copy of a column
    means, sizes = zip(*map(_scaled_mean, ranges), strict=True)
    size = max(sizes) or 1.0
    scaled = np.array([mean * (scale / size) for mean, scale in zip(means, sizes, strict=True)])
    if np.isnan(scaled).all():
        return (), (0.0, 0.0)
    low, high = np.nanmin(scaled), np.nanmax(scaled)
    heights = to_heights(scaled, low, high)
    values = (float(low * size), float(high * size))
    return tuple(itertools.compress(heights, map(len, ranges))), values


def _scaled_mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of the finite values over their largest size, and that size.

    The mean is NaN, and the size 0, where there is none. Scaled, no sum overflows.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.nan, 0.0
    size = float(np.abs(finite).max())
    return (float((finite / size).mean()), size) if size else (0.0, 0.0)


def to_heights(values: NDArray[np.float64], low: float, high: float) -> list[int | None]:
    """Return values from `low` to `high` as heights from 0 to SPARK_LEVELS; NaN as None."""
    if high <= low:
        return [None if np.isnan(value) else SPARK_LEVELS // 2 for value in values.tolist()]
    heights = (values - low) / (high - low) * SPARK_LEVELS
    return [None if np.isnan(height) else round(height) for height in heights.tolist()]


def _end_of_failure(trace: Trace) -> int | None:
    """Return the last step of a run that failed; None where it did not."""
    cycle = trace.lifecycle
    if not cycle.failed:
        return None
    return trace.last_step if cycle.end_step is None else cycle.end_step
