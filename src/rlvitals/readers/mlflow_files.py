"""Read MLflow's file store: `mlruns/<experiment>/<run>/` with a file per metric.

`meta.yaml` names the run; `metrics/train/loss` holds a line "milliseconds value step" for each
point of `train/loss`, `params/lr` the text of a setting, `tags/` the same. Source:
`mlflow/store/tracking/file_store.py` (`_log_run_metric`, `_get_metric_from_line`), 3.17.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers import mlflow_values
from rlvitals.readers.formats import plain_yaml
from rlvitals.readers.formats.columns import Columns, parse_number, to_step
from rlvitals.readers.formats.lines import REPLACED_NOTE, Lines, Position, open_log
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log

MAX_METRIC_NOTES = 4  # metric files with a note of their own


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position in the file of each metric."""

    places: Mapping[str, Position] = field(default_factory=dict)


def claims(path: Path, head: bytes) -> bool:
    """Claim the `meta.yaml` of a run that was not deleted.

    One that is done and logged no point is the parent of others, or an evaluation.
    """
    # An experiment's file has none.
    if (
        path.name != "meta.yaml"
        or not re.search(rb"^run_(?:id|uuid):", head, re.MULTILINE)
        or re.search(rb"^lifecycle_stage: *['\"]?deleted", head, re.MULTILINE)
    ):
        return False
    return (
        not re.search(rb"^status: *['\"]?(?:3|FINISHED)\b", head, re.MULTILINE)
        or next(_files(path.parent / "metrics"), None) is not None
    )


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the lines after a cursor of every metric's file. Raises UnreadableLog."""
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    columns, places, notes, replaced = _metrics(path.parent / "metrics", resume)
    if replaced:
        columns, places, notes, _ = _metrics(path.parent / "metrics", _Cursor())
        notes = [REPLACED_NOTE, *notes]
    meta, meta_notes = _meta(path)
    params, tags = (_texts(path.parent / kind) for kind in ("params", "tags"))
    ending, ending_notes = mlflow_values.ending(meta.get("status"))
    log = Log(
        source="mlflow-files",
        series=columns.series(),
        settings=mlflow_values.settings(params, tags),
        notes=(*notes, *meta_notes, *ending_notes),
        where=str(path),
        ending=ending,
    )
    return log, _Cursor(places)


def run_name(path: Path) -> str:
    """Return "experiment/run" as a run's `meta.yaml` and its experiment's name them."""
    meta, _ = _meta(path)
    experiment: dict[str, object] = {}
    above = path.parent.parent / "meta.yaml"
    if above.is_file():
        experiment, _ = _meta(above)
    tags = path.parent / "tags" / "mlflow.runName"  # where it stood before 1.30
    name = meta.get("run_name") or (_text(tags) if tags.is_file() else "") or path.parent.name
    return f"{experiment.get('name') or path.parent.parent.name}/{name}"


def _meta(path: Path) -> tuple[dict[str, object], list[str]]:
    try:
        item = plain_yaml.parse(_text(path))
    except (plain_yaml.NotPlainError, UnreadableLog) as error:
        return {}, [f"{path.name} cannot be read, only the metrics: {error}".splitlines()[0]]
    return (item, []) if isinstance(item, dict) else ({}, [f"{path.name} says nothing"])


def _text(path: Path) -> str:
    with open_log(path) as file:
        return file.read(65536).decode(errors="replace")


def _texts(folder: Path) -> dict[str, str]:
    """Return what each file under a folder holds; what cannot be read is left out."""
    texts = {}
    for key, file in _files(folder):
        try:
            texts[key] = _text(file)
        except UnreadableLog:  # gone, or no regular file
            continue
    return texts


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file under a folder with its name from there, sorted."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            count += 1
            if count > 20_000:  # files of one kind in a run
                return
            file = Path(root, name)
            yield file.relative_to(folder).as_posix(), file


def _metrics(folder: Path, resume: _Cursor) -> tuple[Columns, dict[str, Position], list[str], bool]:
    """Return the new points, where each file ends, notes, and whether a file was replaced."""
    columns, places, notes, replaced = Columns(), dict(resume.places), list[str](), False
    for key, path in _files(folder):
        refused = Refusals("line")
        try:
            with open_log(path) as file:
                lines = Lines(file, resume.places.get(key))
                for line in lines:
                    _add(columns, key, line.text, line.number, refused)
                places[key] = lines.position()
        except UnreadableLog as error:
            notes.append(f"metrics/{key}: {error.problem}")
            continue
        replaced = replaced or lines.replaced
        notes += [f"metrics/{key}: {note}" for note in (*lines.notes(), *refused.notes())]
    if len(notes) > MAX_METRIC_NOTES:
        more = f"and {len(notes) - MAX_METRIC_NOTES} more such notes"
        notes = [*notes[:MAX_METRIC_NOTES], more]
    return columns, places, notes, replaced


def _add(columns: Columns, key: str, text: str, number: int, refused: Refusals) -> None:
    """Add a line's point: "milliseconds value step", what follows names a data set."""
    fields = text.split()
    if not fields:
        return
    try:
        time = parse_number(fields[0])
        value = parse_number(fields[1])
        step = to_step(parse_number(fields[2])) if fields[2:] else 0
    except (ValueError, IndexError):
        time = value = step = None
    if time is None or value is None or step is None:
        refused.add(number, f"is not `milliseconds value step`: {text[:40]!r}")
    else:
        columns.add(key, step, value, time / 1000.0)


def _growing_files(path: Path) -> Iterator[Path]:
    """Yield the files of the metrics, and the folders in which a setting or a tag may come up."""
    yield from (file for _, file in _files(path.parent / "metrics"))
    yield from (path.parent / kind for kind in ("params", "tags"))


def home(path: Path) -> Path:
    """Return the run's folder: `meta.yaml` lies in it."""
    return path.parent


READER = Reader(
    name="mlflow-files",
    title="MLflow run folder",
    looks_for="meta.yaml of an MLflow run",
    example="mlruns/0/80ade0145d874eadb130c188f3148933/meta.yaml",
    files=("meta.yaml",),
    claims=claims,
    read=read,
    home=home,
    run_name=run_name,
    sums_up=True,
    grows=_growing_files,
)
