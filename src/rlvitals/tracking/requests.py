"""Read requests to a running loop (save, stop) from a file in the run folder."""

from dataclasses import dataclass
from pathlib import Path

from rlvitals.storage import events
from rlvitals.storage.run_folder import RunFolder

REQUESTS_FILE = "requests.jsonl"
REQUEST_KINDS = ("save", "stop")


@dataclass(frozen=True, slots=True)
class Requests:
    """The pending requests: `save` since the last call, `stop` from then on."""

    save: bool = False
    stop: bool = False

    def __bool__(self) -> bool:
        """Whether there is a request."""
        return self.save or self.stop


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
        self._saved = 0  # written by the loop

    def look(self) -> list[dict[str, object]]:
        """Read the new requests; return for each the facts of its event. Raises OSError."""
        scan = events.read(self._path, self._cursor)
        self._cursor = scan.cursor
        requests = [event for event in scan.events if event.kind in REQUEST_KINDS]
        kinds = [event.kind for event in requests]
        self._saves += kinds.count("save")
        self._stops += kinds.count("stop")
        return [_event_facts(event) for event in requests]

    def requests(self) -> Requests:
        """Return the pending requests."""
        saves = self._saves
        if saves == self._saved and not self._stops:
            return NO_REQUESTS
        requests = Requests(saves > self._saved, self._stops > 0)
        self._saved = saves
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


def ask(folder: Path, kind: str, reason: str = "") -> None:
    """Append a request for the loop that records into a folder. Raises OSError."""
    facts = {"reason": reason} if reason else {}
    events.append(folder / REQUESTS_FILE, kind, None, **facts)


def _event_facts(event: events.Event) -> dict[str, object]:
    """Return what the recorder's event says of a request."""
    reason = event.facts.get("reason")
    return {"what": event.kind, **({"reason": reason} if isinstance(reason, str) else {})}
