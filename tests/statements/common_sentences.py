"""Claims of the sentences that many rules say: of the outcome, of data that lack, of changes."""

import numpy as np
from derivations import (
    Case,
    change_of,
    claim,
    columns,
    statistic,
    trend_of,
    trimmed,
    windows,
)

from rlvitals.rules import kinds, likely_outcome
from rlvitals.rules.answers import prefer_evaluation
from rlvitals.rules.curves import by_steps
from rlvitals.rules.episode_window import episodes_per_point, window_points
from rlvitals.rules.gains import gain
from rlvitals.rules.standing import (
    MIN_OUTCOME_POINTS,
    environment,
    label,
    least_that_counts,
    outcome,
    task,
)
from rlvitals.signals.blocks import block_means
from rlvitals.signals.curve_shape import curve_shape
from rlvitals.signals.drawdown import drawdown
from rlvitals.signals.outcome_change import single_value_sd

STATES = (
    "rising", "falling", "flat", "holding its best", "at its ceiling", "not getting better",
    "rising by less than counts", "falling by less than counts",
)  # fmt: skip


def outcomes(case: Case):
    """Return the windows of every column that a run may be judged by."""
    for name in [
        n for n in case.trace.series if n.startswith(("outcome/", "reward/", "language/"))
    ]:
        for series in columns(case, name):
            for window in windows(case, series):
                if len(window) >= 4:
                    yield name, window


def margins(case: Case):
    """Return the least change of the run's own outcome that counts."""
    picked = outcome(case.trace)
    return [] if picked is None else [least_that_counts(case.trace, *picked)[0]]


def falls(case: Case):
    """Return how the outcome fell from its best, in each way that the code tests for."""
    for _, window in outcomes(case):
        if (found := drawdown(window.values)) is not None:
            yield found
        for margin in {None, *margins(case)}:
            if (found := change_of(window.values, margin=margin)) is not None:
                yield found


def tenths(case: Case):
    """Return an outcome's means over two twentieths in a row, its two extreme values clipped."""
    for _, window in outcomes(case):
        values = by_steps(window).values
        ordered = np.sort(values)
        clipped = np.clip(values, ordered[1], ordered[-2])
        means = block_means(clipped, max(len(clipped) // 20, 1))
        yield (means[1:] + means[:-1]) / 2


def judged_outcome(case: Case):
    """Return the points of the outcome that the shape of a curve is judged by."""
    if case.trace.profile in kinds.LANGUAGE:
        return case.trace[case.finding.metric].finite()
    return outcome(prefer_evaluation(case.trace))[1]


def sixths(which: str):
    """Return a function that derives the first, last or best mean of a sixth of the outcome."""

    def derive(case: Case):
        values = judged_outcome(case).values
        # `array_split` gives what is left over to the first parts.
        size, more = divmod(len(values), 6)
        ends = np.cumsum([size + (part < more) for part in range(6)])
        means = [values[end - size - (part < more) : end].mean() for part, end in enumerate(ends)]
        return [{"first": means[0], "last": means[-1], "best": max(means)}[which]]

    return derive


def best_sixth_ends(case: Case):
    """Return the last step of the best sixth of the outcome."""
    steps, values = judged_outcome(case).steps, judged_outcome(case).values
    parts = np.array_split(values, 6)
    best = max(range(6), key=lambda part: parts[part].mean())
    return [float(steps[sum(len(part) for part in parts[: best + 1]) - 1])]


def shape_probability(index: int):
    """Return a function that derives the probability of improved, flat or lost."""

    def derive(case: Case):
        numbers = curve_shape(judged_outcome(case).values)
        scores = np.array(likely_outcome.INTERCEPTS)
        for number, (mean, sd, *weights) in zip(
            numbers, likely_outcome.WEIGHTS.values(), strict=True
        ):
            scores = scores + (number - mean) / sd * np.array(weights)
        return [float(np.exp(scores[index]) / np.exp(scores).sum())]

    return derive


SHAPE = claim(
    "by the shape of the curve: improved <improved>, flat <flat>, lost <lost>; fitted to <curves> "
    "labelled curves of <repositories> public repositories",
    improved=shape_probability(0), flat=shape_probability(1), lost=shape_probability(2),
    curves=lambda _: [likely_outcome.FITTED_CURVES],
    repositories=lambda _: [likely_outcome.FITTED_REPOSITORIES],
)  # fmt: skip


def bests(case: Case):
    """Return the best of an outcome: a single value's, a block's, or a tenth's."""
    yield from (float(window.values.max()) for _, window in outcomes(case))
    yield from (float(levels.max()) for levels in tenths(case))
    yield from (fall.best for fall in falls(case))


def twentieths(case: Case):
    """Return an outcome's means over a twentieth of the run, and that of the last two."""
    for _, window in outcomes(case):
        means = block_means(by_steps(window).values, max(len(by_steps(window)) // 20, 1))
        yield from (*means.tolist(), float(means[-2:].mean()))


def level_of(end: str):
    """Return a function that gives an outcome's level: of a fifth, or of a third if it is flat."""

    def derive(case: Case):
        for _, window in outcomes(case):
            fifth = max(round(len(window) / 5), 1)
            yield trimmed(window.values[:fifth] if end == "first" else window.values[-fifth:])
            found = change_of(window.values)
            if found is not None and found.answer == "flat":
                yield getattr(found, end)
        if case.finding is not None:
            yield from statistic(case, "early M" if end == "first" else "late M", "")

    return derive


def single_value_change(case: Case):
    """Return the change from an outcome's first level to its last, in sd of a single value."""
    for name, window in outcomes(case):
        sd = single_value_sd(window.values, window_points(case.trace, name, window))
        sd *= episodes_per_point(case.trace, name, window) ** 0.5
        for part in (window, by_steps(window)):
            fifth = max(round(len(part) / 5), 1)
            change = trimmed(part.values[-fifth:]) - trimmed(part.values[:fifth])
            yield change / sd if sd else 0.0


def ends(case: Case):
    """Return what an outcome ended at: a block's, the last tenth's or the last fifth's."""
    yield from (fall.last for fall in falls(case))
    yield from (float(levels[-1]) for levels in tenths(case))
    for _, window in outcomes(case):
        yield trimmed(window.values[-max(round(len(window) / 5), 1) :])


def interval(end: str):
    """Return a function that gives one end of the interval of an outcome's change."""

    def derive(case: Case):
        for _, window in outcomes(case):
            spread = float(np.ptp(window.values))
            for confidence in (0.95, 0.99):
                for values in (window.values, -window.values):
                    if (found := trend_of(values, confidence=confidence)) is not None:
                        value = getattr(found, f"change_{end}")
                        yield value
                        yield float(np.clip(value, -spread, spread))
            if (found := change_of(window.values)) is not None:
                yield getattr(found, end)

    return derive


def material(case: Case):
    """Return the least change of an outcome that counts."""
    for name, window in outcomes(case):
        yield least_that_counts(case.trace, name, window)[0]
    if (picked := outcome(case.trace)) is not None:
        yield least_that_counts(case.trace, *picked)[0]
    yield 0.05  # of a success rate


def more_points(case: Case):
    """Return how many points more an outcome needs."""
    yield from (found.more for found in falls(case) if hasattr(found, "more"))


def way(case: Case):
    """Return how far the outcome's end is from a random to a solved policy."""
    picked = outcome(case.trace)
    for name, window in outcomes(case):
        env = task(case.trace, name, picked[1].values) if picked else None
        env = env or environment(case.trace)
        if env is None or env.random_return is None or not env.way:
            continue
        for part in (window, by_steps(window)):
            late = trimmed(part.values[-max(round(len(part) / 5), 1) :])
            yield max((late - env.random_return) / env.way, 0.0)


def random_return(case: Case):
    """Return what a random policy earns there."""
    env = environment(case.trace)
    return [] if env is None else [env.random_return]


def blocks(end: str):
    """Return a function that gives a level of a tenth of the points."""

    def derive(case: Case):
        for _, window in outcomes(case):
            if (found := gain(window.values)) is not None:
                yield getattr(found, end)

    return derive


def later(case: Case):
    """Return the steps at which anything is known to have changed."""
    logged = [case[name] for name in case.trace.series]
    return np.unique(np.concatenate([series.steps for series in logged])).tolist()


def changed(case: Case):
    """Return the values of a setting on both sides of each of its changes."""
    for name in case.trace.series:
        values = case[name].values
        at = np.flatnonzero(np.diff(values) != 0)
        if 0 < at.size <= 20:
            yield from values[at]
            yield from values[at + 1]


def updates_after(case: Case):
    """Return how many points of the finding's metric lie between each step and its begin."""
    steps = np.unique(case.metric.steps)
    began = int(np.searchsorted(steps, case.finding.began))
    return [float(began - np.searchsorted(steps, step)) for step in later(case)]


def metric_count(case: Case):
    """Return how many numbers each column has, and each family's longest."""
    return [float(len(case[name])) for name in case.trace.series] + [0.0]


def least(case: Case):
    """Return how many points a rule may ask for that some column does not have."""
    shortest = min((len(case[name]) for name in case.trace.series), default=0)
    return [n for n in (10, 12, 20, 40) if n > min(shortest, len(case["policy/loss"]))]


TOLD = [
    *(claim(f"<label> is {state}: <early> to <late>") for state in STATES),
    *(claim(f"<label> is {state}: <first> to <last>", first=level_of("first"),
            last=level_of("last"))
      for state in ("flat", "not getting better")),
    *(claim(f"whether the outcome improves cannot be told: <label> is {state}, <early> to <late>, "
            "and whether that is a good level is not known; --set env_id=... may tell more")
      for state in STATES),
    claim("<label> shows no gain: <early> to <late>"),
    claim("<label> has fallen back: <best> at best, <end> at the end", best=bests, end=ends),
    claim("<label> rises over <points> rows: <begin> to <end>",
          points=lambda case: [float(len(w)) for _, w in outcomes(case)],
          begin=lambda case: [float(w.values[0]) for _, w in outcomes(case)],
          end=lambda case: [float(w.values[-1]) for _, w in outcomes(case)]),
    claim("<label> fell from <best> to <lowest> by step <step> and has risen since, to <end>",
          best=twentieths, lowest=twentieths, end=twentieths,
          step=lambda case: [int(s) for _, window in outcomes(case) for s in window.steps]),
    *(
        claim(
            f"{state}: <label> goes <early> to <late>; the "
            f"change is <low> to <high> (95 %), and <material> would count{end}",
            low=interval("low"), high=interval("high"), material=material, more=more_points,
            share=lambda case: [f.share_lost for f in falls(case) if hasattr(f, "share_lost")],
        )
        for state in (
            "whether the outcome improves cannot be told", "it improves, by less than counts",
            "it improves, perhaps by less than counts",
        )
        for end in (
            "", "; --set env_id=... may tell more",
            "; about <more> more points of the <label> may tell",
            "; --set env_id=... may tell more; about <more> more points of the <label> may tell",
            "; <share> of its gain is lost at the end",
        )
    ),
    claim(
        "whether the outcome improves cannot be told: <label> goes <early> to <late> in <points> "
        "points, too few to tell", points=lambda case: [float(len(w)) for _, w in outcomes(case)],
    ),
    claim(
        "whether the outcome improves cannot be told: <label> goes <first> to <last>, within twice "
        "its standard error of 0", first=blocks("first"), last=blocks("last"),
    ),
    claim(
        "whether the outcome improves cannot be told: <label> ends at <late>, beyond what <word> "
        "can give",
    ),
    claim(
        "whether the outcome improves cannot be told: <names> has <points> numbers of the "
        "<needed> needed: train longer or log more",
        points=metric_count, needed=lambda _: [MIN_OUTCOME_POINTS],
    ),
    claim("<way> of the way from a random to a solved <word>", way=way),
    claim("that is <way> of the way from a random to a solved <word>", way=way),
    claim(
        "no better than a random policy, which gets about <random> on <word>", random=random_return
    ),
    claim("that is no better than a random policy, which gets about <random> on <word>",
          random=random_return),
    *(
        claim(
            f"it began <near> the <label> changed from <before> to <after> at step <step>: {does}",
            near=updates_after, before=changed, after=changed, step=later,
        )
        for does in ("the <label> was changed there",)
    ),
    claim(
        "it began right with the <label> changed from <before> to <after> at step <step>: "
        "the <label> was changed there", before=changed, after=changed, step=later,
    ),
    *(
        claim(
            f"it began <near> {word} after the <label> changed from <before> to <after> at step "
            "<step>: the <label> was changed there",
            near=updates_after, before=changed, after=changed, step=later,
        )
        for word in ("update", "updates")
    ),
    claim(
        "it began right with the start of epoch <epoch>, step <step>: from there on the data has "
        "been seen before",
        epoch=lambda case: np.floor(case["progress/epoch"].values), step=later,
    ),
    *(claim(f"{before}<sentence>{after}") for before, after in (
        ("meanwhile ", ""), ("since then ", ""), ("afterwards ", ""), ("", " meanwhile"),
        ("", " all the same"), ("", " since it began"), ("it is over, and ", " since it began"),
    )),
]  # fmt: skip

LACKS = [
    claim("<names> has <points> numbers of the <needed> needed", points=metric_count,
          needed=lambda _: range(1, 101)),
    *(claim(f"{before}<sentence>") for before in (
        "updates are small, but ", "entropy is low, but ", "exploration goes on, but ",
        "the value loss is nearly 0, and ", "the critic fits its targets, but ",
    )),
    claim("beside <names>, <sentence>"),
    *(claim(f"fewer than <least> {what}", least=least) for what in (
        "values of the outcome", "policy losses are logged", "losses are logged",
        "gradient norms", "gradient norms are logged", "updates",
    )),
    claim("fewer than <least> points of <names>", least=least),
    claim("<share> of the budget is spent: too early to say",
          share=lambda case: [case.trace.last_step / case.trace.budget.steps]),
    claim("KL is above <limit>, but no target_kl is set to hold it against",
          limit=lambda case: [0.03] if (case["policy/approx_kl"].values > 0.03).any() else []),
]  # fmt: skip


def logged_label(case: Case, name: str) -> bool:
    """Return whether a label is that of a logged column."""
    return any(label(own) == name for own in case.trace.series)
