"""Follow growing runs: yield what changed at each look, each change once.

    watch = Watch([Path("runs")], judge)
    for change in follow(watch):
        ...

New points are read first at each look and are never delayed by judging: a judgement takes as long
as a hundred readings, so only as many are made at once as a look has time for. Of many runs that
were never read, a look reads the newest ones, as many as it has time for. The interval between
looks is bounded by their cost, for any disk and any number of runs.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rlvitals.diagnosis import duplicates
from rlvitals.following.changes import Change, Copy, Renamed
from rlvitals.following.file_tail import FileTail
from rlvitals.following.folder_tree import DATABASE_READERS, FolderTree
from rlvitals.following.run import FollowedRun, Judge
from rlvitals.readers import native
from rlvitals.readers.discovery.sources import Run
from rlvitals.rules.going_on import MAX_LIVE_SILENCE_S
from rlvitals.tracking import clock

LOOK_SECONDS = 1.0  # seconds from one look to the next
REST_FACTOR = 9.0  # times what reading took that it then rests, at least: a tenth of a core
MAX_REST_SECONDS = 30.0  # seconds that it ever rests
# Seconds of judging at one look, and the judgement under way; reading new runs may take twice that.
MAX_JUDGING_SECONDS = 0.25


class Watch:
    """Runs under some paths. One look yields all changes since the previous one.

    `judge` returns a diagnosis of a run's logs for each of the paths. `clock` returns seconds since
    the epoch, `timer` seconds from any origin.
    """

    def __init__(
        self,
        judges: Mapping[Path, Judge],
        *,
        clock: Callable[[], float] = clock.now,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow each path, which need not exist yet."""
        self.runs: list[FollowedRun] = []
        self._trees = [FolderTree(path, timer) for path in judges]
        self._judges = judges
        self._owner: dict[int, FolderTree] = {}
        self._clock, self._timer = clock, timer
        self._looks = 0
        self._began = self._spent = 0.0

    @property
    def unique_runs(self) -> tuple[FollowedRun, ...]:
        """The runs, each training once: without copies that another tracker logged."""
        return tuple(run for run in self.runs if not run.is_copy)

    @property
    def waiting(self) -> tuple[FolderTree, ...]:
        """The paths at which there is nothing to read yet."""
        return tuple(tree for tree in self._trees if tree.problem is not None)

    def look(self, *, patient: bool = False) -> Iterator[Change]:
        """Yield what changed. `patient`: read and judge every run, however long it takes."""
        self._began = self._timer()
        time_s = self._clock()
        for tree in self._trees:
            if not tree.may_differ(time_s):
                continue
            runs = tree.find(time_s)
            tree_runs = [f for f in self.runs if self._owner[id(f)] is tree]
            paired = _pair_runs(tree_runs, runs)
            paired_ids = {id(followed) for followed in paired.values()}
            unpaired = [followed for followed in tree_runs if id(followed) not in paired_ids]
            for number, run in enumerate(runs):
                followed = paired.get(number)
                inherited = _inherited_files(run, unpaired)
                if followed is None:
                    followed = FollowedRun(run, self._judges[tree.path], new=self._looks > 0)
                    self._owner[id(followed)] = tree
                    self.runs.append(followed)
                old_name = followed.name
                followed.update(run, inherited)
                followed.name = self._unique_name(followed, tree)
                if number in paired and followed.name != old_name:
                    yield Renamed(followed.name, time_s, old_name)
            claimed = {path for run in runs for path, _ in run.files}
            for followed in unpaired:
                if any(path in claimed for path, _ in followed.run.files):
                    self.runs.remove(followed)
                    yield from followed.vanish(time_s, "its files are read as another run's")
        self._spent = 0.0  # not with what is done about the changes meanwhile
        for followed in [run for run in self.runs if run.is_read]:
            start = self._timer()
            changes = list(followed.look(time_s))
            self._spent += self._timer() - start
            yield from () if followed.is_copy else changes
        yield from self._read_new_runs(time_s, patient=patient)
        self._looks += 1
        yield from self._judge_pending(time_s, patient=patient)

    def pause(self) -> float:
        """Return the pause before the next look, in seconds."""
        pause_s = LOOK_SECONDS - (self._timer() - self._began)
        return min(max(pause_s, REST_FACTOR * self._spent, 0.0), MAX_REST_SECONDS)

    @property
    def is_over(self) -> bool:
        """Whether there are runs, and no change is expected of any."""
        time_s = self._clock()
        return bool(self.runs) and all(followed.is_over(time_s) for followed in self.unique_runs)

    def _read_new_runs(self, time_s: float, *, patient: bool) -> Iterator[Change]:
        """Read runs for the first time, the newest first."""
        start = self._timer()
        unread = [run for run in self.runs if not run.is_read]
        for followed in unread if patient else sorted(unread, key=lambda run: -run.changed_at):
            yield from followed.look(time_s)
            if not patient and self._timer() - start >= 2 * MAX_JUDGING_SECONDS:
                return

    def _judge_pending(self, time_s: float, *, patient: bool) -> Iterator[Change]:
        """Make pending judgements: of growing runs first, then the least recently judged.

        Of the logs of one training our own comes first: the others turn out to be copies of it.
        """

        def priority(run: FollowedRun) -> tuple[bool, float, bool, float]:
            is_foreign = native.READER.name not in run.run.trackers
            return (
                time_s - run.changed_at >= MAX_LIVE_SILENCE_S,
                run.judged_at,
                is_foreign,
                -run.changed_at,
            )

        start = self._timer()
        pending = [followed for followed in self.runs if followed.needs_judging(time_s)]
        if patient:
            changes_by_run = [(followed, list(followed.judge(time_s))) for followed in pending]
            yield from self._find_copies(time_s)
            for followed, changes in changes_by_run:
                yield from () if followed.is_copy else changes
            return
        for followed in sorted(pending, key=priority):
            changes = list(followed.judge(time_s))
            yield from self._find_copies(time_s)
            yield from () if followed.is_copy else changes
            if self._timer() - start >= MAX_JUDGING_SECONDS:
                return

    def _find_copies(self, time_s: float) -> Iterator[Change]:
        """Yield the runs that turn out to be the training of another, logged by another tracker."""
        for tree in self._trees:  # what is named as a path is listed, copy or not
            runs = [run for run in self.runs if self._owner[id(run)] is tree and not run.vanished]
            identities = {i: run.identity for i, run in enumerate(runs) if run.identity}
            copies = duplicates.find(identities)
            for i, followed in enumerate(runs):
                if i in copies and not followed.is_copy:
                    yield Copy(followed.name, time_s, runs[copies[i]].name)
                followed.is_copy = i in copies

    def _unique_name(self, followed: FollowedRun, tree: FolderTree) -> str:
        """Return a run's name, prefixed with its path if another run has the same name."""
        name = followed.run.name
        other_runs = (f for f in self.runs if self._owner[id(f)] is not tree)
        return f"{tree.path} {name}" if any(f.run.name == name for f in other_runs) else name


def _pair_runs(followed_runs: Sequence[FollowedRun], runs: Sequence[Run]) -> dict[int, FollowedRun]:
    """Return the followed run of each discovered run, by the numbers of the latter.

    Runs are paired by a common file, preferring equal names; else by folder and name.
    """
    unpaired = list(followed_runs)
    pairs: dict[int, FollowedRun] = {}
    for matches in (_shares_files_and_name, _shares_files, _is_same_folder):
        for number, run in enumerate(runs):
            if number not in pairs and (
                followed := next((f for f in unpaired if matches(f, run)), None)
            ):
                pairs[number] = followed
                unpaired.remove(followed)
    return pairs


def _shares_files_and_name(followed: FollowedRun, run: Run) -> bool:
    return followed.run.name == run.name and _shares_files(followed, run)


def _shares_files(followed: FollowedRun, run: Run) -> bool:
    return any(
        followed.file(path, reader) is not None
        and (reader.name not in DATABASE_READERS or followed.run.name == run.name)
        for path, reader in run.files
    )


def _is_same_folder(followed: FollowedRun, run: Run) -> bool:
    return (followed.run.root, followed.run.name) == (run.root, run.name)


def _inherited_files(run: Run, unpaired: Sequence[FollowedRun]) -> dict[Path, FileTail]:
    """Return the files of a run that belonged to another one."""
    return {
        path: file
        for path, reader in run.files
        for followed in unpaired
        if reader.name not in DATABASE_READERS and (file := followed.file(path, reader)) is not None
    }


def follow(
    watch: Watch, *, until_end: bool = False, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Change]:
    """Look for ever, or until every run is over, and yield the changes."""
    while True:
        yield from watch.look()
        if until_end and watch.is_over:
            return
        sleep(watch.pause())
