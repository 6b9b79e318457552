"""Keep one line for each run of the served folders, and judge the runs, the worst first."""

import contextlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.server import fleet_line, judging_code, run_files, served_folder
from rlvitals.server.channel import Channel
from rlvitals.server.fleet_line import LAMPS, Summary
from rlvitals.server.live_runs import SingleReader
from rlvitals.server.mutes import Mutes
from rlvitals.server.run_files import Entry
from rlvitals.server.served_folder import ServedFolder
from rlvitals.settings import Settings
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import search_terms
from rlvitals.storage.downsample import Points
from rlvitals.storage.run_query import Indexed, RunQuery
from rlvitals.tracking import clock

if TYPE_CHECKING:  # loaded behind the first page
    from rlvitals.diagnosis.duplicates import Identity
    from rlvitals.diagnosis.engine import Diagnosis


@dataclass(slots=True)
class _Judgement:
    """When a run was judged, in epoch seconds, and the state of its files then."""

    time: float
    mark: str


class Fleet:
    """The lines of all runs. `start` reads the index; a thread keeps the lines current."""

    def __init__(
        self, roots: Sequence[Path], settings: Settings, store: RunQuery | None = None
    ) -> None:
        """Open the index of each folder. Raises OSError where one cannot be listed.

        `store`: an index of the first folder that another program fills; its runs and judgements
        are shown as they are, and no folder is read but that of a run that is opened.
        """
        self.folders, self.settings = served_folder.from_roots(roots), settings
        self._run_query = store
        self._stored: dict[str, tuple[Indexed, str]] = {}  # what the store said of each run
        self.channel = Channel()
        self.open_keys: Callable[[], frozenset[str]] = frozenset  # runs that are judged elsewhere
        self.on_judged: Callable[[str, Diagnosis], None] = lambda *_: None
        self.rows: dict[str, Summary] = {}
        self.lamps = Counter(dict.fromkeys(LAMPS, 0))  # number of runs by lamp
        self.differing: tuple[str, ...] = ()  # settings in which the runs differ
        self.entries: dict[str, Entry] = {}
        index_file = run_files.index_file(*(folder.root for folder in self.folders))
        self.mutes = Mutes(
            None if index_file == run_files.IN_MEMORY else index_file.with_suffix(".mutes")
        )
        self._judge_id = f"serve {judging_code.version()} {run_files.digest(repr(settings))}"
        self._marks: dict[str, str] = {}  # state of each run's files
        self._judgements: dict[str, _Judgement] = {}
        self._identities: dict[str, Identity] = {}  # of the judged runs
        self._traits: dict[str, frozenset[str]] = {}  # of the judged and the stored runs
        self._copies: dict[str, str] = {}  # runs without a line, and the run each is a copy of
        self._lock = threading.RLock()  # of the lines
        self.reader = SingleReader()
        self._index_lock = threading.Lock()  # one transaction at a time; while folders are read
        self._stop = threading.Event()
        self._has_rows = threading.Event()  # or the folders were looked through without any
        self._is_listed = threading.Event()  # once the folders were looked through
        self._thread = threading.Thread(target=self._keep_current, name="fleet", daemon=True)

    def start(self) -> None:
        """Show what the index knows, then begin to look and to judge in a thread."""
        if self._run_query is not None:
            self._refresh_from_store(self._run_query)
            self._thread.start()
            return
        for folder in self.folders:
            self._show(folder, folder.search())
            for key, text in folder.summaries(self._judge_id).items():
                if key in self.rows:
                    with contextlib.suppress(KeyError, TypeError, ValueError):
                        line, self._traits[key] = fleet_line.from_json(text)
                        self._put(replace(line, key=key))
        self._update_differing()
        if self.rows:
            self._has_rows.set()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and close the indexes."""
        self._stop.set()
        self._thread.join()
        for folder in self.folders:
            folder.close()

    def note(self, key: str, diagnosis: "Diagnosis") -> None:
        """Store the diagnosis of a run that was judged elsewhere."""
        with self._lock:
            line = self._store(key, diagnosis) if key in self.rows else None
        with contextlib.suppress(sqlite3.Error):  # the next look opens another index
            self._keep(line)

    def wait(self, seconds: float) -> None:
        """Wait for the first lines, for so long at most."""
        self._has_rows.wait(seconds)

    def entry(self, key: str) -> Entry:
        """Return where a run lies. Raises KeyError, after a first look at the folders."""
        if key not in self.entries:
            self._is_listed.wait(20.0)  # seconds
        return self.entries[key]

    def folder(self, key: str) -> ServedFolder:
        """Return the served folder of a run."""
        return next(folder for folder in self.folders if folder.contains(key))

    def search(self, query: str) -> list[Summary]:
        """Return the lines that fit every word of a query, the worst first. Raises UsageError."""
        with self._lock:
            rows = list(self.rows.values())
        if query.strip():
            with self._index_lock:
                keys = {
                    run.path
                    for index in ((self._run_query,) if self._run_query else self.folders)
                    for run in index.search(query)
                }
            terms = search_terms.parse(query)
            rows = [row for row in rows if row.key in keys or fleet_line.fits(row, terms)]
        return sorted(rows, key=fleet_line.badness)

    def points(
        self, key: str, metric: str, width: int, steps: tuple[int | None, int | None]
    ) -> Points:
        """Return what a plot shows of a logged metric. Raises KeyError for an unknown one."""
        self.entry(key)
        with self._index_lock:
            return (self._run_query or self.folder(key)).points(key, metric, width, *steps)

    def sum_training_time(self) -> dict[str, float]:
        """Return the training time of broken runs and of all judged runs, in seconds."""
        with self._lock:
            times = [(row.lamp, row.trained) for row in self.rows.values() if row.trained]
        broken = sum(seconds for name, seconds in times if name == "bad")
        return {"bad": broken, "all": sum(seconds for _, seconds in times)}

    def _keep_current(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            start = time.monotonic()
            try:
                self._look()
            except sqlite3.Error:  # the index's file was deleted, or its disk is full
                with self._index_lock:
                    for folder in self.folders:
                        folder.reopen_in_memory()
            self._has_rows.set()
            self._is_listed.set()
            # A second, or nine times what a look took.
            until = time.monotonic() + max(1.0, 9.0 * (time.monotonic() - start))
            with contextlib.suppress(sqlite3.Error):  # the next look opens another index
                self._judge_until(until)
            self._update_differing()
            pause = max(until - time.monotonic(), 0.0)

    def _look(self) -> None:
        if self._run_query is not None:
            self._refresh_from_store(self._run_query)
            return
        if not self._is_listed.is_set():
            self._list_folders()
        for folder in self.folders:
            with contextlib.suppress(OSError):  # its runs stay; the next look may succeed
                self._refresh_folder(folder)

    def _judge_until(self, until: float) -> None:
        """Judge runs, the worst guesses first, until a monotonic time."""
        for key in self._pending() if self._run_query is None else ():
            if self._stop.is_set() or time.monotonic() >= until:
                return
            self._judge(key)

    def _list_folders(self) -> None:
        """Add a line for each run folder that the index does not know, before any is read."""
        for folder in self.folders:
            for key in folder.list_folders():
                with self._lock:
                    if key not in self.rows:
                        self.entries[key] = entry = folder.entry(key)
                        self._put(Summary(key, entry.folder.name))
        if self.rows:
            self._has_rows.set()

    def _refresh_folder(self, folder: ServedFolder) -> None:
        with self._index_lock:
            folder.refresh()
            indexed = folder.search()
        native = {folder.entry(run.path).folder for run in indexed}
        foreign = folder.find_foreign_runs(native, clock.now())
        self._show(folder, indexed)
        with self._lock:
            for key, entry in foreign.items():
                self.entries[key] = entry
                self._marks[key] = run_files.fingerprint(entry)
                if key not in self.rows and key not in self._copies:
                    self._put(Summary(key, entry.run.name if entry.run else key))
            for key in self.rows.keys() - foreign.keys() - {run.path for run in indexed}:
                if folder.contains(key):
                    self._remove(key)

    def _refresh_from_store(self, store: RunQuery) -> None:
        """Show what the store knows of its runs; it is asked again where it cannot answer."""
        from rlvitals.server import run_summary  # noqa: PLC0415 - it loads what judges

        with self._index_lock:
            try:
                indexed, texts = store.search(), store.summaries()
            except UsageError:
                return
        with self._lock:
            for item in indexed:
                state = item, texts.get(item.path, "")
                if self._stored.get(item.path) != state:
                    self._stored[item.path] = state
                    self.entries[item.path] = self.folders[0].entry(item.path)
                    self._put(run_summary.from_store(*state))
            for key in self.rows.keys() - {item.path for item in indexed}:
                self._remove(key)
                self._stored.pop(key, None)
        self._has_rows.set()
        self._is_listed.set()

    def _show(self, folder: ServedFolder, indexed: Sequence[Indexed]) -> None:
        """Add the runs of a folder's index, and update the steps of those that are shown."""
        with self._lock:
            for item in indexed:
                if (key := item.path) in self._copies:
                    continue
                self.entries[key] = folder.entry(key)
                self._marks[key] = f"{item.status} {item.step} {item.time}"
                row = self.rows.get(key)
                if row is None or (row.verdict == "pending" and row.time is None):
                    self._put(replace(fleet_line.from_index(item), key=key))
                elif item.step is not None and item.time != row.time:
                    steps = max(item.step, row.step or 0) if row.total else item.step
                    self._put(replace(row, step=steps, time=item.time))

    def _pending(self) -> list[str]:
        """Return the runs to judge: unjudged ones first, failed and running ones before others."""
        time_s = clock.now()
        with self._index_lock:
            unjudged = {key for folder in self.folders for key in folder.pending(self._judge_id)}
        with self._lock:
            foreign = {key for key, entry in self.entries.items() if entry.run is not None}
            # A run that an earlier server judged may be the same training as a foreign one.
            stored = self.rows.keys() - self._identities.keys() if foreign else set()
            traits = {trait for key in foreign for trait in self._traits.get(key, ())}
            alike = {key for key in stored if traits & self._traits.get(key, traits)}
            rows = self.rows  # a copy has none
            keys = (unjudged | foreign | alike) & rows.keys() - self.open_keys()
            order = {"failed": 0, "killed": 0, "running": 1}
            return sorted(
                (key for key in keys if self._is_stale(key, time_s)),
                key=lambda key: (
                    rows[key].verdict != "pending",
                    order.get(rows[key].state, 2),
                    -(rows[key].time or 0.0),
                ),
            )

    def _is_stale(self, key: str, time_s: float) -> bool:
        judgement = self._judgements.get(key)
        if judgement is None:
            return True
        age = time_s - judgement.time
        if judgement.mark != self._marks.get(key):
            return age >= 10.0  # seconds
        # A silent run that may be running is judged every five minutes.
        return self.rows[key].state in {"running", "unknown"} and age >= 300.0

    def _judge(self, key: str) -> None:
        with self.reader:
            self._keep(None if key in self.open_keys() else self._judge_files(key))

    def _judge_files(self, key: str) -> Summary | None:
        from rlvitals.diagnosis import batch  # noqa: PLC0415 - behind the first page

        row, mark = self.rows[key], self._marks.get(key, "")
        try:
            run = run_files.read_run(self.entries[key])
            answer = batch.judge((run, self.mutes.apply(key, self.settings)))
        except UnreadableLog as error:
            answer = error
        with self._lock:
            if not isinstance(answer, UnreadableLog):
                return self._store(key, answer)
            self._judgements[key] = _Judgement(clock.now(), mark)
            self._put(fleet_line.from_error(row, answer.problem))
        return None

    def _store(self, key: str, diagnosis: "Diagnosis") -> Summary:
        """Show a diagnosis and return its line."""
        from rlvitals.server import run_summary  # noqa: PLC0415 - behind the first page

        row, mark, previous = self.rows[key], self._marks.get(key, ""), self._judgements.get(key)
        line = run_summary.from_diagnosis(row, diagnosis, self.entries[key].folder, clock.now())
        self._judgements[key] = _Judgement(clock.now(), mark)
        self._put(line)
        from rlvitals.diagnosis import duplicates  # noqa: PLC0415 - behind the first page

        trackers = run_files.trackers(self.entries[key])
        self._identities[key] = duplicates.identify(
            trackers, diagnosis.trace, grew=previous is not None and previous.mark != mark
        )
        self._traits[key] = frozenset(duplicates.traits(self._identities[key]))
        for copy, original in duplicates.find(self._identities).items():
            if copy in self.rows:
                self._copies[copy] = original
                self._remove_line(copy)
        if key not in self._copies:
            self.on_judged(key, diagnosis)
        return line

    def _keep(self, line: Summary | None) -> None:
        """Keep the line of a run folder in the index for the next start."""
        entry = None if line is None else self.entries.get(line.key)
        if line is None or entry is None or entry.run is not None:
            return
        with self._index_lock:
            text = fleet_line.to_json(line, self._traits.get(line.key, ()))
            self.folder(line.key).keep(line.key, line.verdict, self._judge_id, text)

    def _put(self, row: Summary) -> None:
        old = self.rows.get(row.key)
        if old != row:
            self.lamps[row.lamp] += 1
            if old is not None:
                self.lamps[old.lamp] -= 1
            self.rows[row.key] = row
            if self.channel.has_readers:  # a page that is made later contains the row
                self.channel.publish("row", {"row": asdict(row), "lamps": self.lamps})

    def _remove(self, key: str) -> None:
        for values in (self.entries, self._marks, self._judgements, self._identities, self._traits):
            values.pop(key, None)
        self._copies = {copy: name for copy, name in self._copies.items() if name != key}
        self._remove_line(key)

    def _remove_line(self, key: str) -> None:
        self.lamps[self.rows.pop(key).lamp] -= 1
        self.channel.publish("removed", {"key": key, "lamps": self.lamps})

    def _update_differing(self) -> None:
        """Find the settings in which the runs differ: those that most runs have come first."""
        values: dict[str, set[str]] = {}
        owners: dict[str, int] = {}
        for row in list(self.rows.values()):
            for name, value in row.settings.items():
                if fleet_line.is_bookkeeping(name):
                    continue
                values.setdefault(name, set()).add(value)
                owners[name] = owners.get(name, 0) + 1
        differing = [name for name, distinct in values.items() if len(distinct) > 1]
        differing.sort(key=lambda name: (-owners[name], name))
        names = tuple(differing[:4])  # a line shows so many
        if names != self.differing:
            self.differing = names
            self.channel.publish("differing", {"names": list(names)})
