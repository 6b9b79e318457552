"""What went wrong without stopping anything: counted, and said once."""

import re
from functools import lru_cache

from rlvitals.storage import redact

MAX_NOTE_LETTERS = 200  # characters of a note: an error's text may be a page long
MAX_NOTE_TEXTS = 200  # distinct texts; those that come later count together but for their numbers
MAX_NOTE_PATTERNS = 400  # distinct texts with the patterns; those that come later count as one
NOTE_NUMBER = re.compile(r"\d+(?:[.,_]\d+)*")
OTHER_NOTES = "further notes, each of another text"
READ = (
    20 * MAX_NOTE_LETTERS
)  # characters in which secrets are looked for, before the cut divides one


class Notes:
    """Counts of what happened, by its text. Any thread may add; one thread says.

    Texts that differ in a number alone, as "step 12: no reward", become one note beyond
    `MAX_NOTES` of them: neither memory nor the file of events grows with a training's length.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.counts: dict[str, int] = {}
        self._said: dict[str, int] = {}

    def add(self, text: str, count: int = 1) -> None:
        """Count one more of a kind; waits for no other thread, nor for a signal's handler."""
        text = _clean(text[:READ])
        if text not in self.counts:
            if len(self.counts) >= MAX_NOTE_TEXTS:
                text = NOTE_NUMBER.sub("#", text)
            if text not in self.counts and len(self.counts) >= MAX_NOTE_PATTERNS:
                text = OTHER_NOTES
            self.counts.setdefault(text, 0)
        # In CPython no other thread and no handler runs between this load and its store.
        self.counts[text] += count

    def news(self) -> list[tuple[str, int]]:
        """List the notes that are new or have doubled since they were last said."""
        counts = list(self.counts.items())
        return [(text, n) for text, n in counts if n >= 2 * self._said.get(text, 0) and n]

    def rest(self) -> list[tuple[str, int]]:
        """List the notes whose count grew since they were last said: for the end of a run."""
        return [(text, n) for text, n in list(self.counts.items()) if n > self._said.get(text, 0)]

    def said(self, text: str, count: int) -> None:
        """Remember that a note stands in the run."""
        self._said[text] = count


def error_text(error: BaseException) -> str:
    """Return an error's type and text, or its type alone where its text raises."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - a stranger's exception
        return name


@lru_cache(maxsize=1024)  # a note may come with every row
def _clean(text: str) -> str:
    return redact.text(text)[:MAX_NOTE_LETTERS]
