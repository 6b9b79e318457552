"""Figure: shares of the actions over the run; a collapsed policy shows one colour."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.diagnosis.coupling import Spread, spread
from rlvitals.metrics.catalogue import exploration, policy
from rlvitals.types import Profile, Series, Trace
from rlvitals.views.figures.figure import Figure, Kind, Limit, Line, Panel, Subject, Words
from rlvitals.views.figures.panels import annotate, natural

MIN_WINDOW_DECISIONS = 50  # of a window: the standard error of a share of 0.5 is 0.07
MAX_DRAWN_ACTIONS = 40  # more cannot be distinguished


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel of shares for each run."""
    several = len(subjects) > 1
    best = [spread(subject.trace) for subject in subjects]
    shares_by_run = [
        (shares(subject.trace, run), split)
        for run, (subject, split) in enumerate(zip(subjects, best, strict=True))
    ]
    return tuple(
        annotate(
            subjects,
            Panel(
                subjects[run].label if several else "Share of the choices",
                lines=lines,
                limits=() if split is None else tuple(_edges(lines, split)),
                kind=Kind.SHARES,
                low=0.0,
                high=1.0,
                said=None if split is None else Words(split.short),
            ),
            (),
        )
        for run, (lines, split) in enumerate(shares_by_run)
        if lines
    )


def _edges(lines: Sequence[Line], split: Spread) -> Iterator[Limit]:
    """Yield the edges of the areas at the best share of each replica."""
    if not split.best.known:
        return
    reached = 0.0
    for line in lines[:-1]:
        share = split.best.share(line.label.rpartition(" ")[2])
        if share is None:
            return
        reached += share
        yield Limit(reached, f"{line.label}: best {share:.0%}")


def shares(trace: Trace, run: int = 0) -> tuple[Line, ...]:
    """Return each action's share in windows of the run, at each window's last step."""
    decisions = _decisions(trace) or _rollouts(trace)
    if decisions is None:
        return ()
    names, steps, choices, metric = decisions
    min_steps = MIN_WINDOW_DECISIONS if metric == policy.ACTION.name else 1
    rows = np.array_split(np.arange(len(steps)), max(1, min(60, len(steps) // min_steps)))
    sums = np.array([choices[window].sum(axis=0) for window in rows])
    totals = sums.sum(axis=1, keepdims=True)
    fractions = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
    # A window extends back to the previous one, the first to its own start.
    ends = np.array([steps[0], *(steps[window[-1]] for window in rows)])
    fractions = np.concatenate((fractions[:1], fractions))
    noun = "replica" if trace.profile is Profile.SCHEDULER_PPO else "action"
    unknown = np.full(len(ends), np.nan)
    return tuple(
        Line(
            f"{noun} {name}",
            metric,
            Series(ends, unknown, fractions[:, column]),
            run,
            column,
            smooth=False,
        )
        for column, name in enumerate(names)
    )


Taken = tuple[list[str], NDArray[np.int64], NDArray[np.float64], str]


def _decisions(trace: Trace) -> Taken | None:
    """Return the names, steps [n], one-hot actions [n, actions] and metric of each decision."""
    chosen = trace.numbers(policy.ACTION.name, least=2 * MIN_WINDOW_DECISIONS)
    actions = np.empty(0) if chosen is None else np.unique(chosen.values)
    if chosen is None or len(actions) > MAX_DRAWN_ACTIONS:
        return None
    choices = (chosen.values[:, None] == actions).astype(np.float64)
    return [f"{action:g}" for action in actions], chosen.steps, choices, policy.ACTION.name


def _rollouts(trace: Trace) -> Taken | None:
    """Return names, steps [n], counts or shares [n, actions] and metric of rollouts."""
    for metric in (policy.ACTION_COUNT, exploration.ACTION_SHARE):
        family = trace.family(metric.name)
        names = sorted(family, key=natural)
        lengths = {len(series) for series in family.values()}
        if 1 < len(names) <= MAX_DRAWN_ACTIONS and len(lengths) == 1 and lengths.pop() > 1:
            choices = np.stack([np.nan_to_num(family[name].values) for name in names], axis=1)
            steps = family[names[0]].steps
            return names, steps, np.maximum(choices, 0.0), f"{metric.name}/{names[0]}"
    return None


FIGURE = Figure(
    "actions",
    "Actions taken",
    needs=(policy.ACTION, policy.ACTION_COUNT, exploration.ACTION_SHARE),
    panels=panels,
)
