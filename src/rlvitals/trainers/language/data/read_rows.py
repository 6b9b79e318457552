"""Read a dataset by its name: a folder, a file, or a dataset of Hugging Face."""

from __future__ import annotations

import csv
import json
import logging
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals import UsageError
from rlvitals.lab import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import datasets

BUILT_IN_DATASETS = ("charts", "sums")
DATASET_ALIASES = {
    "evochart": "sanchit97/chart-rvr-grpo-train"
}  # what the guide's command trains on
FILE_SUFFIXES = {".jsonl", ".json", ".csv", ".parquet"}
TRAIN_SPLIT = "train"  # the name of the default split


def read(name: str, split: str) -> datasets.Dataset:
    """Return all rows of a dataset, images undecoded.

    Raises UsageError for one that is not there, cannot be read, or has no such split.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return _folder(path, split)
    if path.is_file():
        _check_no_splits(split, path)
        return _file(path)
    check(name)
    import datasets

    try:
        with _quiet_hub():
            return datasets.load_dataset(DATASET_ALIASES.get(name, name), split=split)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"{name} is neither here nor to be had from Hugging Face: {_first(error)}",
            where="data.dataset_name",
            hint=f"a folder, a JSONL or Parquet file, {' or '.join(BUILT_IN_DATASETS)}",
        ) from error


def is_remote(name: str) -> bool:
    """Return True if a dataset is neither built in nor a local path."""
    return name not in BUILT_IN_DATASETS and not Path(name).expanduser().exists()


def check(name: str) -> None:
    """Raise UsageError for what is neither local nor a possible name of Hugging Face.

    A bare name that is spelt almost like one of ours is a slip: of the hub's own, which have an
    owner now, hardly one is.
    """
    if not is_remote(name) or name in DATASET_ALIASES:
        return
    if Path(name).suffix in FILE_SUFFIXES or name.startswith((".", "/", "~")):
        raise UsageError("there is no such file or folder", where=name)
    if "/" not in name and (suggestion := nearest(name, (*BUILT_IN_DATASETS, *DATASET_ALIASES))):
        raise UsageError(
            f"nothing here is called {name}",
            where="data.dataset_name",
            hint=f"{suggestion} One of Hugging Face is OWNER/NAME",
        )


def _folder(path: Path, split: str) -> datasets.Dataset:
    # The files that datasets' save_to_disk writes.
    if any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        import datasets

        try:
            dataset = datasets.load_from_disk(str(path))
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"it cannot be read: {_first(error)}", where=str(path)) from error
        if not isinstance(dataset, datasets.DatasetDict):
            _check_no_splits(split, path)
            return dataset
        if split not in dataset:
            raise UsageError(
                f"there is no split {split}", where=str(path), hint=f"one of {', '.join(dataset)}"
            )
        return dataset[split]
    metadata, inner = _metadata(path), path / split
    if inner.is_dir() and (_metadata(inner) or not metadata):
        return _folder(inner, TRAIN_SPLIT)
    if metadata:
        _check_no_splits(split, metadata)
        return _file(metadata)
    return _files(path, split)


def _metadata(path: Path) -> Path | None:
    return next(
        (
            path / name
            for name in ("metadata.jsonl", "metadata.csv", "metadata.parquet")
            if (path / name).is_file()
        ),
        None,
    )


def _files(path: Path, split: str) -> datasets.Dataset:
    files = sorted(path.rglob("*.parquet")) or sorted(path.glob("*.jsonl"))
    split_files = [file for file in files if _is_of_split(split, file, path)]
    if not split_files and split == TRAIN_SPLIT:
        split_files = [
            file
            for file in files
            if not any(_is_of_split(name, file, path) for name in ("test", "valid", "dev", "eval"))
        ]
    if files and not split_files:
        names = ", ".join(str(file.relative_to(path)) for file in files[:5])
        raise UsageError(
            f"no file is of the split {split}", where=str(path), hint=f"it has {names}"
        )
    if not split_files:
        raise UsageError(
            "the folder holds no data",
            where=str(path),
            hint="metadata.jsonl beside images, Parquet or JSONL files, or what save_to_disk wrote",
        )
    from datasets import concatenate_datasets

    tables = [_file(file) for file in split_files]
    try:
        return concatenate_datasets(tables)
    except (ValueError, TypeError) as error:  # columns of another type
        raise UsageError(f"the files do not go together: {error}", where=str(path)) from error


def _is_of_split(split: str, file: Path, folder: Path) -> bool:
    """Return True if a file, or the folder it is in, is named for a split."""
    return any(component.startswith(split) for component in file.relative_to(folder).parts)


def _check_no_splits(split: str, path: Path) -> None:
    if split != TRAIN_SPLIT:
        raise UsageError(
            f"it has no splits, and so no {split}",
            where=str(path),
            hint="leave out --dataset-split",
        )


def _file(path: Path) -> datasets.Dataset:
    import datasets

    if path.suffix == ".parquet":
        import datasets
        import pyarrow as pa
        from pyarrow import parquet

        try:
            table = parquet.read_table(path, memory_map=True)
            dataset = datasets.Dataset(table)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"it cannot be read: {_first(error)}", where=str(path)) from error
        if dataset.features.get("image") == datasets.Value("string"):
            paths = [str(path.parent / file) if file else file for file in dataset["image"]]
            dataset = dataset.remove_columns("image").add_column("image", paths)
        return dataset
    read = {".jsonl": _json_lines, ".json": _json, ".csv": _csv}.get(path.suffix)
    if read is None:
        raise UsageError(
            "no file of this kind is read", where=str(path), hint=", ".join(FILE_SUFFIXES)
        )
    rows = [_row(row, path.parent) for row in read(path)]
    if not rows:
        raise UsageError("there are no rows", where=str(path))
    every = {name: None for row in rows for name in row}
    try:
        return datasets.Dataset.from_list([{**every, **row} for row in rows])
    except (TypeError, ValueError) as error:  # pyarrow's errors are among them
        raise UsageError(
            f"a column holds values of several kinds: {_first(error)}", where=str(path)
        ) from error


def _row(row: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a row with texts where they are due, and its image's path from here."""
    record = dict(row)
    if "file_name" in record:
        record.setdefault("image", record.pop("file_name"))
    if isinstance(image := record.get("image"), str) and image:
        record["image"] = str(folder / image)
    for name in ("query", "label", "answer", "chart_type", "reasoning"):
        if name in record and record[name] is not None:
            record[name] = str(record[name])
    if isinstance(record.get("table"), dict | list):
        record["table"] = json.dumps(record["table"], ensure_ascii=False)
    return record


def _json_lines(path: Path) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        yield _mapping(_parse_json(line, f"{path}, line {number}"), f"{path}, line {number}")


def _json(path: Path) -> Iterable[dict[str, Any]]:
    rows = _parse_json(_text(path), str(path))
    if not isinstance(rows, list):
        raise UsageError("it holds no list of rows", where=str(path))
    return [_mapping(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)]


def _csv(path: Path) -> Iterable[dict[str, Any]]:
    rows = csv.DictReader(StringIO(_text(path), newline=""), strict=True)
    try:
        yield from rows
    except csv.Error as error:
        raise UsageError(f"it is no CSV: {error}", where=f"{path}, line {rows.line_num}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"it cannot be read: {error}", where=str(path)) from error


def _parse_json(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"it is not JSON: {error}", where=source) from error


def _mapping(row: Any, source: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UsageError(f"not a row: {str(row)[:40]!r}", where=source)
    return row


@contextmanager
def _quiet_hub() -> Iterator[None]:
    """Silence the hub library's retry warnings; the last error is raised."""
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _first(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
