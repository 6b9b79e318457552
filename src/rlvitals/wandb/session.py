"""The module-level functions of `wandb`: they act on the run that `init()` began."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking.null_run import NullRun
from rlvitals.tracking.run import current
from rlvitals.tracking.settings_mapping import named_values
from rlvitals.tracking.start import start
from rlvitals.wandb.media import Artifact
from rlvitals.wandb.recorded import Metric, Run
from rlvitals.wandb.util import generate_id

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run as Recording

# Without meaning where nothing is sent, and without loss: not worth a note.
SILENT_OPTIONS = {
    "allow_val_change", "anonymous", "config_exclude_keys", "config_include_keys", "force",
    "group", "job_type", "mode", "reinit", "resume", "save_code", "settings", "sync_tensorboard",
}  # fmt: skip
DISABLED_MODES = {"disabled", "dryrun-disabled"}


@dataclass(slots=True)
class State:
    """The run of this process, if there is one, and what its next run is recorded into."""

    run: Run | None = None
    follows_tensorboard: bool = False  # `wandb.tensorboard.patch` was called
    open: "Callable[[str, dict[str, Any]], Recording | None] | None" = None  # id, `start`'s options


state = State()


def init(
    entity: str | None = None,
    project: str | None = None,
    dir: str | Path | None = None,
    id: str | None = None,
    name: str | None = None,
    notes: str | None = None,
    tags: Sequence[str] | None = None,
    config: Any = None,
    **options: Any,
) -> Run:
    """Begin a run in `<dir>/runs/`; return the current one if it is not finished.

    An argument that is not given takes its value from W&B's environment variable: `WANDB_PROJECT`,
    `WANDB_NAME`, `WANDB_RUN_ID`, `WANDB_RUN_GROUP`, `WANDB_TAGS`, `WANDB_NOTES`, `WANDB_DIR`,
    `WANDB_MODE`, `WANDB_RESUME`.

    Parameters
    ----------
    entity : str, optional
        Becomes an attribute of the run.
    project : str, optional
        Project of the run.
    dir : path, optional
        Folder that contains `runs/`. Default: the working folder.
    id : str, optional
        Id of the run: a run of this id in `runs/` gets another attempt. Default: a random one.
    name : str, optional
        Name of the run. Default: its id.
    notes : str, optional
        Description of the run.
    tags : sequence of str, optional
        Tags for searching runs.
    config : mapping or object with attributes, optional
        Settings of the run.
    **options : object
        W&B's other options. `mode="disabled"` records nothing; `resume`, `reinit`, `group`,
        `job_type`, `config_include_keys`, `config_exclude_keys` and `sync_tensorboard` have W&B's
        meaning. An option without effect is noted in the run.

    Returns
    -------
    Run
        A run with W&B's names, not that of `rlvitals.start()`.

    Raises
    ------
    UsageError
        If `resume` is "must" and there is no run of this id, or "never" and there is one.
    """
    previous = open_run()
    if previous is not None:
        if options.get("reinit") in {None, False, "default", "return_previous"}:
            previous.config.update(config)
            return previous
        previous.finish()
    arguments = {"entity": entity, "project": project, "id": id, "name": name, "notes": notes}
    texts = {key: value or _environment(key) for key, value in arguments.items()}
    texts["group"] = options.get("group") or os.environ.get("WANDB_RUN_GROUP", "")
    texts["job_type"] = options.get("job_type") or _environment("job_type")
    values = named_values(config)
    settings = _select_config(values, options) if isinstance(values, Mapping) else {}
    facts = {**texts, "tags": tuple(tags or filter(None, _environment("tags").split(",")))}
    state.run = run = _begin(Path(dir or _environment("dir") or "."), facts, settings, options)
    run.config.update(settings if isinstance(values, Mapping) else config)
    if options.get("sync_tensorboard") or state.follows_tensorboard:
        from rlvitals.wandb import tensorboard  # noqa: PLC0415 - only for scripts that ask for it

        tensorboard.follow(run)
    unknown = {key for key, value in options.items() if key not in SILENT_OPTIONS and value}
    run.ignore(*(f"init({key}=...)" for key in sorted(unknown)))
    return run


def _environment(name: str) -> str:
    suffix = {"id": "RUN_ID"}.get(name, name.upper())
    return os.environ.get(f"WANDB_{suffix}", "")


def _select_config(config: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    only, without = options.get("config_include_keys"), options.get("config_exclude_keys") or ()
    return {k: v for k, v in config.items() if (only is None or k in only) and k not in without}


def _begin(
    root: Path, facts: Mapping[str, Any], config: Mapping[str, Any], options: Mapping[str, Any]
) -> Run:
    mode = str(options.get("mode") or _setting(options, "mode") or _environment("mode"))
    run_id = facts["id"] or generate_id()
    name = facts["name"] or run_id
    run_facts = {
        **facts,
        "id": run_id,
        "name": name,
        "disabled": mode in DISABLED_MODES,
        "resumed": False,
    }
    runs = root / "runs"
    requested_id = facts["id"]
    if requested_id:
        safe = re.sub(r"[^\w.-]+", "_", requested_id)
        folder = next(iter(sorted(runs.glob(f"*-{safe}"))), runs / safe)
    else:
        plain = re.sub(r"[^\w.-]+", "_", name)
        folder = runs / (run_id if name == run_id else f"{plain}-{run_id}")
    if mode in DISABLED_MODES:
        return Run(NullRun(folder, name, config), run_facts)
    run_facts["resumed"] = folder.exists()
    resume = str(options.get("resume") or _environment("resume"))
    arguments: dict[str, Any] = {
        "project": facts["project"] or None,
        "name": name,
        "group": facts["group"] or None,
        "seed": config["seed"] if isinstance(config.get("seed"), int) else None,
        "settings": {"job_type": facts["job_type"]} if facts["job_type"] else None,
        "tags": facts["tags"],
        "notes": facts["notes"],
    }
    recording = state.open(run_id, arguments) if state.open is not None else None
    if recording is None:
        mode = resume if resume in {"must", "never"} else "auto"
        recording = start(folder, resume=mode, **arguments)
    return Run(recording, run_facts)


def _setting(options: Mapping[str, Any], name: str) -> Any:
    """Return one of `init(settings=...)`: a mapping, or a `Settings`."""
    settings = options.get("settings")
    return settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)


def open_run() -> Run | None:
    """Return the run that has begun and not ended, by `finish()` or as a `with` block."""
    return None if state.run is None or state.run.finished else state.run


def current_run() -> Run:
    """Return the run; UsageError before `init()`, as W&B's own functions raise it."""
    run = open_run()
    if run is None:
        raise UsageError("no run has begun", hint="call wandb.init() or rlvitals.start() first")
    return run


def log(
    data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **more: Any
) -> None:
    """Record a row of the run of `init()`, or of the last one of `rlvitals.start()`.

    Parameters
    ----------
    data : mapping
        The values by name.
    step : int, optional
        Step of the row. Default: the next one.
    commit : bool, optional
        As of W&B: False keeps the row open for further values. Without effect on a run of
        `rlvitals.start()`.
    **more : object
        Other options of W&B: they have no effect, which is noted in the run.

    Raises
    ------
    UsageError
        If no run has begun.
    """
    if open_run() is None and (recording := current()) is not None:
        recording.log(data, step=step)
    else:
        current_run().log(data, step, commit, **more)


def define_metric(name: str, step_metric: str | Metric | None = None, **options: Any) -> Metric:
    """Set the step metric of a metric: see `Run.define_metric`."""
    return current_run().define_metric(name, step_metric, **options)


def alert(title: str, text: str = "", *args: Any, **kwargs: Any) -> None:
    """Record an alert: see `Run.alert`."""
    current_run().alert(title, text, *args, **kwargs)


def watch(*args: Any, **kwargs: Any) -> None:
    """Watch a model: see `Run.watch`."""
    current_run().watch(*args, **kwargs)


def unwatch(models: object = None) -> None:
    """Stop watching."""
    current_run().unwatch(models)


def save(*args: Any, **kwargs: Any) -> list[str]:
    """Record the names of files: see `Run.save`."""
    return current_run().save(*args, **kwargs)


def log_artifact(*args: Any, **kwargs: Any) -> Artifact:
    """Record an artifact by its names: see `Run.log_artifact`."""
    return current_run().log_artifact(*args, **kwargs)


def log_model(*args: Any, **kwargs: Any) -> Artifact:
    """Record the name of a model's file: see `Run.log_model`."""
    return current_run().log_model(*args, **kwargs)


def mark_preempting() -> None:
    """Record that the machine is about to be taken away."""
    current_run().mark_preempting()


def finish(exit_code: int | None = None, quiet: object = None) -> None:
    """End the run, if there is one.

    Parameters
    ----------
    exit_code : int, optional
        Exit code of the script: the run has failed if it is not 0.
    quiet : object
        Without effect.
    """
    run, state.run = open_run(), None
    if run is not None:
        run.finish(exit_code, quiet)
    elif (recording := current()) is not None:
        recording.finish("failed" if exit_code else "finished", exit_code=exit_code)


def login(*_: object, **__: object) -> bool:
    """Return True: nobody needs to be logged in."""
    return True


def setup(*_: object, **__: object) -> None:
    """Do nothing: there is no service to start."""


def teardown(exit_code: int | None = None) -> None:
    """End the run, if there is one."""
    finish(exit_code)


def require(*_: object, **__: object) -> None:
    """Do nothing: W&B's experiments are its own."""


def termlog(string: str = "", *_: object, **__: object) -> None:
    """Write a line for the person at the terminal."""
    sys.stderr.write(f"{string}\n")


termwarn = termlog
termerror = termlog
