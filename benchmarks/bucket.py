"""Bytes, requests and seconds of a million points that are uploaded to a bucket and read back.

The server is moto's on loopback, in a process of its own: it judges requests and bytes, and no
network. Seconds are CPU seconds of the client.
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

from rlvitals.bucket.download import download
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.uploader import Uploader
from rlvitals.storage.blocks import Writer
from rlvitals.storage.run_folder import About, RunFolder

POINTS, KEYS, ROUNDS = 1_000_000, 20, 100  # a round is an upload interval
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
    try:
        assert server.stdout is not None
        os.environ["AWS_ENDPOINT_URL"] = server.stdout.readline().strip()
        os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        measure()
    finally:
        server.kill()


def measure() -> None:
    import s3fs

    s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"]).mkdir("runs")
    root = Path(tempfile.mkdtemp())
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


if __name__ == "__main__":
    main()
