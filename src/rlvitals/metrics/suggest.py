"""Propose a metric for an unknown key by its name, for a person to accept."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from rlvitals.metrics import CATALOGUE
from rlvitals.metrics.frameworks import TABLES
from rlvitals.types import Trace


@lru_cache(maxsize=256)
def propose(key: str) -> str | None:
    """Return the name of the metric with the most similar name; None where no name is close."""
    by_name: dict[str, str] = {}
    for table in TABLES:
        by_name |= {_short_name(k): name.metric.name for k, name in table.keys.items()}
    by_name |= {
        _short_name(m.name): m.name for m in CATALOGUE if m.kind != "setting" and not m.family
    }
    close = get_close_matches(_short_name(key), by_name, n=5, cutoff=0.7)
    # A key has every word of a metric's name: train_step is no train_loss.
    key_words = _short_name(key).split("_")
    return next(
        (
            by_name[candidate]
            for candidate in close
            if all(
                get_close_matches(term, key_words, n=1, cutoff=0.8) for term in candidate.split("_")
            )
        ),
        None,
    )


def outcomes(unmapped: Iterable[str], names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the unmapped keys that may be one of the outcomes `names`, each with that outcome."""
    keys = [
        key
        for key in unmapped
        if len(key) <= 60  # a longer key is no name
        and any(term in key.lower() for term in ("return", "reward", "score", "success"))
    ]
    proposals = ((key, propose(key) or "") for key in keys[:10])
    outcome_names = frozenset(names)
    return tuple((key, name) for key, name in proposals if name in outcome_names)


def why_missing(trace: Trace) -> str:
    """Return why a framework's script logged no outcome, where that is known; else empty.

    CleanRL's scripts take episodes from `infos["final_info"]`, which vector environments of
    gymnasium 1.0 and later do not return.
    """
    if any(measured.framework == "cleanrl" for measured in trace.measured.values()):
        return "; CleanRL's scripts log none with gymnasium 1.0 or later: no final_info in infos"
    return ""


def _short_name(key: str) -> str:
    """Return the last segment of a key, with the segment before it where the last is vague."""
    segments = key.lower().replace("-", "_").split("/")
    return "_".join(
        segments[-2:]
        if segments[-1]
        in {"max", "min", "mean", "avg", "std", "step", "steps", "time", "value", "total"}
        else segments[-1:]
    )
