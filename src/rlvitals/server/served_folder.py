"""A served folder: its index, and the runs of other tools in it.

A run's key is its path below the folder, or begins with the folder's label where several are
served.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.server import run_files
from rlvitals.server.fleet_line import ROOT_KEY
from rlvitals.server.run_files import Entry
from rlvitals.storage import find_run_folders
from rlvitals.storage.downsample import Points
from rlvitals.storage.index import Index
from rlvitals.storage.run_query import Indexed

if TYPE_CHECKING:  # loaded behind the first page
    from rlvitals.following.folder_tree import FolderTree
    from rlvitals.readers.discovery.sources import Run


class ServedFolder:
    """A folder with runs. Its methods take and return the keys of runs."""

    def __init__(self, root: Path, label: str = "") -> None:
        """Open the index of a folder. `label`: what keys begin with; none for the only folder."""
        self.root, self.label = root, label
        self._index = Index(root, run_files.index_file(root), threads=True)
        self._tree: FolderTree | None = None
        self._foreign_runs: Sequence[Run] = ()

    def close(self) -> None:
        """Close the index."""
        self._index.__exit__(None, None, None)

    def reopen_in_memory(self) -> None:
        """Begin another index: the file of the old one was deleted, or its disk is full."""
        self._index = Index(self.root, run_files.IN_MEMORY, threads=True)

    def key(self, path: str) -> str:
        """Return the key of the run at a path below the folder."""
        if not self.label:
            return path
        return self.label if path == ROOT_KEY else f"{self.label}/{path}"

    def path(self, key: str) -> str:
        """Return the path of a run below the folder."""
        return key if not self.label else key[len(self.label) + 1 :] or ROOT_KEY

    def contains(self, key: str) -> bool:
        """Return whether a key is of a run of this folder."""
        return not self.label or f"{key}/".startswith(f"{self.label}/")

    def entry(self, key: str) -> Entry:
        """Return the entry of a run folder."""
        return Entry(key, self.root, self.root / self.path(key), None)

    def list_folders(self) -> Iterator[str]:
        """Yield the keys of the run folders, before any is read."""
        for folder in find_run_folders.iter_run_folders(self.root):
            yield self.key(folder.relative_to(self.root).as_posix())

    def refresh(self) -> None:
        """Read the run folders that changed. Raises OSError where the folder cannot be listed."""
        self._index.refresh()

    def search(self, query: str = "") -> list[Indexed]:
        """Return the indexed runs that fit a query; their paths are keys. Raises UsageError."""
        runs = self._index.search(query)
        return [replace(run, path=self.key(run.path)) for run in runs] if self.label else [*runs]

    def pending(self, judge: str) -> set[str]:
        """Return the indexed runs without a verdict of `judge` on their current content."""
        return {self.key(path) for path in self._index.unjudged(judge)}

    def summaries(self, judge: str) -> dict[str, str]:
        """Return the lines that `keep` stored for a judge."""
        return {self.key(path): text for path, text in self._index.summaries(judge).items()}

    def keep(self, key: str, verdict: str, judge: str, line: str) -> None:
        """Store a run's verdict and its line for the next start."""
        path = self.path(key)
        self._index.note({path: verdict}, judge, {path: line})

    def points(
        self, key: str, metric: str, width: int, first: int | None, last: int | None
    ) -> Points:
        """Return what a plot shows of a logged metric. Raises KeyError for an unknown one."""
        return self._index.points(self.path(key), metric, width, first, last)

    def find_foreign_runs(self, native: set[Path], time_s: float) -> dict[str, Entry]:
        """Return the runs of other tools outside the folders `native`, by key.

        Folders are looked through again where they changed. `time_s`: seconds since the epoch.
        """
        if self._tree is None:
            from rlvitals.following.folder_tree import FolderTree  # noqa: PLC0415 - behind the page

            self._tree = FolderTree(self.root, time.monotonic)
        if self._tree.may_differ(time_s):
            self._foreign_runs = self._tree.find(time_s)
        entries = (Entry(self.key(run.name), self.root, run.root, run)
                   for run in self._foreign_runs)  # fmt: skip
        return {
            entry.key: entry
            for entry in entries
            if not native & {entry.folder, *entry.folder.parents}
        }


def from_roots(roots: Sequence[Path]) -> tuple[ServedFolder, ...]:
    """Open the folders; one inside another is left out, and several get distinct labels."""
    paths: dict[Path, Path] = {}  # the first root at each real path
    for root in roots:
        paths.setdefault(Path(os.path.realpath(root)), root)
    outer = {path: root for path, root in paths.items() if not paths.keys() & {*path.parents}}
    if len(outer) == 1:
        return tuple(ServedFolder(root) for root in outer.values())
    depth = 1
    while len(labels := {"/".join(path.parts[1:][-depth:]): path for path in outer}) < len(outer):
        depth += 1
    return tuple(ServedFolder(outer[path], label) for label, path in labels.items())
