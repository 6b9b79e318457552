"""Name the files and folders nearest to a path that does not exist."""

import os
import re
from difflib import SequenceMatcher
from pathlib import Path

from rlvitals.errors import MAX_SUGGESTIONS, UnreadableLog, nearest


def missing_path(path: Path) -> UnreadableLog:
    """Return the error for a path that does not exist, with the nearest names that do."""
    # A URL, of whose slashes a path keeps one, or a name such as `comet:project`.
    trackers = "wandb|mlflow|hf|trackio|comet|neptune|aim|clearml"
    if re.fullmatch(rf"[a-z][a-z0-9+.-]+:/.*|({trackers}):.*", str(path)):
        address = re.sub(r"^([a-z0-9+.-]+):/(?!/)", r"\1://", str(path))
        hint = "wandb:entity/project/run, mlflow:http://host:5000, hf:user/repo, ssh://host/path, "
        hint += "s3://bucket/run, or a folder"
        if re.match(r"((wandb|mlflow|hf):|(ssh|sftp|s3|gs|gcs|az|abfs)://).", address):
            hint = "a folder; rlvitals diagnose and rlvitals export read addresses"
        elif address.startswith("http"):
            hint = "mlflow:URL for an MLflow server; "
            hint += "wandb:entity/project with WANDB_BASE_URL for W&B's"
        return UnreadableLog("no runs are read from this address here", where=address, hint=hint)
    missing = path
    while not os.path.lexists(missing.parent) and missing.parent != missing:
        missing = missing.parent
    folder = missing.parent
    where = str(path) if missing == path else f"{path} (there is no {missing})"
    try:
        names = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        return UnreadableLog(
            "this path does not exist", where=where, hint=f"{folder}: {error.strerror}"
        )
    hint = nearest(missing.name, names) or _list_names(folder, missing.name, names)
    return UnreadableLog("this path does not exist", where=where, hint=hint)


def _list_names(folder: Path, name: str, names: list[str]) -> str:
    """Return what a folder holds, the names most similar to `name` first."""
    location = folder.resolve() if folder == Path() else folder
    if not names:
        return f"another path: the folder {location} is empty"
    names = sorted(names, key=lambda entry: (-SequenceMatcher(None, name, entry).ratio(), entry))
    count = len(names) - MAX_SUGGESTIONS
    suffix = f" and {count:,} more" if count > 0 else ""
    return f"one of {', '.join(names[:MAX_SUGGESTIONS])}{suffix} in {location}"
