"""Begin to record a run."""

import os
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvitals import settings as options
from rlvitals.errors import UsageError, VitalsError
from rlvitals.recording import beside, content, ranks, redact
from rlvitals.recording.notes import Notes
from rlvitals.recording.off import Off
from rlvitals.recording.pump import Pump
from rlvitals.recording.run import Run
from rlvitals.recording.sinks import choosing, native
from rlvitals.recording.sinks.sink import Opening
from rlvitals.settings import Recording
from rlvitals.store.run_folder import RUN_FILE, About, RunFolder

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
    raise: the default under pytest. Raises UsageError for arguments that make no sense. A
    folder that cannot be written is a warning, and nothing is recorded; where `strict`, a
    VitalsError.
    """
    said: dict[str, object] = {"project": project, "name": name, "group": group}
    said |= {"framework": framework}
    said |= {"folder": None if folder is None else str(folder), "tags": tuple(tags) or None}
    said |= {"durable": durable or None, "flush_seconds": flush_seconds}
    every = _chosen(said)
    chosen = every.recording
    if chosen.mode == "off":
        return Off(_path(chosen), chosen.name, content.settings(settings or {}))
    own, kept = choosing.chosen(sinks, every, columns), content.settings(settings or {})
    checked = "PYTEST_CURRENT_TEST" in os.environ if strict is None else strict
    return _begun(_Start(chosen, own, resume, kept, seed, notes), strict=checked)


def _begun(wanted: "_Start", *, strict: bool) -> Run:
    try:
        return wanted.begin(strict)
    except OSError as error:
        problem = f"nothing is recorded: {error.strerror or error}"
        if strict:
            raise VitalsError(problem, where=str(error.filename or "")) from error
        where = f" ({error.filename})" if error.filename else ""
        warnings.warn(f"rlvitals: {problem}{where}", RuntimeWarning, stacklevel=3)
        return Off(_path(wanted.chosen), wanted.chosen.name, wanted.settings)


def _chosen(said: Mapping[str, object]) -> options.Settings:
    """Put a call's arguments over the environment, the settings file and the defaults."""
    given = {key: value for key, value in said.items() if value is not None}
    checked = options.check("recording", given, "rlvitals.start()")
    near = Path(checked.get("folder") or Path.cwd())
    return options.load(near, {"recording": checked}, os.environ)


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
        place = ranks.place(os.environ)
        path = self._folder(place)
        opening = _open(path, self._about(path), place, durable=self.chosen.durable)
        others = choosing.opened(opening, self.sinks) if place.rank == 0 else []
        pump = Pump(native.Native(opening), others, Notes(), self.chosen.flush_seconds)
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
        beside.begin(run, pump, machine_seconds=seconds, learn=learn)
        how = {"resumed": opening.resumed, "compiled": run.compiled}
        run.event("start", attempt=opening.attempt, pid=os.getpid(), **how)
        return run

    def _folder(self, place: ranks.Place) -> Path:
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
        there = (path / RUN_FILE).exists()
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
            notes=redact.homeless(redact.text(self.notes)),
            command=tuple(map(redact.homeless, redact.command(sys.argv))),
        )


def _path(chosen: Recording) -> Path:
    return Path(chosen.folder or Path("runs", chosen.project, chosen.name or _name()))


def _open(path: Path, about: About, place: ranks.Place, *, durable: bool) -> Opening:
    """Make or join the run's folder and its attempt."""
    made = RunFolder.create(path, about)
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


def _name() -> str:
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else "run"
    return f"{script or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
