"""The list of sinks, one module each; loaded where a run names one."""

from importlib import import_module
from typing import TYPE_CHECKING

from rlvitals.startup.lazy_members import load_members_on_use

if TYPE_CHECKING:
    from rlvitals.tracking.sinks.sink import Sink

    SINKS: tuple[Sink, ...]

SINK_MODULES: tuple[str, ...] = (
    "native",
    "tensorboard",
    "csv",
    "parquet",
    "jsonl",
    "console",
    "wandb",
    "trackio",
    "mlflow",
)

__getattr__ = load_members_on_use(__name__, "SINKS", SINK_MODULES, "SINK")


def find(name: str) -> "Sink | None":
    """Return the sink of a name, which its module has too; None where there is none."""
    sink: Sink | None = None
    if name in SINK_MODULES:
        sink = import_module(f"{__name__}.{name}").SINK
    return sink
