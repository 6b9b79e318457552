"""Claims of the sentences of rules on groups of responses, and on the policy that samples them."""

import numpy as np
from derivations import Case, claim, windows
from rule_values import gaps

FIRST_ROWS = 9  # rows that a run's first minute is judged by
OLD_SHARES = (
    "language/partial_share", "language/cancelled_share", "policy/sampler_ratio_clipped_share",
    "policy/sampler_ratio_high_share", "policy/sampler_rejected_tokens",
    "policy/sampler_rejected_sequences",
)  # fmt: skip


def common(case: Case, *names: str) -> list[np.ndarray]:
    """Return the values of columns at the steps at which all of them have a number."""
    columns = [dict(zip(case[n].steps.tolist(), case[n].values.tolist(), strict=True))
               for n in names]  # fmt: skip
    steps = sorted(set.intersection(*map(set, columns)))
    return [np.array([column[step] for step in steps]) for column in columns]


def group_contrast(case: Case, rows: int | None = None):
    """Return, of rows with a gradient norm, in which rewards of a group differ, and the norms."""
    for name in ("reward/group_zero_std", "reward/group_std", "reward/std"):
        norm, spread = (column[:rows] for column in common(case, "optimiser/grad_norm", name))
        yield spread < 1 if name.endswith("zero_std") else spread > 0, norm


def reward_contrast(case: Case, rows: int | None = None):
    """Return, of rows with advantages, in which rewards differ, and the largest advantages."""
    ends = common(case, "policy/advantage_max", "policy/advantage_min", "reward/max", "reward/min")
    high, low, best, worst = (column[:rows] for column in ends)
    yield best > worst, np.maximum(np.abs(high), np.abs(low))


def zeros_of(contrast, rows: int | None = None):
    """Return in how many rows rewards differ and a column is 0."""
    return lambda case: [
        float((column[differs] == 0).sum()) for differs, column in contrast(case, rows)
    ]  # fmt: skip


def contrasts(contrast, rows: int | None = None):
    """Return in how many rows rewards differ."""
    return lambda case: [float(differs.sum()) for differs, _ in contrast(case, rows)]


def every_row(contrast):
    """Return how many of the first rows there are, where rewards differ in some."""
    return lambda case: [
        float(differs.size) for differs, column in contrast(case, FIRST_ROWS)
        if differs.any() and not column[differs].any()
    ]  # fmt: skip


def row_counts(case: Case):
    """Return how many first rows the finding's metric has."""
    return [float(min(len(case.metric), FIRST_ROWS))]


def early(statistic):
    """Return a statistic of the finding's metric over the first rows."""
    return lambda case: [float(statistic(case.metric.values[:FIRST_ROWS]))]


def raw_advantages(case: Case):
    """Return in how many updates rewards differ and are the advantages."""
    ends = common(case, "policy/advantage_max", "policy/advantage_min", "reward/max", "reward/min")
    high, low, best, worst = ends
    digits = 1e-4 * np.maximum(np.abs(best), np.abs(worst))  # that a console prints
    same = (np.abs(high - best) <= digits) & (np.abs(low - worst) <= digits)
    return [float((same & (best > worst)).sum())]


def worst_gaps(case: Case):
    """Return the largest distance from agreement of the finding's own measure, in each window."""
    for window in windows(case, case.metric):
        if len(window):
            yield from (float(window.values.max()), float(1 - window.values.min()))


def old_shares(case: Case):
    """Return the median, over the whole run, of each share that shows that samples are old."""
    return [float(np.median(case[name].values)) for name in OLD_SHARES if len(case[name])]


def tied_rows(case: Case):
    """Return in how many rows after the first pairs have no margin, at a learning rate above 0."""
    margins, rates = common(case, "preference/margin", "optimiser/learning_rate")
    trained = margins[rates > 0][1:]
    return [] if trained.any() else [float(trained.size)]


FIRST = ("the <count> of the first <all> rows", "each of the first <all> rows")
LANGUAGE_RULES = {
    "first-rows-broken": [
        *(claim(f"{what} in {rows} in which {which} differ", all=every_row(contrast),
                count=zeros_of(contrast, FIRST_ROWS))
          for what, which, contrast in (
              ("all advantages are 0", "rewards", reward_contrast),
              ("the gradient is 0", "rewards of a group", group_contrast),
          ) for rows in FIRST),
        *(claim(f"the mean probability ratio is <middle> in the median, and far from 1 in {rows}",
                middle=early(np.median), all=row_counts)
          for rows in ("each of the first <all> rows", "the first row")),
        *(claim(f"sampler and trainer disagree by <least> nats per token or more in {rows}",
                least=early(np.min), all=row_counts)
          for rows in ("each of the first <all> rows", "the first row")),
        claim("nearly every response is cut, and the gradient is 0, in each of the first <all> "
              "rows", all=row_counts),
    ],
    "group-baseline-missing": [
        claim("advantages are the rewards themselves in <raw> of <all> updates in which rewards "
              "differ", raw=raw_advantages, all=contrasts(reward_contrast)),
    ],
    "no-gradient": [
        claim("the gradient is 0 in <zeros> of <all> updates in which rewards differ",
              zeros=zeros_of(group_contrast), all=contrasts(group_contrast)),
        claim("all advantages are 0 in <zeros> updates in which rewards differ",
              zeros=zeros_of(reward_contrast)),
        claim("the margin between chosen and rejected is 0 in <rows> rows after the first: the "
              "policy is the reference still", rows=tied_rows),
    ],
    "sampler-mismatch": [
        claim("<level> <any words> as well", level=gaps),
        claim("sampler and trainer disagree: <level> nats per token (k3) in the median update, "
              "<max M> at most", level=gaps),
        claim("sampler and trainer disagree: <level> nats per token (k1) in the median update, "
              "<max M> at most", level=gaps),
        claim("sampler and trainer disagree: <level> <any words> in the median update, <worst> at "
              "most", level=gaps, worst=worst_gaps),
        claim("the sampler's weights stay at version <version> from step <step> on",
              version=lambda c: c["policy/sampler_version"].values[-1:].tolist(),
              step=lambda c: c["policy/sampler_version"].steps.tolist()),
        claim("in the median update of the run, samples are <age> updates old",
              age=lambda c: [float(np.median(c["optimiser/policy_lag"].values))]),
        claim("in the median update of the run, the oldest samples are <age> updates old",
              age=lambda c: [float(np.median(c["optimiser/policy_lag_max"].values))]),
        claim("in the median update of the run, <share> of <any words>", share=old_shares),
    ],
}  # fmt: skip
