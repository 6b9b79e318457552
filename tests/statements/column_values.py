"""What the numbers of each rule's sentences are, by rule."""

import numpy as np
from derivations import Case, claim, columns, head, streak, trimmed, windows

from rlvitals.rules.course import falls as swings
from rlvitals.rules.curves import by_steps
from rlvitals.rules.image_checks import image_checks
from rlvitals.rules.width import max_entropy
from rlvitals.signals.changepoint import change_point
from rlvitals.signals.oscillation import oscillation
from rlvitals.signals.outcome_course import course_of

KL, CLIP = "policy/approx_kl", "policy/clip_fraction"


def part(test):
    """Return the share of the finding's metric, over each window, that passes `test`."""
    return lambda case: [
        float(test(window.values, case).mean()) for window in windows(case, case.metric)
        if len(window)
    ]  # fmt: skip


def count(test):
    """Return how many points of the finding's metric pass `test`, over each window."""
    return lambda case: [
        float(test(window.values, case).sum()) for window in windows(case, case.metric)
    ]


def points(case: Case):
    """Return how many points the finding's metric has in each window."""
    return [float(len(window)) for window in windows(case, case.metric)]


def logged(*names):
    """Return the values of columns, each as it was logged."""
    return lambda case: [float(v) for name in names for v in case[name].values]


def at_start(*names):
    """Return a column's level at the start: its first value, median of a tenth, of five."""

    def derive(case: Case):
        for name in names or (case.finding.metric,):
            for series in columns(case, name):
                if len(series):
                    yield from (float(series.values[0]), head(series.values))
                    yield float(np.median(series.values[:5]))
                    yield float(series.values[:5].mean())
                    yield float(np.median(series.values[: max(3, len(series) // 10)]))
                    yield trimmed(series.values[: max(round(len(series) / 5), 1)])

    return derive


def at_end(*names):
    """Return a column's level at the end: its last value, median or mean of the last few."""

    def derive(case: Case):
        for name in names or (case.finding.metric,):
            for series in columns(case, name):
                for n in (1, 5, 10, 20, round(len(series) / 5), len(series) // 10):
                    if len(series):
                        tail = series.tail(max(n, 1)).values
                        yield from (float(np.median(tail)), float(tail.mean()), trimmed(tail))

    return derive


def jumps_of(name: str, past: int = 50):
    """Return each point's ratio to the median of the points before it."""

    def derive(case: Case):
        values = case[name].values
        for i in range(1, values.size):
            before = float(np.median(values[max(0, i - past) : i]))
            yield float(values[i] / before) if before else np.inf

    return derive


def medians_before(name: str, past: int):
    """Return the median of the points before each point."""
    return lambda case: [
        float(np.median(case[name].values[max(0, i - past) : i])) for i in range(1, len(case[name]))
    ]


def courses(case: Case):
    """Return every outcome by twenty blocks."""
    for name in [n for n in case.trace.series if n.startswith(("outcome/", "reward/"))]:
        for series in columns(case, name):
            for each in (series, by_steps(series)):
                if len(each) >= 20:
                    yield each, course_of(each.values)


def block_starts(case: Case):
    """Return the step at which each block of an outcome starts."""
    for series, course in courses(case):
        offset = len(series) - len(course.blocks) * course.width
        yield from series.steps[offset :: course.width]


def lost_share(case: Case):
    """Return which part of an outcome's gain was lost at its end."""
    for _, course in courses(case):
        yield from (course.loss / gain for gain in (course.gain, course.total_gain) if gain > 0)


def block_values(case: Case):
    """Return the mean of each block, and of the last two."""
    for _, course in courses(case):
        yield from course.blocks
        yield float(course.blocks[-2:].mean())


def entropy_share(case: Case):
    """Return the entropy of the second half as a share of the uniform policy's."""
    most = max_entropy(case.trace)
    late = case["exploration/entropy"]
    first, last = case.trace.first_step, case.trace.last_step
    late = late.since(first + (last - first) // 2)
    return [] if most is None else [float(np.median(late.values)) / most.value]


def most_entropy(case: Case):
    """Return the uniform policy's entropy."""
    most = max_entropy(case.trace)
    return [] if most is None else [most.value]


def positive_in_a_row(case: Case):
    """Return for how many updates no sample was on one side."""
    return [float(streak(case.metric.values == 0))]


def equal_in_a_row(case: Case):
    """Return the longest stretches of one value without an exception."""
    values = case.metric.values
    for window in windows(case, case.metric):
        for value in np.unique(window.values):
            yield float(streak(window.values == value))
    yield float(streak(values == 0))


def equal_last_rows(case: Case):
    """Return how many of the last rows have the value of the last."""
    different = np.flatnonzero(case.metric.values != case.metric.values[-1])
    yield float(len(case.metric) - 1 - (different[-1] if len(different) else -1))


def checks(name: str):
    """Return a count or a share of the checks of images."""
    return lambda case: [getattr(image_checks(case.trace), name)]


def change_levels(side: str):
    """Return a level beside the finding's change point."""

    def derive(case: Case):
        found = change_point(case.metric.values)
        return [] if found is None else [getattr(found, side)]

    return derive


def near(name: str, side: str, size: int = 10):
    """Return the median of a column's points just before or after the finding began."""

    def derive(case: Case):
        series, began = case[name], case.finding.began
        for n in (5, size, 20, 50):
            for shift in (0, 1, 2, 3):
                at = int(np.searchsorted(series.steps, began)) - shift
                parts = series.values[max(0, at - n) : max(at, 0)], series.values[at : at + n]
                values = parts[0] if side == "before" else parts[1]
                if values.size:
                    yield float(np.median(values))
        for window in windows(case, series):
            if len(window):
                yield float(np.median(window.values))
                yield float(np.median(window.values[-5:]))

    return derive


def mean_loss(side: slice):
    """Return the median loss over a part of the finding's run."""
    return lambda case: [float(np.median(w.values[side])) for w in windows(case, case.metric)]


OUTCOME_LOST = [
    claim("<label> reached <best> around step <step> and is at <end> now: all of what was gained "
          "is lost", best=block_values, end=block_values, step=block_starts),
    claim("<label> reached <best> around step <step> and is at <end> now: <share> of what was "
          "gained is lost",
          best=block_values, end=block_values, step=block_starts, share=lost_share),
]  # fmt: skip


def times(first, second):
    """Return the ratios of one set of values to another."""
    return lambda case: [
        a / b for b in set(second(case)) if b for a in set(first(case))
    ]  # fmt: skip


def spanned(step: str):
    """Return the share of the run before a finding's step, of steps and of the budget."""

    def derive(case: Case):
        trace, at = case.trace, getattr(case.finding, step)
        starts = {trace.first_step, trace.first_number, 0}
        totals = {trace.last_step, trace.budget.steps if trace.budget else trace.last_step}
        return [(at - a) / max(b - a, 1) for a in starts for b in totals if b > a]

    return derive


def remaining(case: Case):
    """Return the share of the finding's metric that lies after it began."""
    for series in columns(case, "M"):
        first, last = int(series.steps[0]), int(series.steps[-1])
        yield (last - case.finding.began) / max(last - first, 1)


def range_of(name: str):
    """Return the length of the intervals between a column's points and the ratio of extremes."""
    return lambda case: [float(np.ptp(case[name].values))]


def dissimilar(name: str):
    """Return what a standard deviation of the last ten is of their mean."""

    def derive(case: Case):
        tail = case[name].values[-10:]
        return [abs(float(tail.std(ddof=d) / tail.mean())) for d in (0, 1)]

    return derive


def roughness(case: Case):
    """Return how much wider a positive column swings late than early."""
    values = case.metric.values
    found = oscillation(np.log(values[values > 0]))
    return [] if found is None else [float(np.sqrt(found.ratio))]


def swing_counts(case: Case):
    """Return how often half of an outcome's range was lost."""
    return [float(swings(course)) for _, course in courses(case)]


def zeros(name: str):
    """Return how many points of a column are exactly zero, in each window."""
    return lambda case: [float((w.values == 0).sum()) for w in windows(case, case[name])]


def zero_share(name: str):
    """Return the share of a column's points that are exactly zero, in each window."""
    return lambda case: [
        float((w.values == 0).mean()) for w in windows(case, case[name]) if len(w)
    ]  # fmt: skip


def lengths(*names: str):
    """Return how many points columns have in each window."""
    return lambda case: [
        float(len(w)) for name in names for w in windows(case, case[name])
    ]  # fmt: skip


def bad(case: Case):
    """Return how many points of the finding's metric are no numbers, of all and at the end."""
    values = case.trace[case.finding.metric].values
    broken = ~np.isfinite(values)
    good = np.flatnonzero(~broken)
    after_first = broken[int(good[0]) if good.size else 0 :]
    return [float(broken.sum()), float(after_first.sum())]


def bad_tail(case: Case):
    """Return how many points at the end of the finding's metric are no numbers in a row."""
    values = case.trace[case.finding.metric].values
    good = np.flatnonzero(np.isfinite(values))
    return [float(values.size - (int(good[-1]) + 1 if good.size else 0))]


def every_point(case: Case):
    """Return how many points the finding's metric has, numbers or not."""
    values = case.trace[case.finding.metric].values
    numbers = np.flatnonzero(~np.isnan(values))
    return [float(values.size), float(values.size - (numbers[0] if numbers.size else 0))]


def beyond(case: Case):
    """Return how many points lie beyond the finding's limit, in each window."""
    for w in windows(case, case.metric):
        yield float((w.values > case.finding.bound.value).sum())
        yield float((w.values < case.finding.bound.value).sum())


def beyond_share(case: Case):
    """Return the share of points that lie beyond the finding's limit, in each window."""
    for w in windows(case, case.metric):
        if len(w):
            yield float((w.values > case.finding.bound.value).mean())
            yield float((w.values < case.finding.bound.value).mean())


def tail_of_zeros(case: Case):
    """Return how many points in a row at the end of the finding's metric are exactly zero."""
    moved = np.flatnonzero(case.metric.values != 0)
    return [float(len(case.metric) - 1 - (int(moved[-1]) if moved.size else -1))]


def typical_error(case: Case):
    """Return the error of one step that a loss stands for: squared, or Huber's."""
    for level in (at_start(), at_end()):
        for loss in level(case):
            yield from (float(np.sqrt(max(loss, 0))), float(np.sqrt(2 * max(loss, 0))), loss + 0.5)


def first_bad(case: Case):
    """Return the steps of points that are no numbers."""
    series = case.trace[case.finding.metric]
    return series.steps[~np.isfinite(series.values)].tolist()


def not_zero(name):
    """Return the largest value of a column."""
    return lambda case: [float(case[name].values.max())]
