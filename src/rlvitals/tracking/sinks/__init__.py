"""The list of sinks, one module each."""

from rlvitals.tracking.sinks import (
    console,
    csv,
    jsonl,
    mlflow,
    native,
    parquet,
    tensorboard,
    trackio,
    wandb,
)
from rlvitals.tracking.sinks.sink import Sink

SINKS: tuple[Sink, ...] = (
    native.SINK,
    tensorboard.SINK,
    csv.SINK,
    parquet.SINK,
    jsonl.SINK,
    console.SINK,
    wandb.SINK,
    trackio.SINK,
    mlflow.SINK,
)


def find(name: str) -> Sink | None:
    """Return the sink of a name; None where there is none."""
    return next((sink for sink in SINKS if sink.name == name), None)
