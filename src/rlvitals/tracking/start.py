"""Start the recording of a run."""

import os
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import cast

from rlvitals import settings as options
from rlvitals.errors import UsageError, VitalsError
from rlvitals.options import Recording
from rlvitals.startup.fast_dataclass import dataclass
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
from rlvitals.tracking import (
    companion,
    environment,
    launcher_rank,
    media,
    run_services,
    spool,
    tensors,
)
from rlvitals.tracking.null_run import NullRun
from rlvitals.tracking.redaction import NativeSink
from rlvitals.tracking.run import Run
from rlvitals.tracking.settings_mapping import named_values
from rlvitals.tracking.sinks import native, selection
from rlvitals.tracking.sinks.sink import Opening
from rlvitals.tracking.warnings_log import Notes, error_text
from rlvitals.tracking.writer_thread import WriterThread

RESUME_MODES = ("auto", "must", "never")
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
    config: object = None,
    sinks: Sequence[str] | Mapping[str, Mapping[str, object]] | None = None,
    columns: Sequence[str] = (),
    resume: str = "auto",
    tags: Sequence[str] = (),
    notes: str = "",
    durable: bool = False,
    strict: bool | None = None,
    flush_seconds: float | None = None,
    alerts: bool | None = None, stop_on: str | None = None, mirror: str | None = None,
) -> Run:  # fmt: skip
    """Record a run into a folder; a folder with a run gets another attempt of it.

    An argument that is None (`durable`: False, `tags`: empty) takes its value from the environment
    (`RLVITALS_RECORDING_FOLDER`), then from `[recording]` in `rlvitals.toml`. With
    `RLVITALS_MODE=off`, the run that is returned records nothing.

    Parameters
    ----------
    folder : path, optional
        The run folder, or a URL (`s3://bucket/runs/x`): the run is recorded into a folder of this
        machine and uploaded. Default: `runs/<project>/<name>`.
    project : str, optional
        Project of the run.
    name : str, optional
        Name of the run. Default: the name of the folder; if neither is set, the name of the script
        with date, time and four hexadecimal digits.
    group : str, optional
        Group of runs that differ only in their seed. Default: the experiment of Ray, if any.
    framework : str, optional
        Naming scheme of the logged keys if they are ambiguous: "sb3", "trl-grpo", "verl".
    seed : int, optional
        Seed of the run.
    settings : mapping, dataclass or argparse.Namespace, optional
        Hyperparameters; the names of nested ones are joined with "/".
    config : object, optional
        Another name of `settings`: a mapping, pairs, or an object with attributes.
    sinks : sequence of str, or mapping of str to mapping, optional
        Outputs besides the run folder, or the options of each by its name: "tensorboard", "csv",
        "parquet", "jsonl", "console", "wandb", "trackio", "mlflow".
    columns : sequence of str
        Keys that share one CSV or Parquet table.
    resume : {"auto", "must", "never"}
        "auto" begins a run, or another attempt of the run in the folder. "must" requires a run in
        the folder, "never" requires that there is none.
    tags : sequence of str
        Tags for searching runs.
    notes : str
        Description of the run.
    durable : bool
        Write each call before it returns, so that SIGKILL loses no row.
    strict : bool, optional
        Invalid calls raise; otherwise they are noted in the run. Default: True under pytest.
    flush_seconds : float, optional
        Longest time in seconds that rows wait in memory. Default: 0.15.
    alerts : bool, optional
        Send the alerts of your own `alerts.toml`. Default: False.
    stop_on : {"error"}, optional
        Request a stop of the training on a persistent finding of this severity. `alerts` and
        `stop_on` judge the run in a separate process.
    mirror : str, optional
        URL that the run folder is uploaded to while it is recorded.

    Returns
    -------
    Run
        The run. If nothing can be recorded and `strict` is False, a RuntimeWarning is issued, and
        the run ignores every call.

    Raises
    ------
    UsageError
        If an option is invalid, `settings` and `config` are both given, the folder does not have
        what `resume` requires, several processes have neither folder nor name in common, or the
        package of a sink is not installed.
    VitalsError
        If `strict` is True and the folder cannot be written.
    """
    is_strict = "PYTEST_CURRENT_TEST" in os.environ if strict is None else strict
    texts = _texts(strict=is_strict, project=project, name=name, group=group, framework=framework)
    texts |= {"folder": None if folder is None else str(folder), "tags": _tags(tags) or None}
    texts |= {"durable": durable or None, "flush_seconds": flush_seconds, "alerts": alerts}
    options, recording = _load_options(texts | {"stop_on": stop_on, "mirror": mirror})
    run_settings, wrong = _settings(settings, config, strict=is_strict)
    if recording.mode == "off":
        return NullRun(_path(recording), recording.name, run_settings)
    sink_options = selection.select(sinks, options, columns)
    launch = _Launch(recording, sink_options, resume, run_settings, seed, media.text(notes))
    return _begin_or_warn(launch, wrong, strict=is_strict)


def _texts(*, strict: bool, **values: object) -> dict[str, object]:
    """Return the values other than None as text; unchanged where `strict`, to be refused later."""
    items = ((key, value) for key, value in values.items() if value is not None)
    return {key: value if strict else media.text(value) for key, value in items}


def _tags(tags: object) -> tuple[str, ...]:
    """Return tags as text; unreadable ones are left out."""
    try:
        if isinstance(tags, str):
            return (media.text(tags),)
        return tuple(map(media.text, islice(cast("Iterable[object]", tags), 1_000)))
    except Exception:  # noqa: BLE001 - a caller's iterator may raise anything
        return ()


def _settings(
    settings: object, config: object, *, strict: bool
) -> tuple[dict[str, object], list[str]]:
    """Return settings as they are recorded, and the problems with them. Raises UsageError."""
    if config is not None:
        if settings is not None:
            raise UsageError("settings and config are the same", hint="start(settings=...)")
        settings = named_values(config)
    try:
        return ({} if settings is None else media.settings(settings)), []
    except UsageError as error:
        if strict:
            raise
        return {}, [error.problem]


def _begin_or_warn(launch: "_Launch", wrong: Sequence[str], *, strict: bool) -> Run:
    try:
        run = launch.begin(strict)
    except UsageError:
        raise
    except Exception as error:
        reason = error.problem if isinstance(error, VitalsError) else error_text(error)
        file = ""
        if isinstance(error, OSError):
            reason, file = error.strerror or str(error), str(error.filename or "")
        elif strict:
            raise
        problem = f"nothing is recorded: {reason}"
        if strict:
            raise VitalsError(problem, where=file) from error
        location = f" ({file or launch.recording.folder})"
        warnings.warn(f"rlvitals: {problem}{location}", RuntimeWarning, stacklevel=3)
        return NullRun(_path(launch.recording), launch.recording.name, launch.settings, failed=True)
    for text in wrong:
        run.note(text)
    return run


def _load_options(arguments: Mapping[str, object]) -> tuple[options.Settings, Recording]:
    """Combine a call's arguments with the environment, the settings file and the defaults.

    Returns all settings, and those of recording.
    """
    values = {key: value for key, value in arguments.items() if value is not None}
    checked = options.check("recording", values, "rlvitals.start()")
    near = Path(checked.get("folder") or Path.cwd())
    settings = options.load(near, {"recording": checked}, os.environ, records=True)
    return settings, spool.resolve(settings.recording)


@dataclass(frozen=True, slots=True)
class _Launch:
    """The arguments that a run starts with."""

    recording: Recording
    sinks: Mapping[str, Mapping[str, object]]
    resume: str
    settings: Mapping[str, object]
    seed: int | None
    notes: str

    def begin(self, strict: bool) -> Run:  # noqa: FBT001 - what `start` was told
        """Create or join the folder, open the sinks, start the thread."""
        process = launcher_rank.read_place(os.environ)
        path = self._folder(process)
        info = self._run_info(path, strict=strict)
        opening = _open_run(path, info, process, durable=self.recording.durable)
        sinks = selection.open_sinks(opening, self.sinks) if process.rank == 0 else []
        budget = Budget()
        folder = native.Native(opening, budget)
        sink: NativeSink = folder
        if spool.is_spool(path, self.recording.mirror):
            limit = self.recording.spool_gib * 2**30
            sink = cast("NativeSink", spool.BoundedSink(folder, path, limit))
        pump = WriterThread(sink, sinks, Notes(), self.recording.flush_seconds, budget)
        run = Run(
            opening,
            pump,
            world_size=process.world_size,
            strict=strict,
            durable=self.recording.durable,
            settings=self.settings,
            rollout_bytes=self.recording.rollouts_mib * 2**20,
        )
        run.mirror = self.recording.mirror
        seconds = self.recording.machine_seconds if process.first_of_node else 0.0
        learn = self.recording.facts and process.rank == 0
        run_services.begin(run, pump, folder.events, machine_seconds=seconds, learn=learn)
        facts = {"resumed": opening.resumed, "compiled": run.compiled}
        if process.rank == 0:
            companion.begin(run, self.recording)
        if process.first_of_node and self.recording.mirror:
            spool.begin(run, self.recording)
        run.event("start", attempt=opening.attempt, pid=os.getpid(), **facts)
        return run

    def _folder(self, process: launcher_rank.Place) -> Path:
        """Choose the run folder and see that `resume` fits it. Raises UsageError."""
        if self.resume not in RESUME_MODES:
            hint = f"one of {', '.join(RESUME_MODES)}"
            raise UsageError(f"resume cannot be {self.resume!r}", hint=hint)
        if not self.recording.folder and process.world_size > 1 and not self.recording.name:
            raise UsageError(
                f"{process.world_size} ranks need a folder that all of them know",
                where="rlvitals.start()",
                hint="rlvitals.start(folder), or RLVITALS_RECORDING_FOLDER",
            )
        path = _path(self.recording)
        run_exists = is_run(path)
        if self.resume == "must" and not run_exists:
            raise UsageError("no run to resume is here", where=str(path))
        if self.resume == "never" and run_exists and process.rank == 0:
            raise UsageError("a run is here already", where=str(path), hint='resume="auto"')
        return path

    def _run_info(self, path: Path, *, strict: bool) -> About:
        seed = self.seed if self.seed is None or strict else tensors.to_int64(self.seed)
        job = environment.job(os.environ) if self.recording.facts else {}
        return About(
            id=spool.run_id(self.recording.mirror),
            name=self.recording.name or path.resolve().name,
            project=self.recording.project,
            group=self.recording.group or launcher_rank.ray_experiment(),
            framework=self.recording.framework,
            seed=seed,
            settings=redact.clean_mapping(self.settings),
            tags=self.recording.tags,
            notes=redact.clean_text(self.notes),
            command=tuple(map(redact.hide_home, redact.command(sys.argv))),
            more=redact.clean_mapping({"job": job}) if job else {},  # other facts take time
        )


def _path(recording: Recording) -> Path:
    if recording.folder:
        return Path(recording.folder)
    name = recording.name
    if not name:
        script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else "run"
        moment = time.strftime("%Y%m%d-%H%M%S")
        name = f"{script or 'run'}-{moment}-{secrets.token_hex(2)}"
    return Path("runs", recording.project, name)


def _open_run(path: Path, info: About, process: launcher_rank.Place, *, durable: bool) -> Opening:
    """Create or join the run's folder and its attempt."""
    folder = RunFolder.create(path, replace(info, id=_known_id(path) or info.id))
    folder, attempt, _ = folder.begin(
        process.rank,
        launch=process.launch,
        host=socket.gethostname(),
        world_size=process.world_size,
    )
    return Opening(
        folder=path,
        run_id=folder.about.id,
        name=folder.about.name,
        project=folder.about.project,
        group=folder.about.group,
        settings=info.settings,
        attempt=attempt,
        rank=process.rank,
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
    from rlvitals.checkpoints import manifest  # noqa: PLC0415 - loaded for a resumed run

    return manifest.find_run_id(path)
