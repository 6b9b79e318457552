"""Declare options, and the sections of settings that are independent of the others."""

from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

OptionT = TypeVar("OptionT")


def option(default: OptionT, doc: str, *, choices: tuple[str, ...] = (), item: str = "") -> OptionT:
    """Declare one option: its default gives its type, `item` names one of a list, or a number."""
    metadata = {"doc": doc, "choices": choices, "item": item}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Recording:
    """The defaults of `rlvitals.start()`."""

    mode: str = option(
        "on", "off: nothing is recorded and every call is free; also `RLVITALS_MODE`",
        choices=("on", "off"),
    )  # fmt: skip
    folder: str = option("", "the run folder, or a URL: `s3://bucket/runs/x`", item="FOLDER")
    mirror: str = option("", "upload the run folder to this URL while it is recorded", item="URL")
    mirror_seconds: float = option(10.0, "seconds between two uploads", item="N")
    spool_gib: float = option(
        8.0, "GiB that wait on disk for a URL's bucket; rows beyond are dropped", item="N"
    )
    project: str = option("", "what the run belongs to", item="TEXT")
    name: str = option("", "the run's name", item="TEXT")
    framework: str = option(
        "", "whose names the logged keys are, where they do not tell: `sb3`, `trl-grpo`, `verl`",
        item="NAME",
    )  # fmt: skip
    group: str = option("", "runs that differ in their seed alone", item="TEXT")
    tags: tuple[str, ...] = option((), "words to find the run by", item="TAG")
    sinks: tuple[str, ...] = option((), "what else to write", item="SINK")
    durable: bool = option(False, "write each call at once: nothing is lost on SIGKILL")
    flush_seconds: float = option(0.15, "seconds that rows wait in memory at most", item="N")
    facts: bool = option(
        True, "store git commit and diff, packages, host and seeds: what a repetition needs"
    )
    rollouts_mib: float = option(
        1024.0, "MiB of rollouts in the run folder, without secrets (0: none)", item="N"
    )
    alerts: bool = option(False, "send the alerts of your own `alerts.toml`")
    stop_on: str = option("", "ask the training to stop where this stands", choices=("error",))
    machine_seconds: float = option(
        10.0, "seconds between two looks at the machine (0: none)", item="N"
    )


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Files written in addition to the run's own. Without this section, none are.

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


@dataclass(frozen=True, slots=True)
class Plot:
    """The options of `rlvitals plot`."""

    theme: str = option("light", "colours of the pictures", choices=("light", "dark"))
    format: tuple[str, ...] = option(
        ("png",), "files of each picture: png, svg, pdf, or json for the numbers drawn",
        item="FORMAT",
    )  # fmt: skip
    dpi: int = option(110, "pixels to the inch of a PNG", item="N")


@dataclass(frozen=True, slots=True)
class Mute:
    """Findings that are known and accepted: they are counted and named, and fail nothing."""

    rule: str = option("", "the rule whose findings are muted", item="RULE")
    reason: str = option("", "why: it is shown beside them", item="TEXT")
    run: str = option("", "runs by name, `*` for anything; every run without it", item="PATTERN")
    until: date | None = field(
        default=None,
        metadata={"doc": "the last day on which it holds", "choices": (), "item": "DATE"},
    )
    until_step: int | None = option(None, "the last step of a run for which it holds", item="N")
    where: str = ""  # the file of this entry
