"""Merge what the logs of a run say of its end."""

from collections.abc import Sequence

from rlvitals.types import STOPPED_BY_HAND, Lifecycle, Log


def lifecycle(logs: Sequence[Log], resumed: tuple[int, ...]) -> Lifecycle:
    """Return how a run ended, by all of its logs: exit code 0 overrides a traceback."""
    endings = [log.ending for log in logs if log.ending is not None]
    exit_code = next((e.exit_code for e in endings if e.exit_code is not None), None)
    traceback = next((e.traceback for e in endings if e.traceback), "")
    reason = next((e.reason for e in endings if e.reason), "")
    if exit_code == 0:
        traceback = ""
    elif is_interrupt(traceback):
        exit_code, traceback, reason = None, "", STOPPED_BY_HAND
    return Lifecycle(
        exit_code=exit_code,
        traceback=traceback,
        attempts=max([1 + len(resumed), *(log.attempts for log in logs)]),
        seams=resumed,
        ended=bool(endings),
        signal=next((e.signal for e in endings if e.signal), ""),
        reason=reason,
        end_step=max((e.step for e in endings if e.step is not None), default=None),
    )


def is_interrupt(traceback: str) -> bool:
    """Return True for a person's Ctrl-C, which is no failure."""
    return traceback.strip().rpartition("\n")[2].startswith("KeyboardInterrupt")
