"""The runs below some roots, judged when they are asked for and again when their files change."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvitals import settings
from rlvitals.diagnosis import batch, load
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.errors import UnreadableLog, UsageError, nearest
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.settings import Settings
from rlvitals.storage.missing_path import missing_path
from rlvitals.views import runs_table

Signature = tuple[tuple[str, int, int], ...]  # path, time of the last write in ns, bytes


class Workspace:
    """The runs below the roots, by name. Nothing outside of the roots is read."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """Fix the roots, links resolved. Raises UsageError for one that is not there."""
        for root in roots:
            if not root.exists():
                error = missing_path(root)
                raise UsageError(error.problem, where=error.where, hint=error.hint)
        self.roots = tuple(root.resolve() for root in roots)
        self._settings = {root: settings.load(root, {}, os.environ) for root in self.roots}
        self._results: dict[str, tuple[Signature, Diagnosis | UnreadableLog]] = {}

    def runs(self) -> dict[str, tuple[Run, Settings]]:
        """Return every run and its settings by name; of several roots, "root/name"."""
        by_name: dict[str, tuple[Run, Settings]] = {}
        for root in self.roots:
            try:
                runs = sources.find(root)
            except UnreadableLog:
                continue
            for run in runs:
                if not all(self._is_inside(file) for file, _ in run.files):
                    continue  # a link that leads out of the roots
                name = run.name if len(self.roots) == 1 else f"{root.name}/{run.name}"
                by_name[name or root.name] = (run, self._settings[root])
        return by_name

    def find(self, name: str) -> tuple[Run, Settings]:
        """Return a run by its name. Raises UsageError that names similar runs."""
        runs = self.runs()
        if name not in runs:
            hint = nearest(name, runs) or f"one of {', '.join(sorted(runs)[:5])}"
            raise UsageError(f"no run is called {name!r}", hint=hint if runs else "list_runs")
        return runs[name]

    def diagnosis(self, name: str) -> Diagnosis:
        """Return a run's diagnosis. Raises UsageError, UnreadableLog."""
        result = self.judge({name: self.find(name)})[name]
        if isinstance(result, UnreadableLog):
            raise result
        return result

    def judge(
        self, runs: Mapping[str, tuple[Run, Settings]]
    ) -> dict[str, Diagnosis | UnreadableLog]:
        """Judge runs by name; one whose files have not changed keeps its diagnosis."""
        results: dict[str, Diagnosis | UnreadableLog] = {}
        for name, (run, options) in runs.items():
            signature = signature_of(run)
            cached = self._results.get(name)
            if cached is None or cached[0] != signature:
                cached = (signature, batch.judge((run, options)))
                self._results[name] = cached
            results[name] = cached[1]
        return results

    def worst_first(self) -> list[tuple[str, Diagnosis | UnreadableLog]]:
        """Judge every run; return (name, result) in the order of `diagnose`."""
        runs = self.runs()
        answers = self.judge(runs)
        names = {(run.root, run.name): name for name, (run, _) in runs.items()}
        once = batch.list_once([run for run, _ in runs.values()], [*answers.values()])
        listed = [(names[run.root, run.name], result) for run, result in once]
        ordered = runs_table.worst_first(listed)
        return [(n, r) for n, r in ordered if isinstance(r, Diagnosis | UnreadableLog)]

    def facts(self, name: str) -> dict[str, object]:
        """Return what was recorded of a run's code, packages and machine."""
        return load.facts(self.find(name)[0])

    def root_of(self, name: str) -> Path:
        """Return a run's folder. Raises UsageError where a link in it leads out of the roots."""
        root = self.find(name)[0].root
        if not all(self._is_inside(path) for path in root.rglob("*") if path.is_symlink()):
            raise UsageError("a link in this run leads out of the roots", where=name)
        return root

    def rollouts(self, name: str) -> Rollouts:
        """Return the saved rollouts of a run. Raises UsageError where there are none."""
        self.root_of(name)  # refuses a link that leads out
        rollouts = load.rollouts(self.find(name)[0])
        if rollouts is None:
            raise UsageError("no rollouts are saved in this run", where=name)
        return rollouts

    def _is_inside(self, path: Path) -> bool:
        real = path.resolve()
        return any(real == root or real.is_relative_to(root) for root in self.roots)


def signature_of(run: Run) -> Signature:
    """Return what changes when a run's files do."""
    entries = []
    for path, _ in run.files:
        try:
            status = path.stat()
        except OSError:
            continue
        entries.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(entries)
