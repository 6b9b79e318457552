"""Status of a run: progress, time left, liveness, changed metrics, checkpoint to resume from.

where = standing(name, diagnosis, progress, checkpoints, now)
"""

from collections.abc import Iterable
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from rlvitals.checkpoints.inspect_run import Inspection
from rlvitals.checkpoints.progress import COMPLETED, FAILED, RUNNING, STOPPED, Progress
from rlvitals.diagnosis.duration import MIN_PAUSE_SECONDS, PAUSE_FACTOR, training_time
from rlvitals.diagnosis.engine import Diagnosis, thin_trace
from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.language import NEGATIVE_SHARE, POSITIVE_SHARE
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE, LOSS
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.metrics.catalogue.policy import APPROX_KL, KL_TO_REFERENCE
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import MAX_LIVE_SILENCE_S, liveness
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import STOPPED_BY_HAND, Series, Trace

if TYPE_CHECKING:  # it loads what records a run
    from rlvitals.tracking.spool import UploadCost

MAX_BRIEF_METRICS = 7  # unless all are requested
STATUS_METRIC_ORDER = (
    LOSS, LEARNING_RATE, GRAD_NORM, NEGATIVE_SHARE, POSITIVE_SHARE, APPROX_KL, KL_TO_REFERENCE,
    ENTROPY, VALUE_LOSS, EXPLAINED_VARIANCE, EPISODE_LENGTH,
)  # fmt: skip
PROGRESS_PREFIXES = ("progress/", "throughput/")  # listed last
EARLY_END_REASONS = frozenset(
    {"stopped", "interrupted", STOPPED_BY_HAND, "preempted"}
)  # how a recorder calls an end before the end
PROGRESS_STATES = {COMPLETED: "finished", FAILED: "failed", STOPPED: "stopped"}


@dataclass(frozen=True, slots=True)
class Change:
    """A metric's first and last number, and all between."""

    metric: str
    first: float
    last: float
    series: Series

    @property
    def share(self) -> float | None:
        """By how much of the first it has changed; None from nothing, or across zero."""
        if self.first == 0 or self.first * self.last < 0:
            return None
        change = (self.last - self.first) / abs(self.first)
        return change if isfinite(change) else None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands now."""

    name: str
    state: str  # "running", "unknown", "finished", "stopped", "failed", "killed"
    state_why: str
    step: int
    total: int | None
    unit: str
    fraction: float | None
    trained: float | None  # seconds
    eta: float | None  # seconds of training that are left; None: nothing tells
    eta_why: str  # where it comes from, or why there is none
    changes: tuple[Change, ...]  # the most telling first
    diagnosis: Diagnosis
    progress: Progress | None
    checkpoints: Inspection | None
    upload: "UploadCost | None" = None


def standing(  # noqa: PLR0913, PLR0917 - what is known of a run, from each of its files
    name: str,
    diagnosis: Diagnosis,
    progress: Progress | None = None,
    checkpoints: Inspection | None = None,
    now: float = 0.0,
    upload: "UploadCost | None" = None,
) -> Standing:
    """Put together where a run stands. `now`: seconds since the epoch."""
    trace = diagnosis.trace
    state, reason = _state(trace, progress, now)
    step, total = _reach(trace, progress)
    fraction = None if not total else min(1.0, step / total)
    if fraction is None and progress is not None:
        fraction = progress.fraction
    eta, eta_why = _eta(trace, progress, step, total, state)
    if eta is None and total and state != "finished" and checkpoints is not None:
        speed = _by_checkpoints(checkpoints)
        if speed is not None:
            eta, eta_why = max(0, total - step) * speed, "from the times of its checkpoints"
    seconds = progress.trained if progress is not None else None
    trained = training_time(trace)[0] if seconds is None else seconds
    return Standing(
        name=name,
        state=state,
        state_why=reason,
        step=step,
        total=total,
        unit=trace.step_unit,
        fraction=fraction,
        trained=trained,
        eta=eta,
        eta_why=eta_why,
        changes=tuple(_changes(trace)),
        diagnosis=diagnosis,
        progress=progress,
        checkpoints=checkpoints,
        upload=upload,
    )


def _reach(trace: Trace, progress: Progress | None) -> tuple[int, int | None]:
    """Return the step that is reached, and the last that there will be."""
    total = trace.budget.steps if trace.budget is not None else None
    if progress is None or progress.step is None:
        return trace.last_step, total
    # A log may count environment steps where the progress counts updates: one scale or the other.
    if total is None or progress.total_steps == total:
        return max(progress.step, 0 if total is None else trace.last_step), progress.total_steps
    return trace.last_step, total


def _state(  # noqa: PLR0911 - one for each way to know
    trace: Trace, progress: Progress | None, now: float
) -> tuple[str, str]:
    """Say how a run lives, and by what that is known."""
    cycle = trace.lifecycle
    if cycle.lost:
        return "killed", cycle.lost
    if cycle.failed:
        last_line = cycle.traceback.strip().rpartition("\n")[2]
        reason = cycle.reason or cycle.signal or last_line
        return "failed", reason or "it did not end as a program should"
    if cycle.over and cycle.live is None:
        state = "stopped" if cycle.reason in EARLY_END_REASONS else "finished"
        return state, cycle.reason or "its log says so"
    if cycle.live:
        return "running", cycle.live_by
    if progress is not None and progress.status in PROGRESS_STATES:
        return PROGRESS_STATES[progress.status], progress.error or "its progress file says so"
    run_liveness = liveness(trace)
    if run_liveness.live is not None:
        return "running" if run_liveness.live else "finished", run_liveness.why
    # It is written with each step: a heartbeat, of which an old one says nothing.
    updated = None if progress is None else progress.updated
    if updated is not None and abs(now - updated) < MAX_LIVE_SILENCE_S:
        return "running", "its progress file was written just now"
    return "unknown", f"not known whether it goes on: {run_liveness.why}"


def _eta(
    trace: Trace, progress: Progress | None, step: int, total: int | None, state: str
) -> tuple[float | None, str]:
    """Return the seconds of training that are left, and where that comes from."""
    if state == "finished":
        return None, "it is over"
    if progress is not None and progress.eta is not None and progress.status == RUNNING:
        return progress.eta, "from the time it has trained"
    if not total:
        return None, "nothing says how many steps there will be"
    speed = _seconds_per_step(trace)
    if speed is None:
        return None, "the log has no times"
    return max(0, total - step) * speed, "from the times in its log"


def _seconds_per_step(trace: Trace) -> float | None:
    """Return the mean time of a step of late: pauses between attempts do not count.

    A loop that logs each episode waits for its update at few of its rows: a median misses that.
    """
    # The series that tells best when which step was done.
    timed = [s.where(np.isfinite(s.times)) for s in trace.series.values()]
    series = max((s for s in timed if len(s) > 1), key=len, default=None)
    if series is None:
        return None
    late = series.tail(201)  # rows: several updates, where each episode is a row
    steps, seconds = np.diff(late.steps), np.diff(late.times)
    good = (steps > 0) & (seconds >= 0)
    if not good.any():
        return None
    good &= seconds <= max(PAUSE_FACTOR * float(np.median(seconds[good])), MIN_PAUSE_SECONDS)
    seconds_per_step = float(seconds[good].sum() / steps[good].sum())
    return seconds_per_step if seconds_per_step > 0 else None


def _by_checkpoints(look: Inspection) -> float | None:
    """Return the usual time of a step by when checkpoints were saved, as their manifests say."""
    saved = [
        (checkpoint.step, checkpoint.saved)
        for checkpoint in look.seen
        if checkpoint.usable or checkpoint.complete
    ]
    pairs = [(step, when) for step, when in saved if when is not None]
    spans = [
        (when - previous) / (step - earlier)
        for (earlier, previous), (step, when) in pairwise(pairs)
        if when - previous > 2.0  # seconds: closer checkpoints do not show a speed
    ]
    return float(np.median(spans)) if len(spans) > 1 and len(spans) == len(pairs) - 1 else None


def _changes(trace: Trace) -> Iterable[Change]:
    """Go through the metrics from first to last number, what the run is judged by first."""
    outcome = verdict_trend(thin_trace(trace)).metric
    first = [*([outcome] if outcome else []), *(metric.name for metric in STATUS_METRIC_ORDER)]
    other_names = sorted(trace.series, key=lambda name: (name.startswith(PROGRESS_PREFIXES), name))
    for name in dict.fromkeys([*first, *other_names]):
        series = trace.numbers(name, least=2)
        if series is not None:
            yield Change(name, float(series.values[0]), float(series.values[-1]), series)
