"""Begin to record a run."""

import os
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvitals.errors import UsageError, VitalsError, nearest
from rlvitals.recording import content, ranks
from rlvitals.recording.notes import Notes
from rlvitals.recording.pump import Pump
from rlvitals.recording.run import Run
from rlvitals.recording.sinks import SINKS, find, native
from rlvitals.recording.sinks.sink import Opening, Writing
from rlvitals.store.run_folder import RUN_FILE, About, RunFolder

RESUME = ("auto", "must", "never")
Where = str | os.PathLike[str]


def start(  # noqa: PLR0913 - what a run is, each by its name
    folder: Where | None = None,
    *,
    project: str | None = None,
    name: str | None = None,
    group: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    sinks: Sequence[str] | Mapping[str, Mapping[str, object]] | None = None,
    resume: str = "auto",
    tags: Sequence[str] = (),
    notes: str = "",
    durable: bool = False,
    strict: bool | None = None,
    flush_seconds: float = 1.0,
) -> Run:
    """Record a run into a folder; a folder that holds one already gets another attempt of it.

    `sinks` names what else to write, or maps each name to its options. `durable` writes each call
    before it returns, so that nothing logged is lost when the process is killed; else it is what
    was logged in the last `flush_seconds`. `strict` makes wrong calls raise: the default under
    pytest. Raises UsageError for arguments that make no sense.
    """
    if os.environ.get("RLVITALS_MODE", "").lower() == "off":
        raise NotImplementedError
    place = ranks.place(os.environ)
    path = Path(folder) if folder is not None else Path("runs") / (name or _name())
    about = About(
        name=name or path.name,
        project=project or "",
        group=group or "",
        seed=seed,
        settings=content.settings(settings or {}),
        tags=tuple(tags),
        notes=notes,
        command=tuple(sys.argv),
    )
    found = RunFolder.create(path, about)
    found, attempt, _ = found.begin(
        place.rank, launch=place.launch, host=socket.gethostname(), world_size=place.world_size
    )
    opening = Opening(
        path, found.about.id, found.about.name, found.about.project, found.about.group,
        about.settings, attempt, place.rank, attempt > 1, {"durable": durable},
    )  # fmt: skip
    counted = Notes()
    pump = Pump(native.SINK.open(opening), [], counted, flush_seconds)
    checked = "PYTEST_CURRENT_TEST" in os.environ if strict is None else strict
    run = Run(opening, pump, counted, world_size=place.world_size, strict=checked, durable=durable)
    run.event("start", attempt=attempt, pid=os.getpid())
    return run


def _name() -> str:
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else "run"
    return f"{script or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
