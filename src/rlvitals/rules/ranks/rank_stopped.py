"""A rank logs no rows any more while the others go on.

## What it sees
The last row of each rank. A rank has stopped where at least half of the ranks have logged 10 steps
or more after its last one, and three times the widest gap between its rows. A rank that the last
launch no longer had is not one of them.

## Why it matters
A process that hangs in a data loader, a simulator or a call to another machine keeps its
accelerator and gives nothing. Ranks that synchronise wait for it and stop soon after; those that
do not train on without its data.

## What to do
See what the process waits for: `py-spy dump` on the rank's machine. Set the time limit of the
collective operations, so that a rank that does not come ends the run with an error.

## When it is wrong
A rank that is meant to end sooner, or to log only at the beginning. Where all ranks wait for the
one that hangs, all stop at the same step: see `no-new-rows`.

## References
- PyTorch, `torch.distributed.init_process_group(timeout=...)` and the flight recorder.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.types import RankValues, Trace

MISSED_ROWS = Threshold(
    "rank-stopped.rows", 10.0, "rows that other ranks log after a rank's last", 3.0
)
MISSED_GAPS = 3  # x the widest gap between the rank's rows
MIN_ROWS_OF_RANKS = 10


def check(trace: Trace) -> Answer:
    """Compare where each rank's rows end."""
    name, values = max(trace.ranks.items(), key=lambda item: len(item[1].steps))
    if len(values.steps) < MIN_ROWS_OF_RANKS:
        return Undecided("too few steps that several ranks logged")
    last, end, stopped = _ends(values, MISSED_ROWS.on(trace))
    missed = end - last
    if not stopped.any():
        return Clear()
    row = int(missed.argmax()) if stopped[missed.argmax()] else int(np.flatnonzero(stopped)[0])
    ranks = values.ranks[stopped]
    further_ranks = f", and {len(ranks) - 1} more ranks stopped" if len(ranks) > 1 else ""
    return Finding(
        f"rank {values.ranks[row]} logged nothing after step {values.steps[last[row]]:,}, while "
        f"others went on to step {values.steps[end]:,}{further_ranks}",
        severity=Severity.WARNING,
        metric=name,
        began=min(int(values.steps[last[row]]), trace.last_step),
        ended=min(int(values.steps[end]), trace.last_step),
        observed=float(missed[row]),
        bound=MISSED_ROWS.bound(trace, "default: 10 rows of the other ranks"),
        limit_on_curve=False,
    )


def stopped_rows(values: RankValues, limit: float) -> list[int]:
    """Return the rows of the ranks that missed at least `limit` rows, the first to stop first."""
    if len(values.steps) < MIN_ROWS_OF_RANKS:
        return []
    last, _, stopped = _ends(values, limit)
    return sorted((int(row) for row in np.flatnonzero(stopped)), key=lambda row: int(last[row]))


def _ends(values: RankValues, limit: float) -> tuple[NDArray[np.int64], int, NDArray[np.bool_]]:
    """Return each rank's last step [r] as an index, that of the median, and which stopped [r]."""
    last = np.array([int(np.flatnonzero(row)[-1]) if row.any() else 0 for row in values.logged])
    gaps = np.array(
        [int(np.diff(np.flatnonzero(row)).max()) if row.sum() > 1 else 1 for row in values.logged]
    )
    end = int(np.median(last))  # at least half of the ranks came to here
    return last, end, end - last >= np.maximum(limit, MISSED_GAPS * gaps)


RULE = Rule(
    name="rank-stopped",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "the process hangs: a data loader, a simulator, a call that waits for ever",
        "it was killed, and the others do not wait for it",
    ),
    remedies=(
        "see what it waits for: `py-spy dump` on its machine",
        "set the time limit of the collective operations",
        "resume from the latest checkpoint",
    ),
    thresholds=(MISSED_ROWS,),
    many_ranks=True,
)
