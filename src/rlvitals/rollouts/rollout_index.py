"""Index the rollouts of a folder: one streaming pass, kept as a file in the cache directory.

    rollouts = read(Path("outputs"))
    rollouts.read_sample(7).text

The index of a folder is a `.npz` in `$XDG_CACHE_HOME/rlvitals/rollouts`. It holds the size and the
time of change of each file; a file that has others is read again. It may be deleted at any time.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.readers.discovery.walk import Walk
from rlvitals.rollouts.dialects import ROLLOUT_DIALECTS
from rlvitals.rollouts.dialects.rollout_dialect import Dialect, Record
from rlvitals.rollouts.records import first, read_records
from rlvitals.rollouts.rollout_columns import ROW, Builder, Rollouts
from rlvitals.storage.missing_path import missing_path
from rlvitals.storage.safe_files import atomic_write

ROLLOUT_INDEX_VERSION = 3  # of the cache's content; another one is built anew
Files = Mapping[Path, Dialect]


def read(path: Path) -> Rollouts:
    """Index the rollouts of a file or a folder, from the cache where nothing changed.

    Raises UnreadableLog where there are none.
    """
    root = path if path.is_dir() else path.parent
    files = find(path)
    if not files:
        if not path.exists():
            raise missing_path(path)
        raise UnreadableLog(
            "no rollouts are here",
            where=str(path),
            hint="the help of samples lists the frameworks whose rollouts are read",
        )
    return read_files(root, files)


def of_run(folder: Path) -> Rollouts | None:
    """Index the rollouts of a run by the names of its folders; None where there are none.

    Rollouts that lie deeper, or in a folder of another name, are read where they are named.
    """
    try:
        files = dict(_files_in(folder, folder.stat().st_mtime_ns))
        with os.scandir(folder) as entries:
            words = "rollout|completion|trajector|episodes|traces|samples|generations|monitors"
            folders = (e for e in entries if re.search(rf"{words}|iteration_", e.name))
            inner_folders = sorted(Path(entry.path) for entry in folders if entry.is_dir())
        for inner in inner_folders:
            files |= find(inner)
    except OSError:
        return None
    return read_files(folder, files) if files else None


@lru_cache(maxsize=16)  # a folder may hold the logs of many runs
def _files_in(folder: Path, _changed: int) -> dict[Path, Dialect]:
    with os.scandir(folder) as entries:
        files = sorted(Path(entry.path) for entry in entries if not entry.is_dir())
    claimed = {file: claim(file) for file in files}
    return {file: dialect for file, dialect in claimed.items() if dialect is not None}


def read_files(root: Path, files: Files) -> Rollouts:
    """Index files below a folder, from the cache where nothing changed."""
    # Name, dialect, size and time of change of each file.
    facts: list[list[object]] = []
    for path, dialect in files.items():
        with suppress(OSError):
            state = path.stat()
            name = path.relative_to(root).as_posix()
            facts.append([name, dialect.name, state.st_size, state.st_mtime_ns])
    # An index is named by its folder and the names of its files.
    key = json.dumps([str(root.resolve()), [row[0] for row in facts]])
    cache = cache_folder() / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.npz"
    stored = _load(cache, facts, root)
    if stored is not None:
        return stored
    rollouts = scan(root, files)
    with suppress(OSError):  # an index that cannot be kept is built again
        header = {
            "version": ROLLOUT_INDEX_VERSION,
            "facts": facts,
            "parts": list(rollouts.parts),
            "weights": rollouts.weights,
            "texts": rollouts.texts,
            "notes": rollouts.notes,
        }
        parts = np.array([*rollouts.parts.values()]).reshape(-1, len(rollouts))
        cache.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(cache) as file:
            np.savez(file, header=np.array(json.dumps(header)), rows=rollouts.rows, parts=parts)
    return rollouts


def find(path: Path) -> dict[Path, Dialect]:
    """Return the rollout files at a path, each with its dialect, sorted by path."""
    files = Walk(path).files if path.is_dir() else [path]
    claimed = {file: claim(file) for file in files}
    return {file: dialect for file, dialect in claimed.items() if dialect is not None}


def claim(path: Path) -> Dialect | None:
    """Return the dialect that claims a file; None where no dialect does."""
    records: dict[str, Record | None] = {}  # the first of the file, by layout
    for dialect in ROLLOUT_DIALECTS:
        if any(fnmatch(path.name.lower(), pattern) for pattern in dialect.files):
            with suppress(OSError, UnreadableLog):
                if dialect.layout not in records:
                    records[dialect.layout] = first(path, dialect.layout)
                record = records[dialect.layout]
                if record is not None and dialect.claims(path, record):
                    return dialect
    return None


def scan(root: Path, files: Files) -> Rollouts:
    """Read all files once. A file or a record that cannot be read becomes a note."""
    builder = Builder()
    notes: list[str] = []
    for number, (path, dialect) in enumerate(files.items()):
        skipped = 0
        try:
            for location, record in read_records(path, dialect.layout):
                try:
                    samples = dialect.samples(path, record)
                except (KeyError, TypeError, ValueError, AttributeError, IndexError):
                    skipped += 1
                    continue
                for item, sample in enumerate(samples):
                    builder.add(number, location, item, sample)
        except (OSError, UnreadableLog) as error:
            notes.append(f"{path.relative_to(root)}: {error}")
        if skipped:
            notes.append(
                f"{path.relative_to(root)}: {quantity(skipped, 'record')} not of {dialect.name}"
            )
    names = [path.relative_to(root).as_posix() for path in files]
    return builder.build(root, names, [dialect.name for dialect in files.values()], notes)


def cache_folder() -> Path:
    """Return the folder of the indexes."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "rlvitals" / "rollouts"


def _load(cache: Path, facts: Sequence[Sequence[object]], root: Path) -> Rollouts | None:
    """Return the stored index; None where there is none, or a file has changed."""
    try:
        with cache.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            if header["version"] != ROLLOUT_INDEX_VERSION or header["facts"] != facts:
                return None
            rows = stored["rows"]
            if rows.dtype != ROW:
                return None
            names: list[str] = header["parts"]
            return Rollouts(
                root=root,
                files=tuple(row[0] for row in header["facts"]),
                dialects=tuple(row[1] for row in header["facts"]),
                rows=rows,
                parts=dict(zip(names, stored["parts"], strict=True)),
                weights=header["weights"],
                texts=tuple(header["texts"]),
                notes=tuple(header["notes"]),
            )
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
        return None
