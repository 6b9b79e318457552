"""What MLflow's two stores have in common: texts that are settings, and how a run ended."""

from rlvitals.readers.formats.literals import setting
from rlvitals.types import Ending, Setting

# `mlflow/entities/run_status.py`: files hold the number, databases the word.
FINISHED = "FINISHED"
STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: FINISHED, 4: "FAILED", 5: "KILLED"}
OWN_TAGS = "mlflow."  # what MLflow says of the run by itself: the user, the commit, the host


def settings(params: dict[str, str], tags: dict[str, str]) -> dict[str, Setting]:
    """Return the parameters, and the person's own tags where no parameter has the name."""
    own = {key: text for key, text in tags.items() if not key.startswith(OWN_TAGS)}
    found = {key: setting(text) for key, text in {**own, **params}.items()}
    return {key: value for key, value in found.items() if value is not None}


def ending(status: object) -> tuple[Ending | None, list[str]]:
    """Return how a run ended by its status, a number or a word, and what to say of it.

    MLflow keeps no exit code, and a script that fails outside of `with mlflow.start_run()` is
    FINISHED too (`_safe_end_run` of `mlflow/tracking/fluent.py`): an ending says only that the
    run is over.
    """
    word = STATUSES.get(status, "") if isinstance(status, int) else str(status)
    said = [f"MLflow says that the run was {word.lower()}"] if word == "KILLED" else []
    if word == "FAILED":
        said = ["MLflow says that the run failed"]
    return (Ending() if word in {FINISHED, "FAILED", "KILLED"} else None), said
