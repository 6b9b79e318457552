"""Most prompts teach nothing: all completions of a group earn the same reward.

## What it sees
`reward/group_zero_std` above a half (three quarters for groups of two) in at least half of 20
successive updates (10 where fewer than 40 are logged), or a reward for right answers without any
spread in the last 20 batches. How many of those groups are all right and how many all wrong is as
logged, or worked out from the share of right answers: the two ask for opposite remedies. A note
while right answers rise; a warning where they do not; an error where nearly every group is without
contrast and most of them are all wrong.

## Why it matters
GRPO's advantage is a difference within the group. A group without one costs its whole generation
and gives no gradient. A dense bonus (format, length) can hide it: then groups differ, but not in
what matters.

## What to do
All right: take harder prompts, drop solved ones. All wrong: take easier prompts or a curriculum,
check the verifier on a known right answer, allow longer responses. Both: more completions per
prompt, or sample prompts until groups have contrast.

## When it is wrong
Late in good training most groups are all right: with p of the answers right and groups of G, p^G
of them are. With two completions a half is ordinary.
Truncated responses are no cause where less than half as many responses are cut as groups are
uniform: at most the share of cut responses can be the share of groups that are cut throughout.

## References
- Shao et al. 2024, "DeepSeekMath", GRPO's group-relative advantage.
- Yu et al. 2025, "DAPO", section 3.2, dynamic sampling.
"""

import numpy as np

from rlvitals.metrics.catalogue.language import TRUNCATED_SHARE
from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.reward import (
    COMPONENT,
    COMPONENT_STD,
    GROUP_ALL_RIGHT,
    GROUP_ALL_WRONG,
    GROUP_ZERO_STD,
)
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import answers, learning_trend
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import LONG_WINDOW, SHORT_WINDOW, Stretch, above
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import sides
from rlvitals.signals.spread import median
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MAX_ZERO_STD_SHARE = Threshold(
    "zero-variance-groups.share",
    0.5,
    "share of the groups; by default .75 of groups of two",
    high=1.0,
)
SEVERE_ZERO_STD_SHARE = Threshold(
    "zero-variance-groups.severe", 0.75, "the same, for an error", high=1.0
)
SOLVED_PROMPT_REMEDIES = ("take harder prompts", "drop prompts that are solved in every completion")
FAILED_PROMPT_REMEDIES = (
    "check the verifier on an answer known to be right",
    "take easier prompts first, or a curriculum",
    "allow longer responses, or more completions per prompt",
)


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of all groups."""

    right: float  # every completion right
    wrong: float  # every completion wrong


def check(trace: Trace) -> Answer:
    """Take the share of groups; beside it, the spread of the reward for right answers."""
    two = trace.number("num_generations") == 2
    default_limit = MAX_ZERO_STD_SHARE.bound(trace, "default")
    two = two and MAX_ZERO_STD_SHARE.name not in trace.thresholds
    # Two completions agree in half of the groups by chance, at p = 1/2.
    limit = Bound(0.75, "default for groups of two") if two else default_limit
    picked = _shares(trace)
    if picked is None:
        wants = (GROUP_ALL_RIGHT.name, GROUP_ALL_WRONG.name)
        return Undecided("only one kind of uniform group is logged", wants)
    stretch = above(picked[1], limit.value)
    if stretch is not None:
        return _finding(trace, picked, stretch, limit)
    return _behind_a_bonus(trace) or Clear()


def _shares(trace: Trace) -> tuple[str, Series] | None:
    """Return the share of uniform groups: as logged, or all right and all wrong together."""
    if GROUP_ZERO_STD.name in trace:
        return GROUP_ZERO_STD.name, trace[GROUP_ZERO_STD.name]
    right, wrong = trace.get(GROUP_ALL_RIGHT.name), trace.get(GROUP_ALL_WRONG.name)
    if right is None or wrong is None:
        return None
    steps, rows, within = np.intersect1d(right.steps, wrong.steps, return_indices=True)
    if not len(steps):
        return None
    common = wrong.where(within)
    total = Series(common.steps, common.times, common.values + right.values[rows])
    return GROUP_ALL_WRONG.name, total


def _finding(trace: Trace, picked: tuple[str, Series], stretch: Stretch, limit: Bound) -> Finding:
    name, shares = picked
    during = stretch.of(shares).finite()
    level = median(during.values) or 0.0
    trend = learning_trend(trace, since=stretch.start)
    split = _split(trace, during)
    evidence, counter = sides(trend)
    says = (
        f"about {split.right:.0%} of groups are all right and {split.wrong:.0%} all wrong"
        if split
        else "all right or all wrong: log a reward for right answers to tell"
    )
    return Finding(
        f"in {level:.0%} of groups every completion earns the same reward: these groups teach "
        "nothing",
        severity=stretch.severity(
            _severity(trend, split, nearly_all=level > SEVERE_ZERO_STD_SHARE.on(trace))
        ),
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=limit,
        evidence=(says, *evidence),
        counter=counter,
        causes=_causes(split),
        remedies=_remedies(split),
        excluded_causes=_exclude_truncation(trace, stretch, level),
        curve=None if name == GROUP_ZERO_STD.name else Curve("uniform groups", shares),
    )


def _split(trace: Trace, during: Series) -> Split | None:
    """Work out the two sides from p = right + (1 - right - wrong) x one half.

    Groups with contrast hold both kinds; a half is their mean where nothing more is known. Where
    the log counts both kinds, its own counts are taken.
    """
    if not len(during):
        return None
    kinds_of = [trace.get(m.name) for m in (GROUP_ALL_RIGHT, GROUP_ALL_WRONG)]
    if kinds_of[0] is not None and kinds_of[1] is not None:
        first, last = int(during.steps[0]), int(during.steps[-1])
        logged = [s.since(first).until(last).finite().values for s in kinds_of if s is not None]
        if all(len(values) for values in logged):
            return Split(float(logged[0].mean()), float(logged[1].mean()))
    right_answers = answers(trace)
    if right_answers is None:
        reward = trace.get(REWARD.name)
        if reward is None or not len(values := reward.finite().values):
            return None
        if values.min() < 0 or values.max() > 1:
            return None
        series = reward.finite()
    else:
        series = right_answers[1]
    series = series.since(int(during.steps[0])).until(int(during.steps[-1]))
    if not len(series):
        return None
    uniform, p = float(during.values.mean()), float(series.values.mean())
    right = float(np.clip(p - (1 - uniform) / 2, 0.0, uniform))
    return Split(right, uniform - right)


def _exclude_truncation(trace: Trace, stretch: Stretch, uniform: float) -> tuple[str, ...]:
    """Exclude truncation where most uniform groups have responses that ended by themselves."""
    logged = trace.get(TRUNCATED_SHARE.name)
    cut = None if logged is None else median(stretch.of(logged).finite().values)
    return ("responses-truncated",) if cut is not None and cut < 0.5 * uniform else ()


def _severity(trend: Standing, split: Split | None, *, nearly_all: bool) -> Severity:
    if not trend.stalls:
        return Severity.NOTE
    hopeless = split is not None and split.wrong > split.right
    return Severity.ERROR if hopeless and nearly_all else Severity.WARNING


def _causes(split: Split | None) -> tuple[str, ...]:
    if split is None:
        return ()
    if split.wrong > split.right:
        return ("prompts far too hard", "a verifier that accepts nothing", "a collapsed policy")
    return ("prompts too easy by now", "a reward that everything earns")


def _remedies(split: Split | None) -> tuple[str, ...]:
    if split is None:
        return ()
    return FAILED_PROMPT_REMEDIES if split.wrong > split.right else SOLVED_PROMPT_REMEDIES


def _behind_a_bonus(trace: Trace) -> Finding | None:
    """See groups that differ, but never in whether the answer is right."""
    right_answers = answers(trace)
    if right_answers is None or not right_answers[0].startswith(COMPONENT.name):
        return None
    name = f"{COMPONENT_STD.name}/{right_answers[0].removeprefix(COMPONENT.name + '/')}"
    spread = trace.get(name)
    if spread is None or len(spread := spread.finite()) < LONG_WINDOW:
        return None
    tail = spread.tail(LONG_WINDOW)
    if np.any(tail.values != 0):
        return None
    nonzero = np.flatnonzero(spread.values)
    first = int(nonzero[-1]) + 1 if len(nonzero) else 0
    right = float(right_answers[1].tail(LONG_WINDOW).values.mean())
    trend = learning_trend(trace, since=int(spread.steps[first]))
    wrong = right < 0.5  # of the answers
    evidence, counter = sides(trend)
    return Finding(
        f"groups differ, but not in whether the answer is right: {'none' if wrong else 'all'} are "
        f"in the last {len(spread) - first} updates",
        severity=Severity.WARNING if trend.stalls else Severity.NOTE,
        metric=name,
        began=int(spread.steps[first]),
        ended=int(spread.steps[-1]),
        observed=0.0,
        bound=Bound(0.0, "a spread of exactly zero"),
        evidence=evidence,
        counter=counter,
        remedies=FAILED_PROMPT_REMEDIES if wrong else SOLVED_PROMPT_REMEDIES,
    )


RULE = Rule(
    name="zero-variance-groups",
    needs=(),
    needs_any=(GROUP_ZERO_STD, GROUP_ALL_WRONG),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=("prompts too easy or too hard for this model", "too few completions per prompt"),
    remedies=(
        "look at which groups are uniform: solved, or hopeless?",
        "raise {num_generations}, or sample prompts until groups have contrast",
    ),
    profiles=kinds.GROUPED,
    explained_by=(
        "setting-out-of-range",
        "constant-reward",
        "response-length-explodes",
        "response-length-collapses",
        "responses-truncated",
        "reference-kl-out-of-range",
        "entropy-collapse",
        "threshold-off-correctness",
        "judge-outage",
        "samples-all-filtered",
        "learning-rate-jump",
        "gradient-explosion",
        "sampler-mismatch",
        "exploration-explodes",
        "component-dominates",
        "language-switches",
        "text-degenerates",
        "eos-missing",
        "turns-inflate",
        "tool-use-fades",
    ),
    thresholds=(MAX_ZERO_STD_SHARE, SEVERE_ZERO_STD_SHARE),
)
