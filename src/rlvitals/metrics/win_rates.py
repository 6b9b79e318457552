"""Tell the share of games won from the counts of wins, losses and draws that a log has."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvitals.types import Log, Series


def add_win_rates(logs: Sequence[Log], unknown: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Return the logs with the share of wins where they count both wins and losses, and its key.

    `unknown`: the keys that no table knows.
    """
    rates = [_win_rate(log, [key for key in unknown if key in log.series]) for log in logs]
    extended = [
        log if rate is None else replace(log, series={**log.series, "win_rate": rate})
        for log, rate in zip(logs, rates, strict=True)
    ]
    return extended, ["win_rate"] if any(rate is not None for rate in rates) else []


def _win_rate(log: Log, keys: Sequence[str]) -> Series | None:
    columns = [
        [log.series[key] for key in keys if re.fullmatch(rf"(?i)(?:.*[/_ ])?(?:{words})", key)]
        for words in ("wins|won", "losses|lost", "draws|ties")
    ]
    if (
        "win_rate" in log.series
        or any(len(column) != 1 for column in columns[:2])
        or len(columns[2]) > 1
    ):
        return None
    counts = [column[0] for column in columns if column]
    steps = counts[0].steps
    if any(not np.array_equal(count.steps, steps) for count in counts):
        return None
    games = np.array([count.values for count in counts])
    if len(steps) > 1 and (np.diff(games) >= 0).all():  # they count on from row to row
        games = np.diff(games, prepend=0.0)
    total = games.sum(axis=0)
    if not np.isfinite(games).all() or (games < 0).any() or (games % 1 != 0).any():
        return None
    share = np.divide(games[0], total, out=np.full(len(total), np.nan), where=total > 0)
    return Series(steps, counts[0].times, share, counts[0].every)
