"""Numbers of one rule's sentences, derived from the trace."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from column_values import (
    jumps_of,
)  # fmt: skip
from common_sentences import outcomes
from derivations import Case, trend_of, windows

from rlvitals.rules.answers import answers
from rlvitals.rules.data.impossible_value import _limits
from rlvitals.rules.derived_series import temperature_lag
from rlvitals.rules.identities import IDENTITIES
from rlvitals.rules.practice import odd
from rlvitals.signals.changepoint import change_point
from rlvitals.signals.spread import noise_sd

RETURN, LENGTH, LOSS = "outcome/return", "outcome/episode_length", "optimiser/loss"
VALUE_LOSS, EXPLAINED = "value/loss", "value/explained_variance"


def ledgers(what):
    """Return a number of each identity that the log breaks."""

    def derive(case: Case):
        for identity in IDENTITIES:
            kept = identity.keep(case.trace)
            if kept is not None and kept.violations.any():
                at = np.flatnonzero(kept.violations)
                yield what(kept, at)

    return derive


def held_images(what):
    """Return a share or an end of the interval of the checks of images, from their counts."""

    def derive(case: Case):
        names = ("questions", "right_own", "right_other", "marks_changed")
        asked, own, other, flips = (case[f"language/image_{name}"].values for name in names)
        total = asked.sum()
        shares = [float(asked @ column) / total for column in (own, other, flips)]
        added = shares[0] - shares[1]
        spread = 3 * np.sqrt(max(shares[2] - added**2, 0) / total)
        yield from {
            "questions": [float(total)], "checks": [float(asked.size)], "own": shares[:1],
            "other": shares[1:2], "flips": shares[2:], "low": [added - spread],
            "high": [added + spread],
        }[what]  # fmt: skip

    return derive


def right(case: Case):
    """Return shares of right answers: over the last twenty, the last tenth, as a level."""
    found = answers(case.trace)
    series = case["outcome/reward"] if found is None else found[1]
    if len(series):
        for window in windows(case, series):
            values = window.values
            for part_of in (values[-20:], values, values[: max(10, values.size // 10)]):
                if part_of.size:
                    yield float(part_of.mean())


def shifts(side):
    """Return a level of the episode length beside its shift."""
    return lambda case: [getattr(change_point(case[LENGTH].values), side)]


def correlations(case: Case):
    """Return how changes of the episode length go with those of the return."""
    _, a, b = np.intersect1d(case[LENGTH].steps, case[RETURN].steps, return_indices=True)
    changes = np.diff(case[LENGTH].values[a]), np.diff(case[RETURN].values[b])
    return [float(np.corrcoef(*changes)[0, 1])]


def shares_of_actions(case: Case):
    """Return the largest action's share, by windows of equal size."""
    chosen = case["policy/action"].values
    size = max(30, min(200, chosen.size // 5))
    parts = np.split(chosen[chosen.size % size :], chosen.size // size)
    last = parts[-1]
    most = max(set(last), key=lambda action: (last == action).sum())
    yield from (float((window == most).mean()) for window in parts)
    yield from (float(most), float(size))


def wall(case: Case):
    """Return the silence of a run that is watched, in hours, minutes and days."""
    silence = case.trace.lifecycle.silence or np.nan
    return [silence, silence / 60, silence / 3600, silence / 86400]


def rates(case: Case):
    """Return the median rate before and after the finding began, of what it draws."""
    series = case.finding.curve.series
    for at in (case.finding.began, case.finding.began + 1):
        split = int(np.searchsorted(series.steps, at))
        for edge in (split, split + 1):
            for values in (series.values[:edge], series.values[edge:]):
                if values.size:
                    yield float(np.median(values))


def pace(case: Case):
    """Return the mean length of the windows over which a rate is drawn, in seconds."""
    clock, series = case["throughput/elapsed"], case.finding.curve.series
    at = np.searchsorted(clock.steps, series.steps)
    took = clock.values[at[-1]] - clock.values[: at[0]]  # the first window begins before its end
    return (took / len(series)).tolist()


def settings(what):
    """Return a number of the settings that no tuned run uses."""
    return lambda case: [
        value for each in odd(case.trace)
        for value in ([each.value] if what == "value" else map(number, each.usual.split(" to ")))
    ]  # fmt: skip


def number(text):
    return float(text.split(",")[0] if " or " in text else text.replace(",", ""))


def reward_gains(what):
    """Return the share of the reward's gain, by least squares, that the finding's part makes."""

    def derive(case: Case):
        parts = {n: case[n] for n in case.trace.series if n.startswith("reward/component/")}
        total, steps = case["outcome/reward"], case["outcome/reward"].steps
        for series in parts.values():
            steps = np.intersect1d(steps, series.steps)
        column = {n: s.values[np.searchsorted(s.steps, steps)] for n, s in parts.items()}
        y = total.values[np.searchsorted(total.steps, steps)]
        design = np.column_stack((*column.values(), np.ones(len(steps))))
        weights = np.linalg.lstsq(design, y)[0] if y.size else np.ones(len(parts))
        gained = {}
        for (name, series), weight in zip(parts.items(), weights, strict=False):
            fifth = max(round(len(series) / 5), 1)
            values = series.values
            gained[name] = float(weight * (values[-fifth:].mean() - values[:fifth].mean()))
        made = sum(max(value, 0) for value in gained.values())
        return [what(gained[case.finding.metric], made)]

    return derive


def swept(what):
    """Return a number of the windows in which total and absolute reward differ in sign."""

    def derive(case: Case):
        total, beside = case.metric, case["reward/absolute"]
        first, last = min(total.steps[0], beside.steps[0]), max(total.steps[-1], beside.steps[-1])
        edges = np.linspace(first, last + 1, 13)
        means = np.array([
            [s.values[(s.steps >= a) & (s.steps < b)].mean() for s in (total, beside)]
            for a, b in pairwise(edges)
        ])  # fmt: skip
        held = (means[:, 0] < 0) & (means[:, 1] > 0)
        return [what(means, held)]

    return derive


def epochs(what):
    """Return a number of the epochs of each iteration."""

    def derive(case: Case):
        updates, iterations = case["optimiser/updates"], case["progress/iteration"]
        at = np.searchsorted(iterations.steps, updates.steps)
        made = np.diff(updates.values) / np.diff(iterations.values[at])
        return [what(made[made >= 0])]

    return derive


def binomial_error(case: Case):
    """Return the standard error of the evaluation's mean share, of 140 answers."""
    share = float(case.metric.values.mean())
    return [float(np.sqrt(share * (1 - share) / 140))]


def offsets(case: Case):
    """Return the mean advantage in standard deviations, of each update."""
    return case["policy/advantage_mean"].values / case["policy/advantage_std"].values


def gone(case: Case):
    """Return the share of the run until half of the entropy was gone for good."""
    values, steps = case.metric.values, case.metric.steps
    above = np.flatnonzero(values >= 0.5 * values[0])
    at = steps[int(above[-1]) + 1 if above.size else 0]
    first, last = case.trace.first_step, case.trace.last_step
    return [(at - first) / max(last - first, 1)]


def critic_returns(case: Case):
    """Return what rewards add up to over the horizon of the discount."""
    first, last = case.trace.first_step, case.trace.last_step
    half = first + (last - first) // 2
    gamma = case.trace.number("gamma") or 0.99
    for length in (np.median(case[LENGTH].since(half).values) if len(case[LENGTH]) else 200.0,):
        ahead = min(length, 1 / (1 - gamma)) if gamma < 1 else length
        for _, window in outcomes(case):
            yield float(np.median(np.abs(window.values))) / length * ahead


def drifts(case: Case):
    """Return the median distance of the critic's mean from the mean return, in deviations."""
    mean, back = case["value/mean"], case["value/return_mean"]
    steps, a, b = np.intersect1d(mean.steps, back.steps, return_indices=True)
    gap = np.abs(mean.values[a] - back.values[b])
    for name, factor in (("value/return_var", 1.0), (VALUE_LOSS, 2.0)):
        squared = case[name]
        if len(squared):
            here = factor * squared.values[np.searchsorted(squared.steps, steps)]
            variance = here if factor == 1 else np.maximum(here - gap**2, 1e-6 * here)
            during = (steps >= case.finding.began) & (steps <= case.finding.ended)
            yield float(np.median(np.minimum(gap / np.sqrt(variance), 10)[during]))


def last_third(series):
    """Return the median of the last third of a series."""
    return float(np.median(series.values[-(len(series) // 3) :]))


def varying(case: Case):
    """Return the explained variances during the finding where returns vary: see its rule's page."""
    logged_here, loss = case.metric, case[VALUE_LOSS]
    keep = logged_here.values > -1e3
    if len(loss):
        small = loss.values < 1e-4 * np.maximum.accumulate(loss.values)
        at = np.searchsorted(loss.steps, logged_here.steps, side="right") - 1
        keep &= ~small[np.maximum(at, 0)]
    keep &= (logged_here.steps >= case.finding.began) & (logged_here.steps <= case.finding.ended)
    return logged_here.values[keep]


def possible(case: Case):
    """Return (points beyond it, limit) of each limit of what a logged column can be."""
    for limit in _limits(case.trace):
        values, off = limit.series.values, limit.slack
        far = values - limit.bound.value
        yield float((far > off if limit.above else far < -off).sum()), limit.bound.value


def cut_and_right(case: Case):
    """Return which share of responses must be both right and cut."""
    cut = case.metric.since(case.finding.began).until(case.finding.ended)
    return [share + float(np.median(cut.values)) - 1 for share in right(case)]


def drift(what):
    """Return a number of the critic's mean and the mean return."""
    return lambda case: case[f"value/{what}"].values.tolist()


def uniform_groups(side):
    """Return the share of groups that are all right or all wrong, as their mean says."""

    def derive(case: Case):
        stretch = case.finding.began, case.finding.ended
        both = [case[f"language/group_all_{s}"].since(stretch[0]).until(stretch[1])
                for s in ("right", "wrong")]  # fmt: skip
        if all(len(s) for s in both):
            yield float(both[side == "wrong"].values.mean())
        same = float(case.metric.since(stretch[0]).until(stretch[1]).values.mean())
        for share in right(case):
            all_right = float(np.clip(share - (1 - same) / 2, 0, same))
            yield all_right if side == "right" else same - all_right

    return derive


def jump_list(case: Case):
    """Return the values and the steps of a column."""
    return [*case.metric.values.tolist(), *case.metric.steps.tolist()]


def jump_count(case: Case):
    """Return how many jumps a column has after the first, by its limit and its own median."""
    values = case.metric.values
    ratios = np.array([np.inf, *jumps_of(case.finding.metric)(case)])
    for floor in {0.05, 5 * (case.trace.number("target_kl") or 0.01), case.finding.bound.value}:
        for factor in (8.0, 10.0):
            hits = int(((ratios > factor) & (values > floor))[1:].sum())
            yield from (float(hits), float(hits - 1))


def per_token(case: Case):
    """Return the KL to the reference of a token, as a median since the finding began."""
    kl, limit = case["policy/kl_to_reference"], case.trace.number("max_completion_length")
    for window in windows(case, kl):
        if len(window):
            yield float(np.median(window.values)) / (limit or 1)


def gaps(case: Case):
    """Return the median of each measure of the sampler's gap, in each window."""
    for name in [n for n in case.trace.series if n.startswith(("policy/sampler", "rollouts/"))]:
        for window in windows(case, case[name]):
            if len(window):
                yield from (float(np.median(window.values)), float(np.median(1 - window.values)))


def held(end):
    """Return one end of the interval of the finding's own metric or of the images' checks."""

    def derive(case: Case):
        series = [case.metric] if case.finding.curve is None else [case.finding.curve.series]
        for each in series:
            for window in windows(case, each):
                for confidence in (0.95, 0.99):
                    for sign in (1, -1):
                        found = trend_of(sign * window.values, confidence=confidence)
                        if found is not None:
                            yield getattr(found, f"change_{end}")
        if case.finding.metric.startswith("language/image_"):
            yield from held_images(end)(case)

    return derive


def kl_limit(case):
    target = case.trace.number("target_kl")
    return [1.5 * target if target else 0.03]


def coefs(case, level):
    drawn = Case(replace(case.trace, series={"coef": case.finding.curve.series}), case.finding)
    return level("coef")(drawn)


def gained(values):
    width = max(1, values.size // 10)
    blocks = values[values.size % width :].reshape(-1, width).mean(axis=1)
    return max(0.0, float(blocks.max() - blocks[0]))


def steps_sd(series):
    return noise_sd(series.values)


def level(case):
    series = case.finding.curve.series if case.finding.curve else case.metric
    for window in windows(case, series):
        values = window.values
        fifth = max(round(values.size / 5), 1)
        cut = int(0.1 * fifth)
        for piece in (
            values[:fifth],
            values[-fifth:],
            values,
            values[: max(10, values.size // 10)],
        ):
            yield float(piece.mean()) if piece.size else np.nan
            if piece.size > 2 * cut:
                yield float(np.sort(piece)[cut : piece.size - cut].mean())


def growth_again(case):
    half = case.metric.tail(len(case.metric) - len(case.metric) // 2)
    late = half.where(np.array_split(np.arange(len(half)), 2)[1])
    third = max(1, len(late) // 3)
    rise, ran = (
        float(np.median(column[-third:]) - np.median(column[:third]))
        for column in (late.values, late.steps)
    )
    return [rise / ran * float(half.steps[-1] - half.steps[0])]


def fifths(case, name=""):
    values = (case[name] if name else case.metric).values
    width = max(1, values.size // 5)
    return values[values.size % width :].reshape(-1, width).mean(axis=1).tolist()


def scatter_ratio(case):
    values = case.metric.values
    width = max(1, values.size // 5)
    error = steps_sd(case.metric) * np.sqrt(2 / width)
    blocks = fifths(case)
    return [abs(blocks[-1] - edge) / error for edge in blocks]


def pairs(case, what):
    for name in [n for n in case.trace.series if "latency" in n or "queue" in n]:
        found = temperature_lag(case[name], case.metric)
        if found is not None:
            yield float(getattr(found, what))


def rank_numbers(case):
    """Return the ranks of the run."""
    return case.trace.ranks[case.finding.metric].ranks


def rank_offsets(case):
    """Return each rank's median time against the others' median at the same step, s."""
    times = case.trace.ranks[case.finding.metric].times
    return np.abs(np.median(times - np.median(times, axis=0), axis=1))


def rank_differences(case):
    """Return at how many steps each rank's value is not that of rank 0."""
    values = case.trace.ranks[case.finding.metric].values
    return (~np.isclose(values, values[0], rtol=1e-4)).sum(axis=1)


def rank_row_counts(case):
    """Return the number of rows of each rank."""
    return case.trace.ranks[case.finding.metric].logged.sum(axis=1)


def rank_last_steps(case):
    """Return the last step of each rank."""
    ranks = case.trace.ranks[case.finding.metric]
    return [ranks.steps[row].max() for row in ranks.logged]


def rank_ratios(case):
    """Return every ratio of a rank's time of a step to the median of the ranks."""
    values = case.trace.ranks[case.finding.metric].values
    return np.unique(values / np.median(values, axis=0))
