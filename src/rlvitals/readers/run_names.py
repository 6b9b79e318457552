"""Names for the runs of a database, by which a person asks for one: `mlflow.db/EXPERIMENT/RUN`."""

from collections.abc import Iterable

ID_LETTERS = 8  # of an id, where two runs have one name


def unique(runs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the id of each run under a name of its own, given (name, id) in order.

    The first of a name keeps it; the others have the beginning of their id behind it. Names
    are spelt as paths are, so that a person can type them behind the file's.
    """
    found: dict[str, str] = {}
    for said, key in runs:
        parts = [part for part in said.split("/") if part not in {"", ".", ".."}]
        name = "/".join(parts) or key
        spellings = (name, f"{name} ({key[:ID_LETTERS]})", f"{name} ({key})")
        found[next((s for s in spellings if s not in found), spellings[-1])] = key
    return found
