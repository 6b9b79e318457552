"""A reader is two upload intervals behind at most, also where an upload takes seconds."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from bucket_checks import Folder, fetch

from rlvitals.bucket import mirror_process
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.hosted import fetch as hosted

INTERVAL = 10.0


class Clock:
    """A clock that moves where somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(mirror_process, "clock", clock)
    monkeypatch.setattr(hosted, "time", clock)
    return clock


def test_a_round_begins_an_interval_after_the_last_one_began(clock, tmp_path, monkeypatch):
    folder, rounds = Folder(tmp_path / "run"), []
    url = f"memory://{tmp_path.name}/x"
    job = mirror_process.Mirror(folder.path, url, INTERVAL)
    upload = job.uploader.upload

    def take_seconds(*, closing):
        rounds.append(clock.now)
        folder.log(1)
        clock.sleep(7.0)
        return upload(closing=closing)

    monkeypatch.setattr(job.uploader, "upload", take_seconds)
    monkeypatch.setattr(mirror_process.tail_index, "has_writer", lambda _: clock.now < 45.0)
    job.run()
    assert rounds[:5] == pytest.approx([0.0, 10.0, 20.0, 30.0, 40.0])
    rows = fetch(ObjectStore(url), tmp_path / "copy")[1, 0]
    assert rows == list(range(len(rounds)))


def test_hours_without_the_bucket_are_tried_with_pauses_of_five_minutes(
    clock, tmp_path, monkeypatch
):
    """Six hours: everything that was logged meanwhile arrives with the first round after them."""
    folder, tries = Folder(tmp_path / "run"), []
    url = f"memory://{tmp_path.name}/x"
    job = mirror_process.Mirror(folder.path, url, INTERVAL)
    upload = job.uploader.upload

    def refuse(*, closing):
        folder.log(1)
        tries.append(clock.now)
        if clock.now < 6 * 3600.0:
            raise ConnectionError("no route to the bucket")
        return upload(closing=closing)

    monkeypatch.setattr(job.uploader, "upload", refuse)
    monkeypatch.setattr(mirror_process.tail_index, "has_writer", lambda _: clock.now < 6 * 3600.0)
    assert job.run()
    pauses = [later - early for early, later in pairwise(tries)]
    assert max(pauses) < 301.0
    assert 72 <= len(tries) < 200
    assert fetch(ObjectStore(url), tmp_path / "copy") == {(1, 0): list(range(folder.rows))}


def test_a_look_begins_half_an_interval_after_the_last_one_began(clock, tmp_path, monkeypatch):
    looks = []

    def take_seconds(*_, **__):
        looks.append(clock.now)
        if len(looks) == 4:
            raise KeyboardInterrupt
        clock.sleep(3.0)
        return tmp_path

    monkeypatch.setattr(hosted, "fetch", take_seconds)
    in_place = SimpleNamespace(Thread=lambda target, **_: SimpleNamespace(start=target))
    monkeypatch.setattr(hosted, "threading", in_place)
    with pytest.raises(KeyboardInterrupt):
        hosted.keep_up_to_date(Path("s3://bucket/runs"))
    # The first is that of the caller, which the thread begins after.
    assert looks == pytest.approx([0.0, 8.0, 13.0, 18.0])
