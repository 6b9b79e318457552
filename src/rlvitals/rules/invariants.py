"""Invariants of a run's first update, before which no parameter has changed."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from rlvitals.metrics.catalogue.language import LENGTH_MAX, LENGTH_MEAN, LENGTH_MIN, TRUNCATED_SHARE
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE, LOSS, UPDATE_SUCCESS
from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.policy import (
    APPROX_KL,
    CLIP_FRACTION,
    CLIP_FRACTION_EFFECTIVE,
    KL_SIGNED,
    KL_TO_REFERENCE,
    KL_TO_REFERENCE_PER_TOKEN,
    RATIO,
)
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.surrogate import FIRST_CLIP_FRACTION, FIRST_KL, FIRST_RATIO_MAX
from rlvitals.metrics.metric import Metric
from rlvitals.rules import kinds
from rlvitals.signals.spread import difference_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Table, Trace

FIRST_UPDATE_STEP = 1  # a framework's first row, where every update is logged
MIN_LATER_UPDATES = 20  # updates after the first
FLOAT32_RATIO_ERROR = 1e-5  # of a ratio: float32 in batches of another shape
BFLOAT16_RATIO_ERROR = 0.01  # of a ratio: bfloat16 in batches of another shape
MAX_MEAN_ADVANTAGE = 1e-3  # of the advantages' spread, which is 1: float32's rounding of their mean
# These push samples up or down by themselves, and centre no group.


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What was logged where `expected` must be, give or take `slack`."""

    name: str  # canonical: the series that shows it
    points: Series
    expected: float
    slack: float
    worst: float = np.nan  # where it is not the points themselves that are judged

    @property
    def off(self) -> Series:
        """The points that are elsewhere."""
        return self.points.where(np.abs(self.points.values - self.expected) > self.slack)


Read = Callable[[Trace], Reading | None]


def _from(trace: Trace, metric: Metric, frameworks: Sequence[str]) -> Series | None:
    """Return a metric's finite points, where one of the frameworks logs it."""
    source = trace.measured.get(metric.name)
    if metric.name not in trace or source is None or source.framework not in frameworks:
        return None
    return trace[metric.name].finite()


def _first(series: Series | None) -> Series | None:
    """Return the point of the first update; None where the log begins later, or is too coarse."""
    return (
        series.where(slice(0, 1)) if series and int(series.steps[0]) <= FIRST_UPDATE_STEP else None
    )


def kl_per_token(trace: Trace) -> Reading | None:
    """Nothing has moved: the policy is its reference, token by token."""
    metric = KL_TO_REFERENCE_PER_TOKEN
    source = trace.measured.get(metric.name)
    if source is None or (source.framework == "verl" and source.estimator != "k1"):
        return None
    first = _first(_from(trace, metric, ("trl-grpo", "verl")))
    # Nats: two passes of one model in bfloat16.
    return None if first is None else Reading(metric.name, first, 0.0, 0.01)


def kl_per_sequence(trace: Trace) -> Reading | None:
    """Nothing has moved: the policy is its reference, summed over a response."""
    metric = KL_TO_REFERENCE
    first = _first(_from(trace, metric, ("trl-ppo", "trl-ppo-old", "rlvitals-rlhf")))
    if first is None:
        return None
    logged = trace.get(LENGTH_MEAN.name)
    length = trace.number("max_completion_length") or 0.0
    if logged is not None and len(lengths := logged.finite()):
        length = float(lengths.values[0])
    # Nats, and so much more for each token.
    return Reading(metric.name, first, 0.0, 0.05 + 0.002 * abs(length))


def reference_follows(trace: Trace) -> Reading | None:
    """The reference stays where it was: KL to it cannot stay exactly 0 while weights move."""
    for metric in (KL_TO_REFERENCE_PER_TOKEN, KL_TO_REFERENCE):
        kl = _from(trace, metric, ("trl-grpo", "trl-ppo", "trl-ppo-old", "rlvitals-rlhf"))
        if kl is None or len(kl) <= MIN_LATER_UPDATES or not _moves(trace):
            continue
        if not kl.values.any():
            # Judged as a whole: that it is 0 once is as it should be.
            return Reading(metric.name, kl, 1.0, 0.5, worst=0.0)
    return None


def _moves(trace: Trace) -> bool:
    """Tell whether the optimiser has something to apply, where that is logged."""
    for metric in (LEARNING_RATE, GRAD_NORM, UPDATE_SUCCESS):
        logged = trace.get(metric.name)
        if logged is not None and int(np.sum(logged.finite().values > 0)) <= MIN_LATER_UPDATES:
            return False
    return True


def _one_update(trace: Trace) -> bool:
    """Tell whether each batch makes one gradient step, by the settings of the framework."""
    number = trace.number
    if number("n_epochs") != 1:
        return False
    if (minibatches := number("n_minibatches")) is not None:
        return minibatches == 1
    batch, minibatch = number("batch_size"), number("minibatch_size")
    if (steps := number("n_steps")) and (envs := number("n_envs")):
        batch = steps * envs
    if batch is not None and minibatch is not None:
        return minibatch >= batch
    prompts, prompt_minibatch = number("prompt_batch_size"), number("prompt_minibatch_size")
    return prompts is not None and prompt_minibatch is not None and prompt_minibatch >= prompts


def single_update(trace: Trace) -> Reading | None:
    """With one update per batch the old policy is the new one: ratio 1, KL and clipping 0."""
    if not _one_update(trace):
        return None
    slack = BFLOAT16_RATIO_ERROR if trace.profile in kinds.LANGUAGE else FLOAT32_RATIO_ERROR
    frameworks = ("sb3", "cleanrl", "trl-ppo", "rlvitals-rlhf", "verl")
    read = [
        Reading(metric.name, series, expected, slack)
        for metric, expected in (
            (RATIO, 1.0),
            (APPROX_KL, 0.0),
            (KL_SIGNED, 0.0),
            (CLIP_FRACTION, 0.0),
            (CLIP_FRACTION_EFFECTIVE, 0.0),
        )
        if (series := _from(trace, metric, frameworks))
    ]
    return max(read, key=lambda r: len(r.off), default=None)


def first_minibatch(trace: Trace) -> Reading | None:
    """Before an update's first gradient step the old policy is the new one, in every update."""
    read = [
        Reading(metric.name, series, expected, slack)
        for metric, expected, slack in (
            (FIRST_RATIO_MAX, 1.0, 1e-3),  # of the worst sample of a minibatch
            (FIRST_KL, 0.0, FLOAT32_RATIO_ERROR),
            (FIRST_CLIP_FRACTION, 0.0, FLOAT32_RATIO_ERROR),
        )
        if (series := _from(trace, metric, ("rlvitals-ppo",)))
    ]
    return max(read, key=lambda r: len(r.off), default=None)


def loss_before(trace: Trace) -> Reading | None:
    """Spinning Up's PPO logs its loss before each first step: minus the mean advantage.

    One that hardly changes from row to row is a term of its own, as a fork adds: an entropy bonus,
    or a penalty that is annealed.
    """
    loss = _from(trace, POLICY_LOSS, ("spinning-up",))
    clips = _from(trace, CLIP_FRACTION, ("spinning-up",))  # VPG and TRPO have none
    if not loss or clips is None:
        return None
    level = abs(float(np.mean(loss.values)))
    if level > MAX_MEAN_ADVANTAGE and len(loss) > 1 and difference_sd(loss.values) < 0.05 * level:
        return None
    return Reading(POLICY_LOSS.name, loss, 0.0, MAX_MEAN_ADVANTAGE)


def grpo_loss(trace: Trace) -> Reading | None:
    """On-policy, the loss is minus the mean advantage: 0 where all tokens weigh the same."""
    if trace.profile is not Profile.GRPO or trace.number("entropy_coef"):
        return None
    first = _first(_from(trace, LOSS, ("trl-grpo",)))
    rewards = trace.get(REWARD.name)
    # Rewards at both first updates: each has a generation batch of its own, with whole groups.
    fresh = rewards is not None and rewards.finite().steps[:2].tolist() == [
        FIRST_UPDATE_STEP,
        FIRST_UPDATE_STEP + 1,
    ]
    if first is None or not fresh or not _equal_tokens(trace):
        return None
    return Reading(LOSS.name, first, 0.0, 0.02)  # of the advantages' spread: bfloat16


def _equal_tokens(trace: Trace) -> bool:
    cut = _first(trace.get(TRUNCATED_SHARE.name))
    if trace.settings.get("loss_type") == "grpo":
        return cut is not None and cut.values[0] == 0
    low, high = _first(trace.get(LENGTH_MIN.name)), _first(trace.get(LENGTH_MAX.name))
    return low is not None and high is not None and low.values[0] == high.values[0]


def _first_batch(trace: Trace) -> Table | None:
    """Return the completions of the first update, with the columns that are looked at."""
    for table in trace.tables.values():
        columns = table.columns
        if {"prompt", "completion"} <= set(columns) and len(table):
            rows = np.flatnonzero(table.steps == table.steps.min()).tolist()
            if int(table.steps.min()) > FIRST_UPDATE_STEP:
                return None
            return Table(table.steps[rows], {k: [c[i] for i in rows] for k, c in columns.items()})
    return None


def _groups(table: Table) -> list[list[int]]:
    """Return the rows of each prompt, those of the usual group size alone."""
    rows: dict[object, list[int]] = {}
    for row, prompt in enumerate(table.columns["prompt"]):
        rows.setdefault(str(prompt), []).append(row)
    usual = Counter(len(group) for group in rows.values()).most_common(1)
    return [g for g in rows.values() if usual and len(g) == usual[0][0] > 1]


def group_advantage(trace: Trace) -> Reading | None:
    """GRPO measures an advantage against its own group: its mean over each prompt is 0."""
    if trace.profile in kinds.THRESHOLD_FILTERED:
        return None
    table = _first_batch(trace)
    if table is None or "advantage" not in table.columns or REWARD.name not in trace:
        return None
    cells = [x if isinstance(x, float | int) else np.nan for x in table.columns["advantage"]]
    advantages = np.array(cells, np.float64)
    groups = _groups(table)
    if not groups or not np.isfinite(advantages).all():
        return None
    means = np.array([float(advantages[group].mean()) for group in groups])
    return _spread_over(trace, means, MAX_MEAN_ADVANTAGE * 10.0)


def twins(trace: Trace) -> Reading | None:
    """Ranks draw with seeds of their own: no whole batch comes in equal copies."""
    table = _first_batch(trace)
    if table is None or REWARD.name not in trace or trace.number("temperature") == 0:
        return None
    groups = _groups(table)
    texts = [str(text) for text in table.columns["completion"]]
    # Characters: shorter answers agree by chance.
    if not groups or np.median([len(t) for t in texts]) < 40:
        return None
    copies = [min(Counter(texts[row] for row in group).values()) for group in groups]
    return _spread_over(trace, np.array([float(min(copies) > 1)]), 0.5)


def _spread_over(trace: Trace, values: np.ndarray, slack: float) -> Reading:
    """Read numbers of a table at the step of its batch."""
    first_point = trace[REWARD.name].where(slice(0, 1))
    count = len(values)
    points = Series(
        np.repeat(first_point.steps, count), np.repeat(first_point.times, count), values
    )
    return Reading(REWARD.name, points, 0.0, slack)
