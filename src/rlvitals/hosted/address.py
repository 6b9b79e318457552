"""Parse the addresses of hosted runs: `wandb:entity/project/run`, `mlflow:http://...`, URLs."""

import re
from dataclasses import dataclass
from os import PathLike, fspath

WANDB, MLFLOW, FILES = "wandb", "mlflow", "files"
# A path collapses the two slashes of a URL: one is enough here.
WANDB_PAGE = re.compile(r"https?:/+(?:\w+\.)?wandb\.ai/+([^?#]+)(?:[?#].*)?")
HUB_PAGE = re.compile(r"https?:/+huggingface\.co/+([^?#]+)(?:[?#].*)?")
FILE_URL = re.compile(r"(ssh|sftp|s3|gs|gcs|az|abfs|hf|memory):/+(.+)")
WANDB_PAGE_WORDS = frozenset({"runs", "workspace", "overview", "table", "charts", "files", "logs"})
HUB_PAGE_WORDS = frozenset({"tree", "blob", "resolve", "main", "raw"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where hosted runs lie: `kind` is WANDB, MLFLOW or FILES."""

    kind: str
    location: str  # "entity/project[/run]", the server's URL, or the URL of files


def parse(path: str | PathLike[str]) -> Address | None:
    """Return the address that a path of the command line stands for; None for a local path."""
    text = fspath(path)
    kind, _, rest = text.partition(":")
    if (match := WANDB_PAGE.fullmatch(text)) is not None:
        return Address(WANDB, "/".join(_segments(match[1], WANDB_PAGE_WORDS)[:3]))
    if (match := HUB_PAGE.fullmatch(text)) is not None:
        return Address(FILES, f"hf://{'/'.join(_segments(match[1], HUB_PAGE_WORDS))}")
    if (match := FILE_URL.fullmatch(text)) is not None:
        scheme = {"ssh": "sftp"}.get(match[1], match[1])
        return Address(FILES, f"{scheme}://{match[2]}")
    shorts = {
        "wandb": Address(WANDB, rest.strip("/")),
        "mlflow": Address(MLFLOW, re.sub(r"^(\w+):/+", r"\1://", rest)),
        "hf": Address(FILES, f"hf://{rest.strip('/')}"),
    }
    return shorts.get(kind) if rest else None


def _segments(path: str, page_words: frozenset[str]) -> list[str]:
    """Return the segments of a page's path that name something."""
    return [part for part in path.split("/") if part and part not in page_words]
