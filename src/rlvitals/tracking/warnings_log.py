"""Count the problems that did not stop a run."""

import re
from functools import lru_cache

from rlvitals.storage import redact

MAX_NOTE_LETTERS = 200  # characters of a note: an error's text may be a page long
MAX_NOTE_TEXTS = 200  # distinct texts; those that come later count together but for their numbers
MAX_NOTE_PATTERNS = 400  # distinct texts with the patterns; those that come later count as one


class Notes:
    """Counts of notes by their text. Any thread may add; one thread writes them.

    Texts that differ in a number alone, as "step 12: no reward", become one note beyond
    `MAX_NOTE_TEXTS` of them: neither memory nor the file of events grows with a training's length.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.counts: dict[str, int] = {}
        self._counts_in_run: dict[str, int] = {}

    def add(self, text: str, count: int = 1) -> None:
        """Count one more of a kind; waits for no other thread, nor for a signal's handler."""
        text = _clean(text[: 20 * MAX_NOTE_LETTERS])
        if text not in self.counts:
            if len(self.counts) >= MAX_NOTE_TEXTS:
                text = re.sub(r"\d+(?:[.,_]\d+)*", "#", text)
            if text not in self.counts and len(self.counts) >= MAX_NOTE_PATTERNS:
                text = "further notes, each of another text"
            self.counts.setdefault(text, 0)
        # In CPython no other thread and no handler runs between this load and its store.
        self.counts[text] += count

    def news(self) -> list[tuple[str, int]]:
        """Return the notes that are new or have doubled since they were last written."""
        counts = list(self.counts.items())
        return [(text, n) for text, n in counts if n >= 2 * self._counts_in_run.get(text, 0) and n]

    def remaining(self) -> list[tuple[str, int]]:
        """Return the notes whose count grew since they were last written: for the end of a run."""
        return [
            (text, n)
            for text, n in list(self.counts.items())
            if n > self._counts_in_run.get(text, 0)
        ]

    def remember(self, text: str, count: int) -> None:
        """Store the count of a note that was written to the run."""
        self._counts_in_run[text] = count


def error_text(error: BaseException) -> str:
    """Return an error's type and text, or its type alone where its text raises."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - a caller's exception
        return name


@lru_cache(maxsize=1024)  # a note may come with every row
def _clean(text: str) -> str:
    return redact.text(text)[:MAX_NOTE_LETTERS]
