"""A run whose folder gets further logs while its page is open: a process that starts anew."""

import time

import tfrecords
from served import build, until
from starlette.testclient import TestClient


def write_events(path, steps):
    """Write an event file of returns, one at each step."""
    now = time.time()
    rows = [
        tfrecords.event(step, tfrecords.simple("rollout/ep_rew_mean", float(step)), time=now + step)
        for step in steps
    ]
    path.write_bytes(tfrecords.VERSION + b"".join(rows))


def test_a_file_that_is_added_to_a_watched_run_is_read(tmp_path):
    folder = tmp_path / "runs" / "maze"
    folder.mkdir(parents=True)
    write_events(folder / "events.out.tfevents.1.host.1.0", range(40))
    with TestClient(build(folder.parent), base_url="http://127.0.0.1") as client:

        def last_step():
            address = "/api/series?key=maze&metric=outcome/return"
            return client.get(address).json().get("steps", [-1])[-1]

        until(lambda: last_step() == 39)
        version = client.get("/api/content?key=maze").json()["data"]["version"]
        write_events(folder / "events.out.tfevents.2.host.2.0", range(40, 60))
        until(lambda: last_step() == 59)
        until(lambda: client.get("/api/content?key=maze").json()["data"]["version"] > version)
