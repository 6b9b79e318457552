"""64 writers in bad weather: throttled, repeated, reordered, killed, and a server that dies."""

import itertools
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from multiprocessing import get_context

import pytest
from aiohttp import ClientError
from botocore.exceptions import BotoCoreError
from bucket_checks import Folder, Killed, WeatherStore, copied_rows, fetch, free_port, upload_all
from effort import cases

from rlvitals.bucket import uploader as uploader_module
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.uploader import Uploader

NODES, RANKS = 8, 8  # processes that write, and ranks of each: every rank has a folder of its own
SECONDS = float(os.environ.get("RLVITALS_STORM_SECONDS") or cases(20, 3600))
STARTS_APART = 1_000_000  # steps: no two starts of a rank log the same one

BROKEN = (OSError, BotoCoreError, ClientError)  # what a request raises whose server dies
# What answers the clients and dies: the objects it has acknowledged lie behind it, as in S3.
FRONT = """
import asyncio, sys

async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()

async def answer(reader, writer):
    behind = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    await asyncio.gather(pump(reader, behind[1]), pump(behind[0], writer))

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""


def _storm(cloud, tmp_path, writers, rounds):
    """Let ranks on machines of their own log and upload, each in its own weather."""
    url = f"{cloud}/storm-{writers}"
    folders = [
        Folder(tmp_path / str(i), i, launch="job", world_size=writers) for i in range(writers)
    ]
    stores = [WeatherStore(url, seed=i) for i in range(writers)]
    for each in stores:
        each._files = stores[0]._files  # one client: to make one takes longer than its requests
    uploaders = [Uploader(each.path, store) for each, store in zip(folders, stores, strict=True)]
    conditions = stores[0].probe()
    kills = failures = 0
    for number in range(rounds + 1):
        is_over = number == rounds
        for i, folder in enumerate(folders):
            if not is_over:
                folder.log(1 + (i + number) % 3)
            stores[i].is_stormy = not is_over
            uploaders[i].conditions = conditions
            try:
                while not uploaders[i].upload(closing=is_over):
                    pass
            except Killed:
                kills += 1
                uploaders[i] = Uploader(folder.path, stores[i])
            except OSError:
                failures += 1
    assert kills > writers / 4
    assert failures > writers / 4
    rows = fetch(ObjectStore(url), tmp_path / "copy")
    assert rows == {(1, i): list(range(folder.rows)) for i, folder in enumerate(folders)}


def test_writers_in_a_storm_lose_and_double_no_row(any_cloud, tmp_path):
    _storm(any_cloud, tmp_path, cases(20, 64), 2)


@pytest.mark.soak
def test_64_writers_in_a_long_storm_lose_and_double_no_row(cloud, tmp_path, monkeypatch):
    """Forty rounds with merges at four segments: more levels of them than 1,000 rounds have."""
    monkeypatch.setattr(uploader_module, "MERGE_COUNT", 4)
    _storm(cloud, tmp_path, 64, 40)


class Front:
    """A server process between the clients and the store."""

    def __init__(self, behind):
        self.port, self.behind = free_port(), behind.rpartition(":")[2]
        self.start()

    def start(self):
        command = [sys.executable, "-c", FRONT, str(self.port), self.behind]
        self.process = subprocess.Popen(command)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Node:
    """A machine of some ranks: a process that logs and one that uploads, both killed at will."""

    def __init__(self, number, root, url):
        self.number, self.root, self.url = number, root, url
        self.ranks = range(number * RANKS, (number + 1) * RANKS)
        self.starts = self.uploads = 0
        self.processes = {}
        self.start(self.log)
        self.start(self.upload)

    def start(self, work):
        """Start one of the two; the uploading one finds the folders that the other makes."""
        self.starts += work == self.log
        self.uploads += work == self.upload
        process = get_context("fork").Process(target=work, daemon=True)
        process.start()
        self.processes[work] = process

    def kill(self, work):
        process = self.processes[work]
        assert process.exitcode is None  # it ends by a signal only
        process.kill()
        process.join()

    def folder(self, rank):
        return self.root / str(rank)

    def log(self):
        """Log until killed; what was flushed is noted outside of the folder."""
        dice = random.Random(self.starts * NODES + self.number)
        launch = f"{self.number}/{self.starts}"
        folders = [
            Folder(self.folder(rank), rank, launch=launch, world_size=NODES * RANKS)
            for rank in self.ranks
        ]
        for folder in folders:
            folder.rows = self.starts * STARTS_APART
        files = [(self.root / f"{rank}.flushed").open("ab", buffering=0) for rank in self.ranks]
        while True:
            for folder, file in zip(folders, files, strict=True):
                folder.log(dice.randrange(1, 4))
                file.write(b"%d\n" % (folder.rows - 1))
                time.sleep(dice.uniform(0.0, 0.4))

    def upload(self):
        """Upload until killed, in bad weather of its own."""
        dice = random.Random(self.uploads * NODES + self.number)
        store = WeatherStore(self.url, seed=dice.random(), kills=0.0)
        store.is_stormy = True
        uploaders = {}
        while True:
            path = self.folder(dice.choice(self.ranks))
            if (path / "run.json").exists():
                with suppress(*BROKEN):
                    uploaders.setdefault(path, Uploader(path, store)).upload()
            time.sleep(dice.uniform(0.0, 0.4))


@contextmanager
def nodes(root, url):
    machines = [Node(number, root, url) for number in range(NODES)]
    try:
        yield machines
    finally:
        for node in machines:
            for process in node.processes.values():
                process.kill()
                process.join()


def starts(rows, rank):
    """Return the rows of each start of a rank, in the order of their steps."""
    return sorted(steps for (_, each), steps in rows.items() if each == rank and steps)


def test_64_writers_killed_by_signal_and_a_server_that_dies_lose_and_double_no_row(
    cloud, endpoint, tmp_path, monkeypatch
):
    """It lasts half a minute, in `make soak` an hour; RLVITALS_STORM_SECONDS changes that."""
    import s3fs  # noqa: F401 - before the fork, once

    url = f"{cloud}/killed"
    with Front(endpoint) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{front.port}")
        kills = _storm_of_signals(tmp_path, url, front)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    report = _check(url, tmp_path)
    sys.stderr.write(f"{SECONDS:.0f} s; killed: {kills}; {report}\n")  # by `pytest -s`


def _storm_of_signals(root, url, front):
    """Kill logging, uploading and serving processes, and start them again.

    On a busy machine it lasts longer: until some of the writers have uploaded something.
    """
    dice, kills = random.Random(0), {"log": 0, "upload": 0, "server": 0}
    pause_s = max(0.35, SECONDS / 400)  # a start is an attempt of the run: 200 at the most
    until = time.monotonic() + SECONDS
    with nodes(root, url) as machines:
        for number in itertools.count():
            if number > 24 and time.monotonic() > until and _has_manifests(url):
                return kills
            time.sleep(pause_s)
            node = dice.choice(machines)
            work = node.log if number % 4 == 1 else node.upload
            node.kill(work)
            node.start(work)
            kills[work.__name__] += 1
            if number % 8 == 4:
                front.kill()
                kills["server"] += 1
            elif number % 8 == 6:
                front.start()
    return kills


def _has_manifests(url):
    try:
        return len(ObjectStore(url).list("manifests/")) >= NODES
    except BROKEN:
        return False  # the server is dead at the moment


def _check(url, root):
    """Compare the bucket with the folders of the ranks, before and after the last uploads."""
    paths = [root / str(rank) for rank in range(NODES * RANKS)]
    local = [starts(copied_rows(path), rank) for rank, path in enumerate(paths)]
    early = fetch(ObjectStore(url), root / "early")
    early_count = sum(map(len, early.values()))
    assert early_count  # of what the killed processes had committed: a prefix of each start
    for rank, known in enumerate(local):
        flushed = {int(line) for line in (root / f"{rank}.flushed").read_bytes().split()}
        assert flushed <= {step for steps in known for step in steps}
        by_start = {steps[0]: steps for steps in known}
        for steps in starts(early, rank):
            assert steps == by_start[steps[0]][: len(steps)]
    store = ObjectStore(url)
    conditions = store.probe()
    for path in paths:
        upload_all(path, store, closing=True, conditions=conditions)
    copy = fetch(store, root / "copy")
    assert [starts(copy, rank) for rank in range(NODES * RANKS)] == local
    count = sum(len(steps) for known in local for steps in known)
    return f"{count} rows of {len(copy)} starts, {early_count} of them before the last uploads"
