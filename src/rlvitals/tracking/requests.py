"""Read requests to a running loop from a file in the run folder."""

import math
from pathlib import Path

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import events
from rlvitals.storage.run_folder import RunFolder

REQUESTS_FILE = "requests.jsonl"


@dataclass(frozen=True, slots=True)
class Requests:
    """The pending requests: `save` since the last call, `stop` from then on.

    `rate_factor`: what the learning rate is to be multiplied by, since the last call.
    """

    save: bool = False
    stop: bool = False
    rate_factor: float = 1.0

    def __bool__(self) -> bool:
        """Whether there is a request."""
        return self.save or self.stop or self.rate_factor != 1.0


NO_REQUESTS = Requests()


class Control:
    """Looks for requests on the recorder's thread; the loop only asks what was seen.

    What was asked before this process began was meant for another.
    """

    def __init__(self, folder: Path) -> None:
        """Watch a run's folder from now on. OSError."""
        self._path = folder / REQUESTS_FILE
        self._cursor = events.read(self._path).cursor
        self._saves = self._stops = 0  # written by the thread that looks
        self._rate_factors: list[float] = []  # written by the thread that looks
        self._saved = self._lowered = 0  # written by the loop: how many of them it took

    def look(self) -> list[dict[str, object]]:
        """Read the new requests; return for each the facts of its event. Raises OSError."""
        scan = events.read(self._path, self._cursor)
        self._cursor = scan.cursor
        # `kill` is of the process itself, by a signal: it is recorded as the others are.
        requests = [
            event for event in scan.events if event.kind in {"save", "stop", "lower-rate", "kill"}
        ]
        kinds = [event.kind for event in requests]
        self._saves += kinds.count("save")
        self._stops += kinds.count("stop")
        factors = [event.facts.get("factor") for event in requests if event.kind == "lower-rate"]
        self._rate_factors += [f for f in factors if isinstance(f, float) and 0 < f < 1]
        return [_event_facts(event) for event in requests]

    def requests(self) -> Requests:
        """Return the pending requests."""
        saves, lowered = self._saves, len(self._rate_factors)
        if saves == self._saved and lowered == self._lowered and not self._stops:
            return NO_REQUESTS
        factor = math.prod(self._rate_factors[self._lowered : lowered])
        requests = Requests(saves > self._saved, self._stops > 0, factor)
        self._saved, self._lowered = saves, lowered
        return requests


def last_status(run: RunFolder) -> str:
    """Return the status of the run's last attempt; "" where it has not ended. Raises OSError."""
    last = max((item.number for item in run.about.attempts), default=0)
    finish_events = [
        event for event in events.read(run.events_path).events if event.kind == "finish"
    ]
    last_facts = [item.facts for item in finish_events if item.facts.get("attempt") == last]
    first_rank_facts = [facts for facts in last_facts if not facts.get("rank")]
    return str(first_rank_facts[-1].get("status", "finished")) if first_rank_facts else ""


def check_running(run: RunFolder) -> None:
    """Raise UsageError where a run has ended: a request would wait for ever. Raises OSError."""
    if status := last_status(run):
        raise UsageError(
            f"no process is left to ask: the run has ended ({status})",
            where=str(run.path),
            hint="`rlvitals diagnose` says how it ended",
        )


def ask(folder: Path, kind: str, reason: str = "", **facts: object) -> None:
    """Append a request for the loop that records into a folder.

    Raises UsageError where the run has ended, UnreadableLog where the folder has no run, OSError.
    """
    check_running(RunFolder.open(folder))
    facts |= {"reason": reason} if reason else {}
    events.append(folder / REQUESTS_FILE, kind, None, **facts)


def _event_facts(event: events.Event) -> dict[str, object]:
    """Return what the recorder's event says of a request."""
    details = {name: event.facts.get(name) for name in ("reason", "factor")}
    plain = {name: value for name, value in details.items() if isinstance(value, str | float)}
    return {"what": event.kind, **plain}
