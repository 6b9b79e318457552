"""Parse the addresses of hosted runs: `wandb:entity/project/run`, `mlflow:http://...`, URLs."""

import re
from enum import StrEnum
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

from rlvitals.startup.fast_dataclass import dataclass


class Source(StrEnum):
    """What hosts runs."""

    WANDB = "wandb"
    MLFLOW = "mlflow"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Address:
    """Where hosted runs lie."""

    kind: Source
    # "entity/project[/run]", "entity/project/groups/NAME", the server's URL, or the URL of files
    location: str


def parse(path: str | PathLike[str]) -> Address | None:
    """Return the address that a command-line path denotes; None for a local path."""
    text = fspath(path)
    kind, _, location = text.partition(":")
    # A path collapses the two slashes of a URL: one is enough here.
    if (
        match := re.fullmatch(r"https?:/+(?:\w+\.)?wandb\.ai/+([^?#]+)(?:[?#].*)?", text)
    ) is not None:
        segments = _segments(
            match[1], {"runs", "workspace", "overview", "table", "charts", "files", "logs"}
        )
        count = 4 if segments[2:3] == ["groups"] else 3
        return Address(Source.WANDB, unquote("/".join(segments[:count])))
    if (match := re.fullmatch(r"https?:/+huggingface\.co/+([^?#]+)(?:[?#].*)?", text)) is not None:
        return Address(
            Source.FILES,
            f"hf://{'/'.join(_segments(match[1], {'tree', 'blob', 'resolve', 'main', 'raw'}))}",
        )
    if (match := re.fullmatch(r"(https?):/+(.+/#/experiments/\d.*)", text)) is not None:
        return Address(Source.MLFLOW, f"{match[1]}://{match[2]}")
    if (match := re.fullmatch(r"(ssh|sftp|s3|gs|gcs|az|abfs|hf|memory):/+(.+)", text)) is not None:
        scheme = {"ssh": "sftp"}.get(match[1], match[1])
        return Address(Source.FILES, f"{scheme}://{match[2]}")
    server = re.sub(r"^(\w+):/+", r"\1://", location)
    if re.match(r"[\w.-]+:\d", server):  # host:5000
        server = f"http://{server}"
    shorts = {
        "wandb": Address(Source.WANDB, location.strip("/")),
        "mlflow": Address(Source.MLFLOW, server),
        "hf": Address(Source.FILES, f"hf://{location.strip('/')}"),
    }
    return shorts.get(kind) if location else None


def to_path(text: str | PathLike[str]) -> Path:
    """Return a path; of a `file://` URL, such as `run.url`, the path that it names."""
    path = fspath(text)
    match = re.match(r"file:(//(localhost)?)?(?=/)", path)
    return Path(path) if match is None else Path(unquote(path[match.end() :]))


def _segments(path: str, page_words: set[str]) -> list[str]:
    """Return the segments of a page's path that name something."""
    return [segment for segment in path.split("/") if segment and segment not in page_words]
