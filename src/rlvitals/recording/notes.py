"""What went wrong without stopping anything: counted, and said once."""

from functools import lru_cache
from threading import Lock

from rlvitals import redact

SHOWN = 200  # characters of a note: an error's text may be a page long
READ = 20 * SHOWN  # characters in which secrets are looked for, before the cut divides one


class Notes:
    """Counts of what happened, by its text. Any thread may add; one thread says."""

    def __init__(self) -> None:
        """Begin with none."""
        self.counts: dict[str, int] = {}
        self._said: dict[str, int] = {}
        self._lock = Lock()

    def add(self, text: str, count: int = 1) -> None:
        """Count one more of a kind; never waits for the thread that says them."""
        text = _clean(text[:READ])
        # A signal may come in the middle of an `add` of this thread: never block on a lock here.
        held = self._lock.acquire(blocking=False)
        try:
            self.counts[text] = self.counts.get(text, 0) + count
        finally:
            if held:
                self._lock.release()

    def news(self) -> list[tuple[str, int]]:
        """List the notes that are new or have doubled since they were last said."""
        found = list(self.counts.items())
        return [(text, n) for text, n in found if n >= 2 * self._said.get(text, 0) and n]

    def rest(self) -> list[tuple[str, int]]:
        """List the notes whose count grew since they were last said: for the end of a run."""
        return [(text, n) for text, n in list(self.counts.items()) if n > self._said.get(text, 0)]

    def said(self, text: str, count: int) -> None:
        """Remember that a note stands in the run."""
        self._said[text] = count


@lru_cache(maxsize=1024)  # a note may come with every row
def _clean(text: str) -> str:
    return redact.text(text)[:SHOWN]
