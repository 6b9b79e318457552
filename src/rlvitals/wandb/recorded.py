"""Implement `wandb.Run` on a run folder."""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rlvitals.errors import UsageError
from rlvitals.tracking import clock
from rlvitals.tracking.media import MAX_SETTINGS_DEPTH
from rlvitals.tracking.settings_mapping import Config
from rlvitals.tracking.warnings_log import error_text
from rlvitals.wandb.media import Artifact, Medium, Table
from rlvitals.wandb.refusals import Refusal
from rlvitals.wandb.steps import Axes, Row, Steps
from rlvitals.wandb.watching import Watching

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run as Recording


class AlertLevel(StrEnum):
    """The severity of an alert."""

    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class Run:
    """A run under W&B's names; `recording` is the rlvitals run."""

    def __init__(
        self, recording: "Recording", facts: Mapping[str, Any], first_step: int = 0
    ) -> None:
        """Record into `recording`; `facts` are the run's id, project and other metadata."""
        self.recording = recording
        self.id: str = facts["id"]
        self.name: str = facts["name"]
        self.project: str = facts["project"]
        self.entity: str = facts["entity"]
        self.group: str = facts["group"]
        self.job_type: str = facts["job_type"]
        self.notes: str = facts["notes"]
        self.tags: tuple[str, ...] = facts["tags"]
        self.disabled: bool = facts["disabled"]
        self.resumed: bool = facts["resumed"]
        self.dir = str(recording.folder)
        self.url = self.project_url = self.sweep_url = self.sweep_id = None  # there is no page
        self.offline, self.sync_dir = True, self.dir
        self.start_time, self.starting_step = clock.now(), first_step
        self.config = Config(recording.update_settings)
        self.summary = Config(self._record_summary)
        self.ignored: set[str] = set()
        self._axes = Axes()
        self._steps = Steps(self._emit, first_step)
        self.rows = 0  # calls of `log()`
        self._reductions: dict[str, str] = {}  # key -> which of its values the summary keeps
        self._watching = Watching(recording)
        self.finished = False
        recording.at_finish(lambda _: self._steps.flush())  # a script that never calls `finish()`

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Say that a name is of W&B's server."""
            raise AttributeError(f"this run has no {name!r}: it records, and talks to no server")

    @property
    def step(self) -> int:
        """The step of the next call of `log()`."""
        return self._steps.step

    @property
    def path(self) -> str:
        """Entity, project and id, as W&B writes them."""
        return "/".join(segment for segment in (self.entity, self.project, self.id) if segment)

    def project_name(self) -> str:
        """Return the project's name."""
        return self.project

    def get_url(self) -> str | None:
        """Return None: there is no page."""
        return self.url

    def set_tensorboard_step(self, step: int) -> None:
        """Record what is logged without a step at TensorBoard's step from now on."""
        self._axes.follow("global_step", step)

    def log(
        self,
        data: Mapping[str, Any],
        step: int | None = None,
        commit: bool | None = None,
        **unknown: object,
    ) -> None:
        """Record a row, or a part of one: without `step` each call is a new step."""
        self.ignore(*(f"log({name}=...)" for name in unknown))
        if not isinstance(data, Mapping):
            self.ignore(f"log() of a {type(data).__name__}")
            return
        if step is not None and int(step) < self._steps.step:
            self.recording.note("log() was called with a step below an earlier one: kept as said")
        self.rows += 1
        row_step = None if step is None else int(step)
        self._steps.add(dict(_flat(data)), row_step, commit=commit)
        self._watching.step = self._steps.step

    def define_metric(
        self,
        name: str,
        step_metric: "str | Metric | None" = None,
        step_sync: bool | None = None,
        hidden: bool | None = None,
        summary: str | None = None,
        **options: object,
    ) -> "Metric":
        """Set the step metric of a metric, and which of its values the summary keeps."""
        del step_sync, hidden, options  # they concern W&B's pages
        metric = str(step_metric) if step_metric else ""
        if metric:
            self._axes.define(name, metric)
        if summary:
            self._reductions[name] = summary.split(",")[0]
        return Metric(name)

    def alert(
        self,
        title: str,
        text: str = "",
        level: "AlertLevel | str | None" = None,
        wait_duration: object = None,
    ) -> None:
        """Record an alert as an event of the run."""
        del wait_duration  # nothing is sent, so nothing is sent too often
        severity = str(level or AlertLevel.INFO)
        self.recording.event("alert", step=self.step, title=title, text=text, level=severity)

    def watch(
        self,
        models: Any,
        criterion: object = None,
        log: str | None = "gradients",
        log_freq: int = 1000,
        idx: int | None = None,
        log_graph: bool = False,
    ) -> None:
        """Record histograms of a torch model's gradients or parameters every `log_freq` steps."""
        del criterion, idx
        if log_graph:
            self.ignore("watch(log_graph=True)")
        for model in models if isinstance(models, list | tuple) else (models,):
            self._watching.add(model, log or "", log_freq)

    def unwatch(self, models: object = None) -> None:
        """Stop watching all models."""
        del models
        self._watching.close()

    def save(
        self,
        glob_str: str | Path | None = None,
        base_path: object = None,
        policy: str = "live",
    ) -> list[str]:
        """Record the names of files: they stay where they are."""
        del base_path, policy
        path = Path(glob_str) if glob_str is not None else None
        names = [] if path is None else sorted(str(p) for p in path.parent.glob(path.name))
        self.recording.event("files", step=self.step, files=[Path(name).name for name in names])
        return names

    def log_artifact(
        self,
        artifact_or_path: "Artifact | str | Path",
        name: str | None = None,
        type: str | None = None,
        **_: object,
    ) -> Artifact:
        """Record an artifact by its names: its files stay where they are."""
        artifact = artifact_or_path
        if not isinstance(artifact, Artifact):
            file = Path(artifact)
            artifact = Artifact(name or file.stem, type or "file")
            artifact.add_file(file.name)
        self.recording.event(
            "artifact",
            step=self.step,
            name=artifact.name,
            type=artifact.type,
            files=[Path(file_name).name for file_name in artifact.files],
            metadata=artifact.metadata,
        )
        return artifact

    def log_model(self, path: str | Path, name: str | None = None, **_: object) -> Artifact:
        """Record the name of a model's file."""
        return self.log_artifact(path, name=name, type="model")

    use_artifact, use_model = Refusal("Run.use_artifact"), Refusal("Run.use_model")
    link_artifact, link_model = Refusal("Run.link_artifact"), Refusal("Run.link_model")
    upsert_artifact, restore = Refusal("Run.upsert_artifact"), Refusal("Run.restore")
    finish_artifact = Refusal("Run.finish_artifact")

    def display(self, *_: object, **__: object) -> bool:
        """Return False: there is no page to show in a notebook."""
        return False

    def log_code(self, *_: object, **__: object) -> None:
        """Do nothing: the run records its git commit and what differs from it."""

    def _label(self, *_: object, **__: object) -> None:
        """Do nothing: Hugging Face's callback names itself here."""

    def mark_preempting(self) -> None:
        """Record that the machine is about to be taken away."""
        self.recording.event("preempting", step=self.step)

    def finish(self, exit_code: int | None = None, quiet: object = None) -> None:
        """Write what is pending and close the run; failed with a non-zero exit code."""
        del quiet
        if not self.finished:
            self.finished = True
            self._steps.flush()
            self._watching.close()
            if self.summary:
                self._record_summary(dict(self.summary))
            status = "failed" if exit_code else "finished"
            self.recording.finish(status, exit_code=exit_code or None)

    def ignore(self, *features: str) -> None:
        """Note, once each, features that have no effect here."""
        for feature in features:
            if feature not in self.ignored:
                self.ignored.add(feature)
                self.recording.note(f"of W&B: {feature} has no effect here")

    def __enter__(self) -> Self:
        """Record until the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish: as failed, with the traceback, where an exception ended the block."""
        self._steps.flush()
        self._watching.close()
        self.finished = True
        self.recording.__exit__(kind, error, trace)

    def _emit(self, step: int, row: Row) -> None:
        for row_step, cells in self._axes.split(step, row):
            numbers = {key: value for key, value in cells.items() if _is_number(value)}
            if numbers:
                self.recording.log(row_step, numbers)
                self._keep(numbers)
            for key in cells.keys() - numbers.keys():
                try:
                    self._record_value(row_step, key, cells[key])
                except UsageError:
                    raise
                except Exception as error:  # noqa: BLE001 - of an object that answers wrongly
                    self.recording.note(f"of W&B: {key} is not recorded: {error_text(error)}")

    def _record_value(self, step: int, key: str, value: Any) -> None:
        if isinstance(value, str):
            self.recording.log_text(step, key, value)
        elif isinstance(value, Table):
            self.recording.log_table(step, key, value.as_columns())
        elif hasattr(value, "histogram") and hasattr(value, "bins"):  # ours, or W&B's own
            self.recording.log_histogram(step, key, edges=value.bins, counts=value.histogram)
        elif hasattr(value, "columns") and hasattr(value, "data"):  # W&B's own table
            table = Table(columns=value.columns, data=value.data)
            self.recording.log_table(step, key, table.as_columns())
        elif hasattr(value, "shape"):
            self.recording.log_histogram(step, key, value)
        elif value is not None:
            first = value[0] if isinstance(value, Sequence) and value else value
            kind = "media" if isinstance(first, Medium) else type(value).__name__
            self.ignore(f"{key} ({kind} {type(first).__name__})")

    def _keep(self, numbers: Mapping[str, Any]) -> None:
        """Update the summary, as `define_metric(summary=...)` requests."""
        values = object.__getattribute__(self.summary, "_values")
        for key, value in numbers.items():
            reduction = self._reductions.get(key)
            if reduction in {"min", "max"}:
                best = {"min": min, "max": max}[reduction]
                values[key] = best(float(value), values.get(key, float(value)))
            elif reduction != "none":
                values[key] = value

    def _record_summary(self, values: Mapping[str, Any]) -> None:
        plain = {key: float(v) if _is_number(v) else str(v) for key, v in values.items()}
        self.recording.event("summary", step=self.step, values=plain)


class Metric:
    """The result of `define_metric`; its text is the metric's name."""

    def __init__(self, name: str) -> None:
        """Name it."""
        self.name = name

    def __str__(self) -> str:
        """Its name."""
        return self.name


def _flat(
    data: Mapping[Any, Any], prefix: str = "", parents: tuple[int, ...] = ()
) -> Iterator[tuple[str, Any]]:
    # A mapping that contains itself is a value there, which is ignored by its name.
    parents = (*parents, id(data))
    for key, value in data.items():
        if (
            isinstance(value, Mapping)
            and id(value) not in parents
            and len(parents) < MAX_SETTINGS_DEPTH
        ):
            yield from _flat(value, f"{prefix}{key}/", parents)
        else:
            yield f"{prefix}{key}", value


def _is_number(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    try:
        shape = getattr(value, "shape", None)
    except Exception:  # noqa: BLE001 - torch: of a parameter that is not initialised yet
        return False
    return isinstance(shape, tuple) and math.prod(shape) == 1  # torch's sizes are tuples too
