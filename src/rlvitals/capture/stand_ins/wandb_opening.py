"""Let the W&B look-alike record into the run folder of this process."""

from typing import Any

from rlvitals.capture.run_folders import Source, join
from rlvitals.wandb import session


def connect() -> None:
    """Open the runs of `wandb.init` as this process's other trackers open theirs."""
    session.state.open = _join


def _join(run_id: str, arguments: dict[str, Any]) -> Any:
    return join(Source("wandb", run_id), **arguments)
