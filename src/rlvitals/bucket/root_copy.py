"""Copy all runs of a bucket's root; a look reads what its index says has changed.

An index of 10,000 runs has 256 objects. One whose version is that of the last look is not read
again, and of its runs only those are copied again that had not ended or were not complete.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, field
from pathlib import Path
from typing import Any

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket import run_index
from rlvitals.bucket.download import download
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import atomic_write, inside
from rlvitals.tracking.spool import NODE_FOLDER

Show = Callable[[int, int, str], None]


@dataclass(slots=True)
class _Known:
    """What is known of a run: its entry, and whether its copy has all that there will be."""

    digest: str = ""  # hash of the entry
    has_ended: bool = False  # an upload that came later would change the entry
    is_complete: bool = False


@dataclass(slots=True)
class _Shard:
    """An object of the index as it was at the last look."""

    version: str = ""
    runs: dict[str, _Known] = field(default_factory=dict)


def copy_root(store: ObjectStore, folder: Path, show: Show) -> bool:
    """Bring the copies of a root's runs up to date; return whether its index lists any.

    Raises VitalsError, and the errors of the store's back-end.
    """
    shards, versions = _read_state(folder), run_index.list_shards(store)
    for name in shards.keys() - versions.keys():
        del shards[name]
    changed = [name for name, version in versions.items()
               if name not in shards or shards[name].version != version]  # fmt: skip
    for name, entries in run_index.read_shards(store, changed).items():
        state = shards.get(name, _Shard()).runs
        runs = {run: _update_run(entry, state.get(run)) for run, entry in entries.items()}
        shards[name] = _Shard(versions[name], runs)
    # A run's name has to be a safe name of a folder.
    open_runs = {
        run: state
        for shard in shards.values()
        for run, state in shard.runs.items()
        if run not in {"", ".", ".."}
        and not set(run) & set("/\\\x00")
        and not (state.has_ended and state.is_complete and (folder / run).is_dir())
    }
    copy_runs(store, folder, sorted(open_runs), show)
    for run, entry in open_runs.items():
        entry.is_complete = _has_all(folder / run)
    with atomic_write(folder / ".runs.json") as file:
        record = {
            name: (shard.version, {run: astuple(state) for run, state in shard.runs.items()})
            for name, shard in shards.items()
        }
        file.write(json.dumps(record).encode())
    return any(shard.runs for shard in shards.values())


def _update_run(entry: Mapping[str, Any], state: _Known | None) -> _Known:
    digest = hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]
    if state is not None and state.digest == digest:
        return state
    has_ended = entry.get("status") not in {"running", None} and "sequence" in entry
    return _Known(digest, has_ended)


def copy_runs(store: ObjectStore, folder: Path, names: list[str], show: Show) -> None:
    """Bring the copies of some runs below a root up to date, several at once."""

    def copy(name: str) -> None:
        download(store.open_below(name), inside(folder, name))

    with ThreadPoolExecutor(8) as pool:
        jobs = [(name, pool.submit(copy, name)) for name in names]
        try:
            for number, (name, job) in enumerate(jobs):
                show(number, len(names), name)
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    show(len(names), len(names), "")


def _has_all(run: Path) -> bool:
    """Return whether each node had uploaded all of its folder when the copy was made."""
    nodes = [path for path in (run / NODE_FOLDER).glob("*.json")
             if not path.name.endswith(".run.json")]  # fmt: skip
    with suppress(UnreadableLog, OSError):
        return bool(nodes) and all(
            manifests.decode(path.read_bytes(), path.name).closed for path in nodes
        )
    return False


def _read_state(folder: Path) -> dict[str, _Shard]:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        record = json.loads((folder / ".runs.json").read_bytes())
        return {
            name: _Shard(version, {run: _Known(*state) for run, state in runs.items()})
            for name, (version, runs) in record.items()
        }
    return {}


def find_folders(names: Iterable[str]) -> list[str]:
    """Return the folders of the runs whose manifests are among the names of a listing."""
    return sorted({
        folder
        for name in names
        for folder, separator, object_name in [name.rpartition(f"/{manifests.MANIFESTS}")]
        if separator and manifests.MANIFEST_NAME.fullmatch(f"{manifests.MANIFESTS}{object_name}")
    })  # fmt: skip
