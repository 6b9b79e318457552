"""Power cuts: what a program did to a folder is recorded, and cut off at every point.

    with recorded(root) as tape:
        save(...)
        tape.reported("saved 1")
    for reported in cuts(tape, into):
        ...  # `into` is what a disk may hold after a power cut; `reported`: what was said by then

Before every call that opens, renames, links, removes or makes something, and at every fsync, the
names and the bytes below `root` are recorded. After a power cut a disk holds of each folder the
names at some moment since the folder was last synced, and of each file the bytes at some moment
since the file was, or no byte, or the first half. Each folder and each file may be at a moment of
its own: file systems promise no more than that.
"""

import os
import random
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

CALLS = {
    "open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate",
    "os.symlink", "shutil.rmtree",
}  # fmt: skip
DICE = 6  # random cuts at each point, besides the fixed ones
_tapes = []


class Tape:
    """What lay in a folder at each moment, and what was on the disk by then."""

    def __init__(self, root):
        self.root = Path(root)
        self.moments = []  # each: {folder: {name: object}}, {file: its version}
        self.bytes = []  # versions of files
        self.synced = []  # (moment, object, of a file its version)
        self.said = []  # (moment, what was reported)
        self._objects = {}  # inode: object
        self._next = 0
        self._versions = {}  # object: (size, mtime, ctime), version
        self._busy = False
        self.take()
        for folder in self.moments[0][0]:
            self.synced.append((0, folder, None))
        for file, version in self.moments[0][1].items():
            self.synced.append((0, file, version))

    def reported(self, what):
        """Say that the program was told of success."""
        self.take()
        self.said.append((len(self.moments) - 1, what))

    def take(self):
        """Record what lies there now."""
        if self._busy:
            return
        self._busy = True
        try:
            folders, files, alive = {}, {}, {}
            self._walk(self.root, folders, files, alive)
            self._objects = alive
            if not self.moments or self.moments[-1] != (folders, files):
                self.moments.append((folders, files))
        finally:
            self._busy = False

    def sync(self, handle):
        """Record that an open file or folder is on the disk."""
        self.take()
        found = self._objects.get(os.fstat(handle).st_ino)
        if found is not None:
            version = self.moments[-1][1].get(found)
            self.synced.append((len(self.moments) - 1, found, version))

    def _object(self, inode, alive):
        if inode not in alive:
            known = self._objects.get(inode)
            if known is None:
                known, self._next = self._next, self._next + 1
            alive[inode] = known
        return alive[inode]

    def _walk(self, path, folders, files, alive):
        here = self._object(path.stat().st_ino, alive)
        names = folders.setdefault(here, {})
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_symlink():
                    continue
                said = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    names[entry.name] = self._walk(Path(entry.path), folders, files, alive)
                else:
                    one = self._object(said.st_ino, alive)
                    names[entry.name] = one
                    files[one] = self._version(one, said, entry.path)
        return here

    def _version(self, one, said, path):
        stamp = (said.st_size, said.st_mtime_ns, said.st_ctime_ns)
        known = self._versions.get(one)
        if known is not None and known[0] == stamp:
            return known[1]
        data = Path(path).read_bytes()
        if known is None or self.bytes[known[1]] != data:
            self.bytes.append(data)
            version = len(self.bytes) - 1
        else:
            version = known[1]
        self._versions[one] = stamp, version
        return version


@contextmanager
def recorded(root):
    """Record what is done below a folder."""
    tape = Tape(root)
    fsync = os.fsync

    def sync(handle):
        fsync(handle)
        tape.sync(handle if isinstance(handle, int) else handle.fileno())

    if not _tapes:
        sys.addaudithook(_audit)  # it stays: an audit hook cannot be removed
    _tapes[:] = [tape]
    os.fsync = sync
    try:
        yield tape
    finally:
        os.fsync = fsync
        _tapes[:] = [None]
        tape.take()


def _audit(event, args):
    tape = _tapes[0]
    if tape is None or event not in CALLS:
        return
    if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_CREAT | os.O_TRUNC)):
        return
    tape.take()


def cuts(tape, into, *, dice=DICE):
    """Lay out below `into` what may be left of each power cut; yield what was reported by then."""
    chance = random.Random(0)
    into, seen = Path(into), set()
    for moment in range(len(tape.moments)):
        reported = [what for when, what in tape.said if when <= moment]
        for choose in _choices(chance, dice):
            left = {}
            _leave(tape, moment, choose, tape_root(tape), (), left)
            key = (tuple(sorted(left.items())), len(reported))
            if key in seen:
                continue
            seen.add(key)
            shutil.rmtree(into, ignore_errors=True)
            into.mkdir()
            for name, data in sorted(left.items()):
                if data is None:
                    (into / name).mkdir(exist_ok=True)
                else:
                    (into / name).write_bytes(data)
            yield reported


def tape_root(tape):
    """Return the object of the folder that is recorded: it was there before."""
    return next(iter(tape.moments[0][0]))


def _newest(_, now):
    return now


def _synced(before, _):
    return before or b""


def _half(_, now):
    return now[: len(now) // 2]


def _choices(chance, dice):
    """Yield how a cut chooses a moment from the first to the last, and the bytes of a file."""
    yield max, _newest
    yield min, _synced
    yield max, _synced
    yield max, _half
    for _ in range(dice):
        own = random.Random(chance.random())
        yield own.randint, lambda *both, own=own: own.choice([_newest, _synced, _half])(*both)


def _leave(tape, moment, choose, folder, path, left):  # noqa: PLR0917
    """Lay out a folder as a power cut at a moment leaves it."""
    when, what = choose
    synced = [m for m, one, _ in tape.synced if one == folder and m <= moment]
    possible = [
        tape.moments[m][0][folder]
        for m in range(max(synced, default=0), moment + 1)
        if folder in tape.moments[m][0]
    ]
    if not synced:
        possible.insert(0, {})
    for name, one in possible[when(0, len(possible) - 1)].items():
        inner = (*path, name)
        if any(one in folders for folders, _ in tape.moments):
            left["/".join(inner)] = None
            _leave(tape, moment, choose, one, inner, left)
        else:
            left["/".join(inner)] = _bytes(tape, moment, one, what)


def _bytes(tape, moment, file, what):
    """Choose what is left of a file."""
    versions = [files[file] for _, files in tape.moments[: moment + 1] if file in files]
    durable = [version for m, one, version in tape.synced if one == file and m <= moment]
    before = tape.bytes[durable[-1]] if durable and durable[-1] is not None else None
    now = tape.bytes[versions[-1]]
    return now if before == now else what(before, now)
