"""Numbers of the log that must add up do not: something is computed otherwise than it says.

## What it sees
A table of identities, each of which follows from the source code of the trainer that wrote the
log: RLHF reward = score + KL penalty; KL penalty = -coefficient x KL, of one reduction; reward =
weighted sum of its components; clipped tokens = those below + those above; a total loss = its
weighted terms, where all are of the same minibatches (not in Stable-Baselines3, whose `train/loss`
is of the last one alone); chosen - rejected = margin; action counts = decisions; epochs run at
most those set; a learning rate never above the one set; lowest <= mean <= highest. A row breaks
an identity where the two sides differ by more than the digits that were logged and the precision
of float32 or bfloat16 explain. Three such rows, and one in a hundred, are a finding.

## Why it matters
No threshold stands behind it, so it is no matter of taste: with a penalty whose sign is flipped
a model is paid for leaving its reference, and the curves of both still look smooth. A component
that leaves samples unscored trains on zeros that nobody gave.

## What to do
Read the lines that compute the total and its parts, from the step that is named. If the miss is a
constant factor, look for a weight or for a sum where a mean was meant; if it is twice a term, for
a sign; if it comes and goes, for a mask.

## When it is wrong
A trainer that was changed on purpose, and logs the old names for new numbers. Weights that are
not logged are learned from the first half of the run: a change of them is then what is found.

## References
- huggingface/trl, ppo_trainer.py and grpo_trainer.py; ray-project/ray, ppo_torch_policy.py;
  volcengine/verl, ray_trainer.py; DLR-RM/stable-baselines3, ppo.py: each identity names its lines.
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.rules.books import Books
from rlvitals.rules.identities import IDENTITIES, Identity
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

MIN_BROKEN_ROWS = 3  # fewer may be rows of a repaired log
MAX_FACTOR_DEVIATION = 0.02  # relative, of a constant factor


@dataclass(frozen=True, slots=True)
class Entry:
    """An identity that this log can be held to."""

    identity: Identity
    books: Books


def check(trace: Trace) -> Answer:
    """Hold the log to every identity that its trainer keeps; the gravest, then the earliest."""
    entries = [entry for identity in IDENTITIES if (entry := _entry(trace, identity))]
    findings = [f for entry in entries if (f := _judge(trace, entry)) is not None]
    if findings:
        worst = max(f.severity for f in findings)
        first = min((f for f in findings if f.severity == worst), key=lambda f: f.began)
        other_summaries = tuple(f.summary for f in findings if f is not first)
        return replace(first, evidence=(*first.evidence, *other_summaries))
    if not entries:
        return Undecided("no numbers are logged together that are known to add up")
    return Clear()


def _entry(trace: Trace, identity: Identity) -> Entry | None:
    name = _metric_name(trace, identity)
    source = trace.measured.get(name)
    if source is None or source.framework not in identity.logged_by:
        return None
    books = identity.keep(trace)
    if books is None or len(books.steps) < 5:  # rows: fewer show nothing
        return None
    early_violations = books.violations[: max(int(0.5 * len(books.steps)), 1)]  # of the rows
    # Weights that nobody told must first be seen to be right.
    # The identity must hold in 90 % of the early rows.
    return Entry(identity, books) if books.certain or np.mean(~early_violations) >= 0.9 else None


def _metric_name(trace: Trace, identity: Identity) -> str:
    """Name the series that shows it: a family's first member."""
    name = identity.total.name
    members = sorted(trace.family(name)) if identity.total.family else []
    return f"{name}/{members[0]}" if members else name


def _judge(trace: Trace, entry: Entry) -> Finding | None:
    books, identity = entry.books, entry.identity
    rows = np.flatnonzero(books.violations)
    if rows.size < max(MIN_BROKEN_ROWS, 0.01 * len(books.steps)):
        return None
    total, right = float(np.median(books.left[rows])), float(np.median(books.right[rows]))
    share = float(np.median(books.miss[rows] / books.size[rows]))
    first_step, last = int(books.steps[rows[0]]), int(books.steps[rows[-1]])
    of_what = f"{rows.size} of {len(books.steps)} rows"
    return Finding(
        f"{identity.says}: broken in {of_what} since step {first_step:,} ({total:.4g} is logged, "
        f"{'at most ' if books.at_most else ''}{right:.4g} follows)",
        # Half of all terms together: a wrong sign or a missing term.
        severity=min(identity.worst, Severity.ERROR if share >= 0.5 else Severity.WARNING),
        metric=_metric_name(trace, identity),
        began=first_step,
        ended=last,
        observed=total,
        bound=Bound(right, f"what the other numbers come to ({identity.read_from})"),
        evidence=_evidence(books, share),
        causes=(*_factor(books), *identity.causes),
    )


def _evidence(books: Books, share: float) -> tuple[str, ...]:
    exact = books.steps[~books.violations]
    sentence = f"the miss is {share:.2g} of all terms together, as a median"
    if not len(exact):
        return (sentence, "it holds in no row")
    return (sentence, f"it holds within rounding in {len(exact)} rows, the first at {exact[0]:,}")


def _factor(books: Books) -> tuple[str, ...]:
    """Name a constant factor between the two sides, where the miss is one."""
    rows = books.violations & (books.right != 0)
    if books.at_most or int(rows.sum()) < MIN_BROKEN_ROWS:
        return ()
    ratios = books.left[rows] / books.right[rows]
    middle = float(np.median(ratios))
    if not np.isfinite(middle) or middle == 0:
        return ()
    if float(np.median(np.abs(ratios / middle - 1.0))) > MAX_FACTOR_DEVIATION:
        return ()
    if abs(middle + 1.0) <= MAX_FACTOR_DEVIATION:
        return ("a sign is flipped: the two sides are equal but for it",)
    return (f"a weight, or a sum for a mean: the two sides differ by the factor {middle:.4g}",)


RULE = Rule(
    name="accounting-broken",
    needs=(),
    check=check,
    doc=__doc__,
    causes=("a sign, a weight or a reduction differs between the total and its parts",),
    remedies=(
        "read the lines that compute the total and its parts",
        "distrust both until they agree",
        "restart from a checkpoint before the step at which it began, once mended",
    ),
)
