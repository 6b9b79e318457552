"""Read the time at which runs are judged: the clock, or the moment that `--now` names.

All that judges reads the clock here: with `--now` an answer can be repeated.
"""

import time
from datetime import UTC, datetime
from math import isfinite

from rlvitals.errors import UsageError


def now(text: str = "") -> float:
    """Return the moment that a text names, in seconds since the epoch; the machine's for none.

    `text` is a number of seconds since the epoch or a date of ISO 8601; without a zone it is UTC.
    Raises UsageError.
    """
    if not text:
        return time.time()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _parse_date(text)
    # Beyond the year 4000 a date cannot be written any more.
    if isfinite(seconds) and 0 <= seconds < 2.0**37:
        return seconds
    raise UsageError(f"{text!r} is not a time", where="--now", hint="--now 2026-01-31T12:00:00Z")


def date(seconds: float) -> str:
    """Format a time as a date in UTC; one outside the calendar as its number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s after 1970"


def _parse_date(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
