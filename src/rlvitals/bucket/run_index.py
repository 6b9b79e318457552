"""The index of the runs in a bucket: a few objects that list each run with its last values.

    <root>/.rlvitals/<shard>.json     {"runs": {name: entry}}, the shard by the name's hash

Each run's uploading process rewrites its shard by If-Match. A store without that has an object for
each run instead, in the same folder.
"""

import hashlib
import json
import random
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket.node_manifest import Manifest
from rlvitals.bucket.object_store import Entry, ObjectStore
from rlvitals.bucket.store_dialects import Conflict
from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.storage import events, typed
from rlvitals.storage.blocks import BlockCursor, scan
from rlvitals.storage.index import Index
from rlvitals.storage.run_folder import (
    EVENTS_FILE,
    RUN_FILE,
    block_files,
    parse_fields,
    read_about,
)
from rlvitals.storage.run_query import Indexed
from rlvitals.storage.setting_cells import apply_changes
from rlvitals.storage.typed import Fields

INDEX_FOLDER = ".rlvitals/"
SHARD_DIGITS = 2  # of a hexadecimal hash: 256 shards, of 10,000 runs 40 in each
MAX_LISTED_RUNS = 1000  # of a root without an index: three requests each, one after another
MAX_VALUES = 50  # last values in an entry: 2 kB of a shard that is rewritten each minute


class RunEntry:
    """The entry of a run that is recorded into a folder: each update reads the new rows alone."""

    def __init__(self, url: str, folder: Path) -> None:
        """Set the run's URL and its folder on this machine."""
        self._root, _, self._name = url.rstrip("/").rpartition("/")
        self._folder = folder
        self._cursors: dict[Path, BlockCursor] = {}
        self._values: dict[str, float] = {}
        self._step: int | None = None
        self._time: float | None = None

    def update(self, *, has_ended: bool, sequence: int = 0) -> None:
        """Write the entry. Raises the errors of the store's back-end.

        `sequence`: of the node's manifest, so that the entry changes with each upload.
        """
        if self._root.endswith(":/") or "://" not in self._root:
            return  # a run that is a whole bucket has no root
        files = block_files(self._folder)
        rank = min((file.rank for file in files), default=0)
        for file in files:
            if file.rank != rank or not file.path.exists():
                continue
            new_content = scan(file.path, self._cursors.get(file.path))
            self._cursors[file.path] = new_content.cursor
            for rows in new_content.scalars:
                self._values.update(zip(rows.keys, map(float, rows.values[:, -1]), strict=True))
                self._step, self._time = int(rows.steps[-1]), float(rows.times[-1])
        store = ObjectStore(self._root)
        entry = self._entry(has_ended=has_ended, sequence=sequence)
        digest = hashlib.sha256(self._name.encode()).hexdigest()
        shard = digest[:SHARD_DIGITS]
        if not store.has_replace:
            store.write(f"{INDEX_FOLDER}{shard}-{digest[:32]}.json", _encode({self._name: entry}))
            return
        for attempt in range(20):  # other processes may rewrite the shard meanwhile
            try:
                _merge(store, f"{INDEX_FOLDER}{shard}.json", self._name, entry)
            except Conflict:
                clock.sleep(random.uniform(0.0, 0.05 * 2 ** min(attempt, 6)))  # noqa: S311 - a pause
            else:
                return
        raise VitalsError("the bucket's index changes too fast to be written", where=store.name)

    def _entry(self, *, has_ended: bool, sequence: int) -> dict[str, object]:
        run_info = apply_changes(read_about(self._folder / RUN_FILE), _read_events(self._folder))
        status = read_status(self._folder) if has_ended else "running"
        # JSON has no NaN: a value that is none is left out.
        values = {key: value for key, value in self._values.items() if isfinite(value)}
        return {
            "id": run_info.id, "name": run_info.name, "project": run_info.project,
            "group": run_info.group, "seed": run_info.seed, "notes": run_info.notes,
            "tags": list(run_info.tags), "created": run_info.created,
            "attempts": len(run_info.attempts), "settings": dict(run_info.settings),
            "status": status, "step": self._step, "time": self._time, "sequence": sequence,
            "more": {"job": run_info.more["job"]} if "job" in run_info.more else {},
            "values": dict(list(values.items())[:MAX_VALUES]),
        }  # fmt: skip


def _merge(store: ObjectStore, shard: str, name: str, entry: Mapping[str, object]) -> None:
    versions = list_shards(store)
    if shard not in versions:
        store.create(shard, _encode({name: entry}))
        return
    store.replace(shard, _encode({**_decode(store.read(shard)), name: entry}), versions[shard])


def read(store: ObjectStore) -> dict[str, dict[str, Any]]:
    """Return the entries of a root's runs by name; empty where it has no index."""
    entries: dict[str, dict[str, Any]] = {}
    for runs in read_shards(store, list(list_shards(store))).values():
        entries.update(runs)
    return entries


def list_shards(store: ObjectStore) -> dict[str, str]:
    """Return the versions of the index's objects by name; empty where there is no index."""
    return {entry.name: entry.version for entry in store.list(INDEX_FOLDER)}


def read_shards(store: ObjectStore, names: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the entries of some objects of the index, by object and run."""
    return {name: _decode(data) for name, data in store.read_many(names).items()}


def read_manifests(store: ObjectStore, limit: int) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the entries of a root without an index, and how many names it has below it.

    Of the first `limit` names, those with manifests are runs. It costs a listing, a manifest and a
    part of a segment for each. Steps, values and how a run ended are not in a manifest. Raises the
    errors of the store's back-end.
    """
    names = [name for name in store.list_folders() if f"{name}/" != INDEX_FOLDER]
    newest_manifests: dict[str, tuple[str, float | None]] = {}  # by run: name and time
    for name in names[:limit]:
        listed = {f"{name}/{each.name}": each for each in _list_manifests(store, name)}
        newest = manifests.newest({each.name: each.version for each in listed.values()})
        if newest:
            path = f"{name}/{newest[min(newest)]}"
            newest_manifests[name] = path, listed[path].modified
    contents = store.read_many([path for path, _ in newest_manifests.values()])
    entries: dict[str, dict[str, Any]] = {}
    for name, (path, time_s) in newest_manifests.items():
        if path not in contents:
            continue
        state: dict[str, Any] = {"status": "", "step": None, "time": time_s, "values": {}}
        try:
            manifest = manifests.decode(contents[path], path)
        except UnreadableLog:
            entries[name] = {"name": name, **state, "status": "unreadable"}
            continue
        run_fields = _read_run_file(store, name, manifest)
        entries[name] = {**run_fields, "attempts": len(manifest.attempts), **state}
    return entries, len(names)


def _list_manifests(store: ObjectStore, name: str) -> list[Entry]:
    prefix = f"{name}/"
    listed = store.list(f"{prefix}{manifests.MANIFESTS}")
    return [replace(entry, name=entry.name.removeprefix(prefix)) for entry in listed]


def _read_run_file(store: ObjectStore, name: str, manifest: Manifest) -> dict[str, Any]:
    """Return what an entry has of a run's `run.json`; of a damaged one its name alone."""
    piece = manifest.rewritten.get(RUN_FILE)
    if piece is None:
        return {"name": name}
    try:
        record = typed.load(store.read(f"{name}/{piece.segment}", piece.offset, piece.size))
    except (ValueError, FileNotFoundError):  # merged meanwhile
        return {"name": name}
    members = record if isinstance(record, dict) else {}
    fields = (
        "id", "name", "project", "group", "seed", "notes", "tags", "created", "settings", "more",
    )  # fmt: skip
    return {"name": name, **{key: members[key] for key in fields if key in members}}


def search(
    entries: Mapping[str, Mapping[str, Any]], terms: str, sort: str, limit: int | None
) -> tuple[Indexed, ...]:
    """Return the runs that fit every word, as `RunQuery.search`. Raises UsageError."""
    with Index(Path(), Path(":memory:")) as index:
        for name, entry in entries.items():
            record = Fields(entry, name)
            state = (
                record.take("attempts", typed.count, 0),
                record.take("status", typed.text, ""),
                record.take("step", typed.integer, None),
                record.take("time", typed.moment, None),
            )
            info = parse_fields(Fields({**entry, "attempts": []}, name))
            index.add_entry(name, info, state)
        return index.search(terms, sort, limit)


def _encode(runs: Mapping[str, Mapping[str, object]]) -> bytes:
    return json.dumps({"format": 1, "runs": runs}).encode()


def _decode(data: bytes) -> dict[str, dict[str, Any]]:
    try:
        record = typed.load(data)
    except ValueError:
        return {}
    runs = record.get("runs") if isinstance(record, dict) else None
    if not isinstance(runs, dict):
        return {}
    return {str(name): entry for name, entry in runs.items() if isinstance(entry, dict)}


def read_status(folder: Path) -> str:
    """Return how the newest attempt ended by its events; "stopped" where none says."""
    statuses: Iterator[object] = (
        event.facts.get("status")
        for event in reversed(_read_events(folder))
        if event.kind == "finish"
    )
    return str(next(statuses, None) or "stopped")


def _read_events(folder: Path) -> tuple[events.Event, ...]:
    try:
        return events.read(folder / EVENTS_FILE).events
    except (OSError, UnreadableLog):
        return ()
