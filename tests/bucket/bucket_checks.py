"""Run folders without a Run, stores that break, and what a copy must be."""

import random
import socket

import numpy as np

from rlvitals.bucket.download import download
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.uploader import Uploader
from rlvitals.storage import reader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.events import Events
from rlvitals.storage.run_folder import About, RunFolder

KEYS = ("reward", "loss")


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Killed(BaseException):
    """The end of a process: nothing that follows runs."""


class Folder:
    """A rank that logs into a folder of its own, as a node without a shared disk."""

    def __init__(self, path, rank=0, launch="", world_size=1):
        self.path = path
        opened = RunFolder.create(path, About(name="x"))
        self.opened, self.attempt, blocks = opened.begin(rank, launch=launch, world_size=world_size)
        self.writer = Writer(blocks)
        self.rows = 0

    def log(self, count):
        steps = np.arange(self.rows, self.rows + count)
        values = np.stack([steps * 1.0, -steps * 1.0])
        self.writer.scalars(KEYS, steps, steps * 1.0, values)
        self.writer.flush()
        self.rows += count

    def event(self, kind):
        events = Events(self.path / "events.jsonl")
        events.append(kind, self.rows, attempt=self.attempt)


class BreakingStore(ObjectStore):
    """A store whose n-th request is the process's last, before or after the server did it."""

    left, after = 0, False  # requests until then; 0: none breaks

    def _call(self, call):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        try:
            return super()._call(call)
        finally:
            if self.left == 0:
                raise Killed


class RefusingStore(ObjectStore):
    """A store that refuses the next requests with a code of S3, as its client reports them."""

    code, left = "", 0

    def _call(self, call):
        if not self.left:
            return super()._call(call)
        self.left -= 1
        from botocore.exceptions import ClientError
        from s3fs.errors import translate_boto_error

        def refuse(_):
            error = ClientError({"Error": {"Code": self.code, "Message": self.code}}, "PutObject")
            raise translate_boto_error(error)

        return super()._call(refuse)


class WeatherStore(ObjectStore):
    """A store in bad weather: throttled, cut, answers lost, writes done twice and late again.

    `kills`: the share of requests at which the process ends, before and after the server did it.
    """

    def __init__(self, url, seed, kills=0.05):
        self.random = random.Random(seed)
        self.is_stormy, self.kills = False, kills
        self.late = []
        super().__init__(url)

    def _call(self, call):
        if not self.is_stormy:
            return super()._call(call)
        chance = self.random.random()
        if chance < self.kills:
            raise Killed
        if chance < 0.15:
            raise OSError(5, "503 SlowDown: reduce your request rate")
        answer = super()._call(call)
        if chance < 0.15 + self.kills:
            raise Killed
        if chance < 0.28:
            raise ConnectionError("the answer is lost")
        return answer

    def create(self, name, data):
        version = super().create(name, data)
        if self.is_stormy and self.random.random() < 0.1:
            self.late.append((name, data))
        if self.is_stormy and self.late and self.random.random() < 0.3:
            self.write(*self.late.pop())  # a packet that arrives once more
        return version


def upload_all(folder, store, *, closing=False, conditions=None):
    uploader = Uploader(folder, store)
    uploader.conditions = conditions  # None: it asks the store
    while not uploader.upload(closing=closing):
        pass
    return uploader


def copied_rows(folder):
    """Return the steps of each rank's file in a copy, by attempt and rank."""
    return {
        (part.file.attempt, part.file.rank): [
            int(step) for rows in part.scan.scalars for step in rows.steps
        ]
        for part in reader.read(folder).parts
    }


def fetch(store, folder):
    assert download(store, folder)
    return copied_rows(folder)
