"""What a key that no table knows may mean, by its name: for a person to accept, never judged."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from rlvitals.metrics import CATALOGUE
from rlvitals.metrics.frameworks import TABLES

VAGUE = frozenset({"max", "min", "mean", "avg", "std", "step", "steps", "time", "value", "total"})
CANDIDATES = 5
SAME_WORD = 0.8  # of 1: how alike two words are that differ by an ending
CLOSE = 0.7  # of 1: how alike two names must be before one is proposed
OUTCOME_WORDS = ("return", "reward", "score", "success")  # in the keys an outcome is sought among
MOST = 10  # of those keys
LONG = 60  # characters of a key: one that is longer is not a name


@lru_cache(maxsize=256)
def propose(key: str) -> str | None:
    """Guess the metric of a key from its name alone; None where no name is close."""
    known: dict[str, str] = {}
    for table in TABLES:
        known |= {_own(k): name.metric.name for k, name in table.keys.items()}
    known |= {_own(m.name): m.name for m in CATALOGUE if m.kind != "setting" and not m.family}
    close = get_close_matches(_own(key), known, n=CANDIDATES, cutoff=CLOSE)
    return next((known[one] for one in close if _says_more(_own(key), one)), None)


def outcomes(unmapped: Iterable[str], names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the keys that may be one of the outcomes `names`, each with the one it may be."""
    keys = [
        key
        for key in unmapped
        if len(key) <= LONG and any(word in key.lower() for word in OUTCOME_WORDS)
    ]
    told = ((key, propose(key) or "") for key in keys[:MOST])
    wanted = frozenset(names)
    return tuple((key, name) for key, name in told if name in wanted)


def _own(key: str) -> str:
    """Return a key's own part of its name: its last, with the one before where that is vague."""
    parts = key.lower().replace("-", "_").split("/")
    return "_".join(parts[-2:] if parts[-1] in VAGUE else parts[-1:])


def _says_more(key: str, known: str) -> bool:
    """Tell whether a key has every word of a known name: train_step is no train_loss."""
    words = key.split("_")
    return all(get_close_matches(word, words, n=1, cutoff=SAME_WORD) for word in known.split("_"))
