"""How an option is declared, and the section that other programs' settings files have as well."""

from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


def option(default: T, doc: str, *, choices: tuple[str, ...] = (), item: str = "") -> T:
    """Declare one option: its default gives its type, `item` names one of a list, or a number."""
    about = {"doc": doc, "choices": choices, "item": item}
    return field(default=default, metadata=about)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What is written beside the run's own files. Without this section, nothing is.

    With it, TensorBoard event files go under `<run>/tensorboard/` and rows under `<run>/metrics/`.
    """

    metrics_export_enabled: bool = option(default=True, doc="write rows under `<run>/metrics/`")
    metrics_export_format: str = option("csv", "as what", choices=("csv", "parquet"))
    metrics_export_interval: int = option(50, "rows that are written together", item="N")
    metrics_subsamples: int = option(
        200_000,
        "rows of a kind that are kept in full; after them every 2nd for as many rows, then every "
        "4th, and so on (0: all). The run's own files keep all",
        item="N",
    )
    tensorboard_port: int = option(
        6006, "the command that shows the run is printed with this port (0: it is not)", item="N"
    )
