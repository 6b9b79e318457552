"""Bytes, requests and seconds of a million points that are uploaded to a bucket and read back.

    python benchmarks/bucket.py [upload] [root] [lag]

`root` copies ROOT_RUNS runs of a bucket and looks again; `lag` is the age of the newest row that a
reader of a live run has. The server is moto's on loopback, in a process of its own: it judges
requests and bytes, and no network. Seconds are CPU seconds of the client.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import s3fs

from rlvitals.bucket.download import download
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.root_copy import copy_root
from rlvitals.bucket.run_index import RunEntry
from rlvitals.bucket.uploader import Uploader
from rlvitals.hosted import fetch
from rlvitals.options import Recording
from rlvitals.storage import reader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.events import Events
from rlvitals.storage.run_folder import About, RunFolder

POINTS, KEYS, ROUNDS = 1_000_000, 20, 100  # a round is an upload interval
ROOT_RUNS = 60  # of which one is being written
LAG_SECONDS = 120.0
SERVER = """
import logging, time
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
time.sleep(3600)
"""


def main() -> None:
    """Upload and read, and print a line of JSON for each."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    parts = {"upload": measure, "root": measure_root, "lag": measure_lag}
    try:
        with tempfile.TemporaryDirectory() as folder:
            assert server.stdout is not None
            os.environ["AWS_ENDPOINT_URL"] = server.stdout.readline().strip()
            os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
            os.environ["XDG_CACHE_HOME"] = folder
            s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"]).mkdir("runs")
            for name in sys.argv[1:] or parts:
                parts[name](Path(folder))
    finally:
        server.kill()


def measure(root: Path) -> None:
    run, _, path = RunFolder.create(root / "run", About()).begin()
    writer, rows = Writer(path), POINTS // KEYS // ROUNDS
    store = ObjectStore("s3://runs/x")
    uploader, seconds = Uploader(run.path, store), 0.0
    random = np.random.default_rng(0)
    for number in range(ROUNDS):
        steps = np.arange(number * rows, (number + 1) * rows)
        values = random.normal(size=(KEYS, rows))
        writer.scalars(tuple(f"metric/{i}" for i in range(KEYS)), steps, steps * 1.0, values)
        writer.flush()
        begin = time.process_time()
        uploader.upload()
        seconds += time.process_time() - begin
    print(json.dumps({"upload": asdict(store.cost), "cpu_s": round(seconds, 2)}))
    reading = ObjectStore("s3://runs/x")
    begin = time.process_time()
    download(reading, root / "copy")
    cpu_s = round(time.process_time() - begin, 2)
    print(json.dumps({"read": asdict(reading.cost), "cpu_s": cpu_s}))


def measure_root(root: Path) -> None:
    """Copy the runs of a root, one of which is being written, and look again."""
    url = "s3://runs/root"
    for number in range(ROOT_RUNS):
        upload_run(root / f"run-{number}", f"{url}/run-{number}", has_ended=number > 0)
    for name in ("first", "again"):
        store = CountingStore(url)
        begin = time.process_time(), time.perf_counter()
        copy_root(store, root / "copies", lambda *_: None)
        spent = time.process_time() - begin[0], time.perf_counter() - begin[1]
        cost = {"cpu_s": round(spent[0], 2), "wall_s": round(spent[1], 2)}
        print(json.dumps({f"{ROOT_RUNS} runs, {name}": store.total(), **cost}))


class CountingStore(ObjectStore):
    """A store that knows the requests of all that was opened below it."""

    inner: list[ObjectStore]

    def open_below(self, name: str) -> ObjectStore:
        store = super().open_below(name)
        self.__dict__.setdefault("inner", []).append(store)
        return store

    def total(self) -> dict[str, int]:
        costs = [asdict(store.cost) for store in (self, *self.inner)]
        return {key: sum(cost[key] for cost in costs) for key in costs[0]}


def upload_run(path: Path, url: str, *, has_ended: bool) -> None:
    """Upload a run of 20 metrics and 100 rows as its mirror process does."""
    run, _, file = RunFolder.create(path, About()).begin()
    writer, steps = Writer(file), np.arange(100)
    keys = tuple(f"metric/{i}" for i in range(KEYS))
    values = np.random.default_rng(0).normal(size=(KEYS, len(steps)))
    writer.scalars(keys, steps, steps * 1.0, values)
    writer.close()
    if has_ended:
        Events(path / "events.jsonl").append("finish", 99, attempt=1, status="finished")
    uploader = Uploader(run.path, ObjectStore(url))
    uploader.upload(closing=has_ended)
    sequence = uploader.manifest.sequence
    RunEntry(url, path).update(has_ended=has_ended, sequence=sequence)


LIVE = """
import sys, time, rlvitals
run = rlvitals.start(sys.argv[1])
print(flush=True)
for step in range(int(4 * float(sys.argv[2]))):
    run.log(step, {"logged": time.time()})
    time.sleep(0.25)
run.finish()
"""


def measure_lag(_: Path) -> None:
    """Follow a run that logs four rows a second, and print the age of the newest row seen."""
    url, ages = "s3://runs/live", list[float]()
    command = [sys.executable, "-c", LIVE, url, str(LAG_SECONDS)]
    training = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert training.stdout is not None
    training.stdout.readline()
    address, begin = Path(url), time.monotonic()
    while not ObjectStore(url).list("manifests/"):
        time.sleep(0.5)
    copy = fetch.keep_up_to_date(address)
    while time.monotonic() < begin + LAG_SECONDS:
        logged = [rows.values[0, -1] for part in reader.read(copy).parts
                  for rows in part.scan.scalars]  # fmt: skip
        ages += [time.time() - max(logged)] if logged else []
        time.sleep(0.25)
    training.wait()
    interval = Recording().mirror_seconds
    print(json.dumps({"lag_s": {"median": round(float(np.median(ages)), 1),
                                "worst": round(max(ages), 1), "interval": interval}}))  # fmt: skip


if __name__ == "__main__":
    main()
