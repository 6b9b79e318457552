"""The first rows alone prove a fault: no gradient, no advantage, another sampler, or no signal.

## What it sees
The first nine rows, or as many as there are: ten lines of a log are enough, and so is one. In every
row that can show it, one of: `optimiser/grad_norm` exactly 0 while rewards of a group differ; all
advantages 0 while `reward/max` is above `reward/min`; `policy/ratio` outside 0.5 to 2;
`policy/sampler_kl` or the mean difference of log-probabilities between sampler and trainer above
0.5 nats per token; an effective sample size below a tenth; half of the tokens or nine tenths of
the sequences masked by a correction; nine tenths of the tokens clipped, or of the rollouts failed;
KL to the reference above 10 nats per token, where the framework counts it so; or, in three rows
and more, nearly every response cut at the limit while all rewards are equal, or the gradient is 0
where no spread of rewards is logged. A warning. Else a
note where every response is cut at the limit, every group earns one reward, or the gradient's
norm is above 100.

## Why it matters
None of these mends itself: what the first update gets wrong, each later one gets wrong too.

## What to do
Stop the run. Look at one batch by hand: its mask, its advantages, the log-probabilities of sampler
and trainer on the same tokens.

## When it is wrong
What warns is an identity, or far beyond what rounding gives. Prompts that are too hard at first
earn one reward in every group and may be learned later, and a loss that is summed over tokens has
large gradients: notes.

## References
- modelscope/ms-swift issue 5890: gradients of 0 under one version of DeepSpeed.
- alibaba/ROLL issue 397: advantages of 0 with groups of one.
- huggingface/trl issue 6789: log-probabilities of another temperature.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.language import TRUNCATED_SHARE
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM
from rlvitals.metrics.catalogue.policy import (
    CLIP_FRACTION,
    CLIP_FRACTION_EFFECTIVE,
    KL_TO_REFERENCE_PER_TOKEN,
    RATIO,
)
from rlvitals.metrics.catalogue.reward import GROUP_STD, GROUP_ZERO_STD, MAX, MIN, STD
from rlvitals.metrics.catalogue.rollouts import ERROR_SHARE
from rlvitals.metrics.catalogue.sampler import (
    ESS,
    KL,
    LOGP_DIFFERENCE_MEAN,
    REJECTED_SEQUENCES,
    REJECTED_TOKENS,
)
from rlvitals.metrics.catalogue.surrogate import ADVANTAGE_MAX, ADVANTAGE_MIN
from rlvitals.metrics.metric import Bound, Metric
from rlvitals.rules.books import shared_rows
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.signals.finite import Array
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

MAX_FIRST_SAMPLER_KL = 0.5  # nats per token
MIN_FIRST_SHARE = 0.95  # of responses, or of groups
# Before 0.27 TRL's `reward_std` was the mean of the groups' spreads, and no share was logged.

NO_SPREAD = "gradient norm and spread of a group's rewards are not both logged"
NEEDED_NAMES = (GRAD_NORM.name, GROUP_ZERO_STD.name)

Fact = tuple[str, str, Severity, Bound]  # summary, metric, severity, bound


@dataclass(frozen=True, slots=True)
class Level:
    """A metric that is beyond a bound in each of the first rows."""

    metric: Metric
    bound: float
    words: str  # what its least extreme value says
    severity: Severity = Severity.WARNING
    below: bool = False


FIRST_ROW_LEVELS = (
    Level(
        LOGP_DIFFERENCE_MEAN,
        0.5,
        "log-probabilities of sampler and trainer differ by {:.3g} nats per token or more",
    ),
    Level(ESS, 0.1, "{:.0%} of the samples count at most, after importance weights", below=True),
    Level(REJECTED_TOKENS, 0.5, "{:.0%} of the tokens or more are masked by the correction"),
    Level(REJECTED_SEQUENCES, 0.9, "{:.0%} of the sequences or more are masked by the correction"),
    Level(CLIP_FRACTION, 0.9, "{:.0%} of the samples or more are clipped"),
    Level(CLIP_FRACTION_EFFECTIVE, 0.9, "{:.0%} of the samples or more are clipped"),
    Level(ERROR_SHARE, 0.9, "{:.0%} of the rollouts or more fail"),
    Level(KL_TO_REFERENCE_PER_TOKEN, 10.0, "KL to the reference is {:.3g} nats per token or more"),
    Level(GRAD_NORM, 100.0, "the gradient's norm is {:.3g} or more", Severity.NOTE),
)


def check(trace: Trace) -> Answer:
    """Ask each test of the first rows; the gravest answer is the finding."""
    facts = [fact for test in FIRST_ROW_TESTS if (fact := test(trace)) is not None]
    facts += [fact for level in FIRST_ROW_LEVELS if (fact := _level(trace, level)) is not None]
    if not facts:
        return Clear() if _can_judge_gradients(trace) else Undecided(NO_SPREAD, NEEDED_NAMES)
    summary, name, severity, bound = max(facts, key=lambda fact: fact[2])
    rows = _first_rows(trace, name)
    return Finding(
        summary,
        severity=severity,
        metric=name,
        began=int(rows.steps[0]),
        ended=int(rows.steps[-1]),
        observed=float(rows.values[-1]),
        bound=bound,
        evidence=tuple(fact[0] for fact in facts if fact[1] != name),
    )


def _can_judge_gradients(trace: Trace) -> bool:
    return any(_common_rows(trace, GRAD_NORM.name, name) for name in _spreads(trace))


def _first_rows(trace: Trace, name: str) -> Series:
    series = trace[name].finite()
    return series.where(np.arange(len(series)) < 9)  # more are judged by rules that compare rows


def _common_rows(trace: Trace, *names: str) -> list[Array]:
    """Return the first rows that hold all of some metrics, a column each; empty for none."""
    if any(trace.numbers(name) is None for name in names):
        return []
    steps, rows = shared_rows([_first_rows(trace, name) for name in names])
    return rows if steps.size else []


def _no_gradient(trace: Trace) -> Fact | None:
    for name in _spreads(trace):
        if not (columns := _common_rows(trace, GRAD_NORM.name, name)):
            continue
        norms, spread = columns
        differs = spread < 1 if name == GROUP_ZERO_STD.name else spread > 0
        if differs.any() and not norms[differs].any():
            summary = (
                f"the gradient is 0 in {_describe_rows(differs)} in which rewards of a group differ"
            )
            bound = Bound(0.0, "a gradient of exactly zero")
            return summary, GRAD_NORM.name, Severity.WARNING, bound
        return None
    return None


def _spreads(trace: Trace) -> tuple[str, ...]:
    measured = trace.measured.get(STD.name)
    of_groups = measured is not None and measured.framework in ("trl-grpo", "unsloth")
    return (GROUP_ZERO_STD.name, GROUP_STD.name, *((STD.name,) if of_groups else ()))


def _no_advantage(trace: Trace) -> Fact | None:
    columns = _common_rows(trace, ADVANTAGE_MAX.name, ADVANTAGE_MIN.name, MAX.name, MIN.name)
    if not columns:
        return None
    high, low, best, worst = columns
    differs = best > worst
    if not differs.any() or high[differs].any() or low[differs].any():
        return None
    summary = f"all advantages are 0 in {_describe_rows(differs)} in which rewards differ"
    bound = Bound(0.0, "advantages of exactly zero")
    return summary, ADVANTAGE_MAX.name, Severity.WARNING, bound


def _ratio(trace: Trace) -> Fact | None:
    columns = _common_rows(trace, RATIO.name)
    if not columns or np.any((columns[0] >= 1 / 2) & (columns[0] <= 2)):  # a factor
        return None
    level, rows = float(np.median(columns[0])), _rows(columns[0].size)
    summary = f"the mean probability ratio is {level:.3g} in the median, and far from 1 in {rows}"
    return summary, RATIO.name, Severity.WARNING, Bound(2.0, "a factor of 2 from 1")


def _sampler(trace: Trace) -> Fact | None:
    columns = _common_rows(trace, KL.name)
    if not columns or columns[0].min() <= MAX_FIRST_SAMPLER_KL:
        return None
    lowest, rows = float(columns[0].min()), _rows(columns[0].size)
    summary = f"sampler and trainer disagree by {lowest:.3g} nats per token or more in {rows}"
    return (
        summary,
        KL.name,
        Severity.WARNING,
        Bound(MAX_FIRST_SAMPLER_KL, "nats per token, in each row"),
    )


def _level(trace: Trace, level: Level) -> Fact | None:
    columns = _common_rows(trace, level.metric.name)
    measured = trace.measured.get(level.metric.name)
    # Their keys do not say whether a KL is counted per token or per response.
    unclear = {"language-loop", "language-words", "generic"}
    in_tokens = measured is not None and measured.framework not in unclear
    if not columns or (level.metric is KL_TO_REFERENCE_PER_TOKEN and not in_tokens):
        return None
    extreme = float(columns[0].max() if level.below else columns[0].min())
    if not (extreme < level.bound if level.below else extreme > level.bound):
        return None
    summary = f"{level.words.format(extreme)} in {_rows(columns[0].size)}"
    return summary, level.metric.name, level.severity, Bound(level.bound, "in each first row")


def _cut(trace: Trace) -> Fact | None:
    summary = "nearly every response is cut at the limit in each of the first rows"
    return _share(trace, TRUNCATED_SHARE.name, summary)


def _cut_and_alike(trace: Trace) -> Fact | None:
    """Find that no response ends and that all earn the same: further rows teach nothing either."""
    for name in _spreads(trace):
        columns = _common_rows(trace, TRUNCATED_SHARE.name, name)
        if not columns or columns[0].size < 3:  # fewer may be chance
            continue
        cut, spread = columns
        equal = spread >= 1 if name == GROUP_ZERO_STD.name else spread == 0
        if equal.all() and cut.min() >= MIN_FIRST_SHARE:
            summary = f"nearly every response is cut, and all earn the same, in {_rows(cut.size)}"
            bound = Bound(MIN_FIRST_SHARE, "in each of the first rows")
            return summary, TRUNCATED_SHARE.name, Severity.WARNING, bound
    return None


def _cut_without_gradient(trace: Trace) -> Fact | None:
    """Find that no response ends and that no gradient is left, where no spread says why."""
    columns = _common_rows(trace, TRUNCATED_SHARE.name, GRAD_NORM.name)
    spreads = (GROUP_ZERO_STD.name, GROUP_STD.name, STD.name)
    if not columns or columns[0].size < 3 or any(name in trace for name in spreads):
        return None
    cut, norms = columns
    if cut.min() < MIN_FIRST_SHARE or norms.any():
        return None
    summary = f"nearly every response is cut, and the gradient is 0, in {_rows(cut.size)}"
    bound = Bound(MIN_FIRST_SHARE, "in each of the first rows")
    return summary, TRUNCATED_SHARE.name, Severity.WARNING, bound


def _alike(trace: Trace) -> Fact | None:
    summary = "nearly every group earns one reward in each of the first rows: nothing is taught"
    return _share(trace, GROUP_ZERO_STD.name, summary)


def _share(trace: Trace, name: str, summary: str) -> Fact | None:
    columns = _common_rows(trace, name)
    if not columns or columns[0].min() < MIN_FIRST_SHARE:
        return None
    return summary, name, Severity.NOTE, Bound(MIN_FIRST_SHARE, "in each of the first rows")


def _describe_rows(mask: NDArray[np.bool_]) -> str:
    """Name the chosen ones of the first rows by their number."""
    count = int(mask.sum())
    return _rows(count) if mask.all() else f"the {count} of the first {mask.size} rows"


def _rows(count: int) -> str:
    return "the first row" if count == 1 else f"each of the first {count} rows"


FIRST_ROW_TESTS: tuple[Callable[[Trace], Fact | None], ...] = (
    _no_gradient,
    _no_advantage,
    _ratio,
    _sampler,
    _cut,
    _cut_and_alike,
    _cut_without_gradient,
    _alike,
)

RULE = Rule(
    name="first-rows-broken",
    needs=(),
    needs_any=(
        *(ADVANTAGE_MAX, RATIO, KL, TRUNCATED_SHARE, GROUP_ZERO_STD),
        *(level.metric for level in FIRST_ROW_LEVELS),
    ),
    at_least=1,
    check=check,
    doc=__doc__,
    causes=(
        "the loss masks every response, or no parameter is trained",
        "groups of one response",
        "log-probabilities of another temperature, template or set of weights",
        "a response limit that is too short, or prompts that are too hard",
    ),
    remedies=(
        "print the mask, the advantages and the log-probabilities of one batch",
        "check that {num_generations} is above 1",
        "read ten responses",
    ),
    profiles=(Profile.GRPO,),
    explained_by=(
        "setting-out-of-range",
        "not-a-number",
        "no-gradient",
        "sampler-mismatch",
        "ratio-off-one",
        "responses-truncated",
        "zero-variance-groups",
        "constant-reward",
    ),
    no_threshold=True,
)
