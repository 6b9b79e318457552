"""Begin to record a run."""

import os
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

from rlvitals import settings as options
from rlvitals.errors import UsageError, VitalsError
from rlvitals.settings import Recording
from rlvitals.storage import redact
from rlvitals.storage.run_folder import (
    RUN_FILE,
    About,
    LostRun,
    RunFolder,
    block_files,
    is_run,
    read_about,
)
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking import launcher_rank, media, run_services, tensors
from rlvitals.tracking.null_run import Off
from rlvitals.tracking.run import Run
from rlvitals.tracking.sinks import native, selection
from rlvitals.tracking.sinks.sink import Opening
from rlvitals.tracking.warnings_log import Notes, error_text
from rlvitals.tracking.writer_thread import Pump

MAX_TAGS = 1_000
RESUME = ("auto", "must", "never")
Where = str | os.PathLike[str]


def start(  # noqa: PLR0913 - what a run is, each by its name
    folder: Where | None = None,
    *,
    project: str | None = None,
    name: str | None = None,
    group: str | None = None,
    framework: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    sinks: Sequence[str] | Mapping[str, Mapping[str, object]] | None = None,
    columns: Sequence[str] = (),
    resume: str = "auto",
    tags: Sequence[str] = (),
    notes: str = "",
    durable: bool = False,
    strict: bool | None = None,
    flush_seconds: float | None = None,
) -> Run:
    """Record a run into a folder; a folder that holds one already gets another attempt of it.

    `framework` says whose names the logged keys are where they are not plain ones: "verl".
    `sinks` names what else to write, or maps each name to its options. `columns`: names that
    the CSV and Parquet sinks put into one table, whichever of them a row holds. `durable`
    writes each call before it returns, so that nothing logged is lost when the process is
    killed; else it is what was logged in the last `flush_seconds`. `strict` makes wrong calls
    raise: the default under pytest. Raises UsageError for a wrong folder, sink, column or option;
    a folder that cannot be written is a warning; where `strict`, a VitalsError.
    """
    checked = "PYTEST_CURRENT_TEST" in os.environ if strict is None else strict
    said = _texts(strict=checked, project=project, name=name, group=group, framework=framework)
    said |= {"folder": None if folder is None else str(folder), "tags": _tags(tags) or None}
    every = _chosen(said | {"durable": durable or None, "flush_seconds": flush_seconds})
    chosen = every.recording
    kept, wrong = _settings(settings, strict=checked)
    if chosen.mode == "off":
        return Off(_path(chosen), chosen.name, kept)
    own = selection.chosen(sinks, every, columns)
    number = seed if seed is None or checked else tensors.whole(seed)
    wanted = _Start(chosen, own, resume, kept, number, media.text(notes))
    return _begun(wanted, wrong, strict=checked)


def _texts(*, strict: bool, **values: object) -> dict[str, object]:
    """Return what is not None as texts; as it is where `strict`, to be refused where it is none."""
    said = ((key, value) for key, value in values.items() if value is not None)
    return {key: value if strict else media.text(value) for key, value in said}


def _tags(tags: object) -> tuple[str, ...]:
    """Return tags as texts; those that cannot be read are left out."""
    try:
        if isinstance(tags, str):
            return (media.text(tags),)
        return tuple(map(media.text, islice(cast("Iterable[object]", tags), MAX_TAGS)))
    except Exception:  # noqa: BLE001 - a stranger's iterator may raise anything
        return ()


def _settings(settings: object, *, strict: bool) -> tuple[dict[str, object], list[str]]:
    """Return settings as they are recorded, and what is wrong with them."""
    try:
        return ({} if settings is None else media.settings(settings)), []
    except UsageError as error:
        if strict:
            raise
        return {}, [error.problem]


def _begun(wanted: "_Start", wrong: Sequence[str], *, strict: bool) -> Run:
    try:
        run = wanted.begin(strict)
    except UsageError:
        raise
    except Exception as error:
        why = error.problem if isinstance(error, VitalsError) else error_text(error)
        file = ""
        if isinstance(error, OSError):
            why, file = error.strerror or str(error), str(error.filename or "")
        elif strict:
            raise
        problem = f"nothing is recorded: {why}"
        if strict:
            raise VitalsError(problem, where=file) from error
        where = f" ({file or wanted.chosen.folder})"
        warnings.warn(f"rlvitals: {problem}{where}", RuntimeWarning, stacklevel=3)
        return Off(_path(wanted.chosen), wanted.chosen.name, wanted.settings, failed=True)
    for text in wrong:
        run.note(text)
    return run


def _chosen(said: Mapping[str, object]) -> options.Settings:
    """Put a call's arguments over the environment, the settings file and the defaults."""
    given = {key: value for key, value in said.items() if value is not None}
    checked = options.check("recording", given, "rlvitals.start()")
    near = Path(checked.get("folder") or Path.cwd())
    return options.load(near, {"recording": checked}, os.environ, records=True)


@dataclass(frozen=True, slots=True)
class _Start:
    """What a run begins with."""

    chosen: Recording
    sinks: Mapping[str, Mapping[str, object]]
    resume: str
    settings: Mapping[str, object]
    seed: int | None
    notes: str

    def begin(self, strict: bool) -> Run:  # noqa: FBT001 - what `start` was told
        """Make or join the folder, open the sinks, start the thread."""
        place = launcher_rank.place(os.environ)
        path = self._folder(place)
        opening = _open(path, self._about(path), place, durable=self.chosen.durable)
        others = selection.opened(opening, self.sinks) if place.rank == 0 else []
        budget = Budget()
        folder = native.Native(opening, budget)
        pump = Pump(folder, others, Notes(), self.chosen.flush_seconds, budget)
        run = Run(
            opening,
            pump,
            world_size=place.world_size,
            strict=strict,
            durable=self.chosen.durable,
            settings=self.settings,
        )
        seconds = self.chosen.machine_seconds if place.first_of_node else 0.0
        learn = self.chosen.facts and place.rank == 0
        run_services.begin(run, pump, folder.events, machine_seconds=seconds, learn=learn)
        how = {"resumed": opening.resumed, "compiled": run.compiled}
        run.event("start", attempt=opening.attempt, pid=os.getpid(), **how)
        return run

    def _folder(self, place: launcher_rank.Place) -> Path:
        """Choose the run folder and see that `resume` fits it. Raises UsageError."""
        if self.resume not in RESUME:
            hint = f"one of {', '.join(RESUME)}"
            raise UsageError(f"resume cannot be {self.resume!r}", hint=hint)
        if not self.chosen.folder and place.world_size > 1 and not self.chosen.name:
            raise UsageError(
                f"{place.world_size} ranks need a folder that all of them know",
                where="rlvitals.start()",
                hint="rlvitals.start(folder), or RLVITALS_RECORDING_FOLDER",
            )
        path = _path(self.chosen)
        there = is_run(path)
        if self.resume == "must" and not there:
            raise UsageError("no run to resume is here", where=str(path))
        if self.resume == "never" and there and place.rank == 0:
            raise UsageError("a run is here already", where=str(path), hint='resume="auto"')
        return path

    def _about(self, path: Path) -> About:
        return About(
            name=self.chosen.name or path.resolve().name,
            project=self.chosen.project,
            group=self.chosen.group,
            framework=self.chosen.framework,
            seed=self.seed,
            settings=redact.written(self.settings),
            tags=self.chosen.tags,
            notes=redact.written_text(self.notes),
            command=tuple(map(redact.homeless, redact.command(sys.argv))),
        )


def _path(chosen: Recording) -> Path:
    return Path(chosen.folder or Path("runs", chosen.project, chosen.name or _name()))


def _open(path: Path, about: About, place: launcher_rank.Place, *, durable: bool) -> Opening:
    """Make or join the run's folder and its attempt."""
    made = RunFolder.create(path, replace(about, id=_known_id(path)))
    made, attempt, _ = made.begin(
        place.rank, launch=place.launch, host=socket.gethostname(), world_size=place.world_size
    )
    return Opening(
        folder=path,
        run_id=made.about.id,
        name=made.about.name,
        project=made.about.project,
        group=made.about.group,
        settings=about.settings,
        attempt=attempt,
        rank=place.rank,
        resumed=attempt > 1,
        options={"durable": durable},
    )


def _known_id(path: Path) -> str:
    """Return the id of a run that was recorded here, by its checkpoints. OSError.

    It is used where `run.json` and its copy are lost: under a new id the checkpoints would be
    those of another run.
    """
    try:
        read_about(path / RUN_FILE)
    except LostRun:
        if not block_files(path):
            return ""
    else:
        return ""
    from rlvitals.checkpoints import manifest  # noqa: PLC0415 - loaded where a run goes on

    return manifest.find_run_id(path)


def _name() -> str:
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else "run"
    return f"{script or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
