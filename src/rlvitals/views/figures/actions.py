"""Which actions are taken, over the run: a policy that collapses shows as one colour."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.coupling import Spread, spread
from rlvitals.metrics.catalogue import exploration, policy
from rlvitals.types import Profile, Series, Trace
from rlvitals.views.figures.figure import Figure, Kind, Limit, Line, Panel, Subject, Words
from rlvitals.views.figures.panels import finished, natural

WINDOWS = 60  # stretches of the run whose shares are drawn
SMALLEST = 50  # decisions of a stretch: the standard error of a share of .5 is then .07
MOST = 40  # actions: more cannot be told apart
NEEDS = (policy.ACTION, policy.ACTION_COUNT, exploration.ACTION_SHARE)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw a panel for each run: its shares sum to 1."""
    several = len(subjects) > 1
    best = [spread(one.trace) for one in subjects]
    found = [
        (shares(one.trace, run), own)
        for run, (one, own) in enumerate(zip(subjects, best, strict=True))
    ]
    return tuple(
        finished(
            subjects,
            Panel(
                subjects[run].label if several else "Share of the choices",
                lines=lines,
                limits=() if own is None else tuple(_edges(lines, own)),
                kind=Kind.SHARES,
                low=0.0,
                high=1.0,
                said=None if own is None else Words(own.short),
            ),
            (),
        )
        for run, (lines, own) in enumerate(found)
        if lines
    )


def _edges(lines: Sequence[Line], own: Spread) -> Iterator[Limit]:
    """Draw where the areas would end if each replica had its best share."""
    if not own.best.known:
        return
    reached = 0.0
    for line in lines[:-1]:
        share = own.best.share(line.label.rpartition(" ")[2])
        if share is None:
            return
        reached += share
        yield Limit(reached, f"{line.label}: best {share:.0%}")


def shares(trace: Trace, run: int = 0) -> tuple[Line, ...]:
    """Return each action's share by stretches of the run, at the stretches' last steps."""
    found = _decisions(trace) or _rollouts(trace)
    if found is None:
        return ()
    names, steps, taken, metric = found
    least = SMALLEST if metric == policy.ACTION.name else 1
    rows = np.array_split(np.arange(len(steps)), max(1, min(WINDOWS, len(steps) // least)))
    sums = np.array([taken[part].sum(axis=0) for part in rows])
    whole = sums.sum(axis=1, keepdims=True)
    parts = np.divide(sums, whole, out=np.full_like(sums, np.nan), where=whole > 0)
    # A stretch reaches back to the one before it, the first to its own start.
    ends = np.array([steps[0], *(steps[part[-1]] for part in rows)])
    parts = np.concatenate((parts[:1], parts))
    what = "replica" if trace.profile is Profile.SCHEDULER_PPO else "action"
    unknown = np.full(len(ends), np.nan)
    return tuple(
        Line(f"{what} {name}", metric, Series(ends, unknown, parts[:, at]), run, at, smooth=False)
        for at, name in enumerate(names)
    )


Taken = tuple[list[str], NDArray[np.int64], NDArray[np.float64], str]


def _decisions(trace: Trace) -> Taken | None:
    """Return names, steps [n], which action each decision took [n, actions], and the metric."""
    chosen = trace.numbers(policy.ACTION.name, least=2 * SMALLEST)
    actions = np.empty(0) if chosen is None else np.unique(chosen.values)
    if chosen is None or len(actions) > MOST:
        return None
    taken = (chosen.values[:, None] == actions).astype(np.float64)
    return [f"{action:g}" for action in actions], chosen.steps, taken, policy.ACTION.name


def _rollouts(trace: Trace) -> Taken | None:
    """Return the same for rollouts, by counts or by shares."""
    for metric in (policy.ACTION_COUNT, exploration.ACTION_SHARE):
        family = trace.family(metric.name)
        names = sorted(family, key=natural)
        lengths = {len(series) for series in family.values()}
        if 1 < len(names) <= MOST and len(lengths) == 1 and lengths.pop() > 1:
            taken = np.stack([np.nan_to_num(family[name].values) for name in names], axis=1)
            steps = family[names[0]].steps
            return names, steps, np.maximum(taken, 0.0), f"{metric.name}/{names[0]}"
    return None


FIGURE = Figure("actions", "Actions taken", needs=NEEDS, panels=panels)
