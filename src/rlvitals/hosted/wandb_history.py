"""Fetch the history of Weights & Biases runs as JSON lines, with their settings.

`entity/project/run` is one run, `entity/project` all of a project, `entity/project/groups/NAME`
those of a group. Rows after the last one at hand are asked for; a finished run that is complete
is not asked for again.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlvitals.errors import UnreadableLog, UsageError, VitalsError, harmless
from rlvitals.hosted.remote_files import Show
from rlvitals.storage import redact
from rlvitals.storage.safe_files import atomic_write, open_append

TIMEOUT_SECONDS = 30


def fetch(location: str, folder: Path, since_s: float | None, show: Show) -> None:
    """Bring the copy of some runs up to date. Raises UsageError, VitalsError."""
    project, run_id, group = _split(location)
    try:
        import wandb  # noqa: PLC0415 - optional
    except ImportError:
        raise VitalsError("W&B's runs need its client", hint="pip install wandb") from None
    try:
        api = wandb.Api(timeout=TIMEOUT_SECONDS)
        filters: dict[str, Any] = {"group": group} if group else {}
        if since_s is not None:
            start = datetime.fromtimestamp(since_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            filters["heartbeatAt"] = {"$gte": start}
        runs: list[Any] = (
            [api.run(location)] if run_id else list(api.runs(project, filters=filters))
        )
        for number, run in enumerate(runs):
            show(number, len(runs), run.name)
            name = re.sub(r"[^\w.=-]+", "_", f"{run.name}-{run.id}")[-120:].strip(".")
            _update(run, folder / name)
        show(len(runs), len(runs), "")
    except Exception as error:  # its client raises errors of its own, requests' and urllib3's
        text = redact.text(harmless(str(error), 300)) or type(error).__name__
        hint = "wandb login, or WANDB_API_KEY; WANDB_BASE_URL names a server of one's own"
        raise VitalsError(f"W&B says: {text}", where=f"wandb:{location}", hint=hint) from error
    if not runs:
        raise UnreadableLog("no run is there", where=f"wandb:{location}", hint="another --since")


def _split(location: str) -> tuple[str, str, str]:
    """Return (entity/project, run's id, group); either of the last two is empty.

    Raises UsageError for what names no run.
    """
    entity, project, name = [*location.split("/", 2), "", ""][:3]
    if name.startswith("groups/"):
        run_id, group = "", name.removeprefix("groups/")
    else:
        run_id, group = name, ""
    # Pages of a project, as pasted.
    is_page = run_id in {"groups", "sweeps", "reports", "artifacts", "jobs"}
    if not (entity and project) or is_page or "/" in run_id or location.endswith("/"):
        raise UsageError(
            f"{location!r} names no run of W&B",
            hint="wandb:entity/project, wandb:entity/project/run, wandb:entity/project/groups/NAME",
        )
    return f"{entity}/{project}", run_id, group


def _update(run: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / ".state"
    stamp = f"{run.state} {run.lastHistoryStep}"
    if run.state != "running" and state.is_file() and state.read_text() == stamp:
        return
    settings = {key: value for key, value in run.config.items() if not key.startswith("_")}
    gpus = (run.metadata or {}).get("gpu_count")  # a file of the run, or None
    if isinstance(gpus, int) and gpus > 0:
        settings["rlvitals/gpus"] = gpus
    with atomic_write(folder / "config.json") as file:
        file.write(json.dumps(settings, default=str).encode())
    history = folder / "history.jsonl"
    last_step = _last_step(history)
    last = -1 if last_step is None else last_step
    with open(open_append(history), "ab") as file:  # noqa: PTH123 - a descriptor
        # The client repeats rows where a page has both exported rows and live ones.
        for row in run.scan_history(min_step=last + 1, page_size=1000):
            step = int(row.get("_step", last + 1))
            if step > last:
                last = step
                cells = {key: value for key, value in row.items() if value is not None}
                file.write(json.dumps(cells, default=str).encode() + b"\n")
    with atomic_write(state) as file:
        file.write(stamp.encode())


def _last_step(path: Path) -> int | None:
    """Return the step of the last complete row; an incomplete one is cut off."""
    if not path.is_file():
        return None
    data = path.read_bytes()
    complete = data[: data.rfind(b"\n") + 1]
    if len(complete) < len(data):
        with atomic_write(path) as file:
            file.write(complete)
    lines = complete.splitlines()
    return int(json.loads(lines[-1]).get("_step", len(lines) - 1)) if lines else None
