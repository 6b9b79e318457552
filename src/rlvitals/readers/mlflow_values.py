"""Convert values that both MLflow stores share: settings and run status."""

from rlvitals.readers.formats.literals import setting
from rlvitals.types import Ending, Setting

# `mlflow/entities/run_status.py`: files hold the number, databases the word.
FINISHED_STATUS = "FINISHED"


def settings(params: dict[str, str], tags: dict[str, str]) -> dict[str, Setting]:
    """Return the parameters, and the person's own tags where no parameter has the name."""
    # MLflow's own tags begin so: the user, the commit, the host.
    tag_settings = {key: text for key, text in tags.items() if not key.startswith("mlflow.")}
    parsed = {key: setting(text) for key, text in {**tag_settings, **params}.items()}
    return {key: value for key, value in parsed.items() if value is not None}


def ending(status: object) -> tuple[Ending | None, list[str]]:
    """Return how a run ended by its status, a number or a word, and what to say of it.

    MLflow keeps no exit code, and a script that fails outside of `with mlflow.start_run()` is
    FINISHED too (`_safe_end_run` of `mlflow/tracking/fluent.py`): an ending says only that the
    run is over.
    """
    run_statuses = {1: "RUNNING", 2: "SCHEDULED", 3: FINISHED_STATUS, 4: "FAILED", 5: "KILLED"}
    status_name = run_statuses.get(status, "") if isinstance(status, int) else str(status)
    text = (
        [f"MLflow says that the run was {status_name.lower()}"] if status_name == "KILLED" else []
    )
    if status_name == "FAILED":
        text = ["MLflow says that the run failed"]
    return (Ending() if status_name in {FINISHED_STATUS, "FAILED", "KILLED"} else None), text
