"""Declare options, and the sections of settings that are independent of the others."""

from dataclasses import field
from datetime import date
from typing import TypeVar

from rlvitals.startup.fast_dataclass import dataclass

OptionT = TypeVar("OptionT")


def option(default: OptionT, doc: str, *, choices: tuple[str, ...] = (), item: str = "") -> OptionT:
    """Declare one option as a field of a dataclass: its default gives its type.

    Parameters
    ----------
    default : bool, int, float, str or tuple of str
        The default.
    doc : str
        Description, for the help and the manual.
    choices : tuple of str
        The allowed values. Default: any of its type.
    item : str
        Placeholder of a value, such as "FOLDER"; of a list, of one of its values.
    """
    metadata = {"doc": doc, "choices": choices, "item": item}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Recording:
    """The defaults of `rlvitals.start()`."""

    mode: str = option(
        "on", "off: record nothing, every call returns at once; also `RLVITALS_MODE`",
        choices=("on", "off"),
    )  # fmt: skip
    folder: str = option("", "the run folder, or a URL: `s3://bucket/runs/x`", item="FOLDER")
    mirror: str = option("", "upload the run folder to this URL while it is recorded", item="URL")
    mirror_seconds: float = option(10.0, "seconds between two uploads", item="N")
    spool_gib: float = option(
        8.0, "GiB on disk that wait for the upload to a URL; further rows are dropped", item="N"
    )
    project: str = option("", "project of the run", item="TEXT")
    name: str = option("", "name of the run", item="TEXT")
    framework: str = option(
        "", "framework of the logged keys, if ambiguous: `sb3`, `trl-grpo`, `verl`",
        item="NAME",
    )  # fmt: skip
    group: str = option("", "group of runs that differ only in their seed", item="TEXT")
    tags: tuple[str, ...] = option((), "tags for searching runs", item="TAG")
    sinks: tuple[str, ...] = option(
        (), "sinks besides the run folder: `tensorboard`, `csv`, `wandb`", item="SINK"
    )
    durable: bool = option(False, "write each call immediately, so that SIGKILL loses no rows")
    flush_seconds: float = option(
        0.15, "longest time in seconds that rows wait in memory", item="N"
    )
    facts: bool = option(
        True, "store git commit and diff, packages, host and seeds, for reproduction"
    )
    rollouts_mib: float = option(
        1024.0, "limit of the rollouts in the run folder, in MiB (0: record none)", item="N"
    )
    alerts: bool = option(False, "send the alerts of your own `alerts.toml`")
    stop_on: str = option(
        "",
        "request a stop of the training on a persistent finding of this severity",
        choices=("error",),
    )
    machine_seconds: float = option(
        10.0, "seconds between two samples of CPU, memory and GPU (0: none)", item="N"
    )


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Files written in addition to the run's own. Without this section, none are.

    With it, TensorBoard event files go under `<run>/tensorboard/` and rows under `<run>/metrics/`.
    """

    metrics_export_enabled: bool = option(default=True, doc="write rows under `<run>/metrics/`")
    metrics_export_format: str = option("csv", "format of the rows", choices=("csv", "parquet"))
    metrics_export_interval: int = option(50, "rows per write", item="N")
    metrics_subsamples: int = option(
        200_000,
        "rows per file without subsampling; then every 2nd row for as many rows, then every 4th, "
        "and so on (0: all). The run folder keeps all rows",
        item="N",
    )
    tensorboard_port: int = option(
        6006, "port in the printed TensorBoard command (0: do not print it)", item="N"
    )


@dataclass(frozen=True, slots=True)
class Plot:
    """The options of `rlvitals plot`."""

    theme: str = option("light", "colours of the pictures", choices=("light", "dark"))
    format: tuple[str, ...] = option(
        ("png",), "file formats of each picture: png, svg, pdf, or json for its data",
        item="FORMAT",
    )  # fmt: skip
    dpi: int = option(110, "resolution of a PNG in pixels per inch", item="N")


@dataclass(frozen=True, slots=True)
class Mute:
    """Accepted findings: they are counted and listed, but do not fail the check."""

    rule: str = option("", "the rule whose findings are muted", item="RULE")
    reason: str = option("", "the reason, shown with the findings", item="TEXT")
    run: str = option("", "names of runs, with `*` as wildcard (default: all runs)", item="PATTERN")
    until: date | None = field(
        default=None,
        metadata={"doc": "the last day on which the entry applies", "choices": (), "item": "DATE"},
    )
    until_step: int | None = option(
        None, "the last step of a run to which the entry applies", item="N"
    )
    where: str = ""  # the file of this entry
