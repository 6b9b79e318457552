"""What a bucket holds and a reader sees, wherever an upload is cut, repeated or disturbed."""

import json
import random
import shutil
import time

import pytest
from bucket_checks import (
    BreakingStore,
    Folder,
    Killed,
    RefusingStore,
    copied_rows,
    fetch,
    upload_all,
)
from missing_packages import hide

from rlvitals.bucket import mirror_process
from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket.download import download
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.bucket.store_dialects import Conflict
from rlvitals.bucket.uploader import MERGE_COUNT, Uploader
from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.storage import compact, events
from rlvitals.tracking import spool

CALLS = 24  # requests of the upload that is cut; more than it makes


def test_a_copy_has_the_bytes_of_the_folder(store, tmp_path):
    folder = Folder(tmp_path / "run")
    uploader, copy = Uploader(folder.path, store), tmp_path / "copy"
    for count in range(1, 6):
        folder.log(count)
        folder.event(f"event-{count}")
        assert uploader.upload()
        assert fetch(store, copy) == {(1, 0): list(range(folder.rows))}
    folder.writer.close()
    assert uploader.upload(closing=True)
    assert fetch(store, copy) == {(1, 0): list(range(folder.rows))}
    for name in ("blocks/1-0.rlv", "events.jsonl"):
        assert (copy / name).read_bytes() == (folder.path / name).read_bytes()


def test_a_second_look_reads_nothing_but_a_listing(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(1000)
    upload_all(folder.path, store)
    reading = ObjectStore(store.url)
    fetch(reading, tmp_path / "copy")
    received = reading.cost.received
    assert download(reading, tmp_path / "copy")
    assert reading.cost.received == received
    folder.log(3)
    upload_all(folder.path, store)
    assert fetch(reading, tmp_path / "copy") == {(1, 0): list(range(1003))}
    assert reading.cost.received - received < 4000  # a manifest and three rows, not a thousand


def test_a_torn_block_is_uploaded_once_it_is_complete(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(5)
    path = folder.path / "blocks" / "1-0.rlv"
    whole = path.read_bytes()
    uploader = Uploader(folder.path, store)
    path.write_bytes(whole[:-7])
    uploader.upload()
    assert fetch(store, tmp_path / "copy") == {(1, 0): []}
    path.write_bytes(whole)
    uploader.upload()
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(5))}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_upload_that_is_cut_at_any_request_loses_and_doubles_nothing(any_cloud, tmp_path, after):
    """A reader sees the rows before the cut upload or all of them, and later each once."""
    folder, copy = Folder(tmp_path / "run"), tmp_path / "copy"
    store, reading = BreakingStore(f"{any_cloud}/x"), ObjectStore(f"{any_cloud}/x")
    store.after = after
    upload_all(folder.path, store)
    seen = set()
    for last in range(1, CALLS):
        rows = folder.rows
        folder.log(6)
        folder.event(f"cut-{last}")
        store.left = last
        try:
            upload_all(folder.path, store)
        except Killed:
            between = fetch(reading, copy).get((1, 0), [])
            assert between in (list(range(rows)), list(range(rows + 6)))
            seen.add(len(between) - rows)
        else:
            assert seen == {0, 6}  # there were cuts before and behind the manifest
            kinds = [event.kind for event in events.read(copy / "events.jsonl").events]
            assert kinds == [f"cut-{number}" for number in range(1, last)]
            return
        folder.log(5)
        upload_all(folder.path, store)
        assert fetch(reading, copy) == {(1, 0): list(range(folder.rows))}
    pytest.fail("the upload makes more requests than are cut")


def test_many_uploads_are_merged_and_nothing_is_left_behind(any_cloud, tmp_path):
    folder, store = Folder(tmp_path / "run"), ObjectStore(f"{any_cloud}/x")
    uploader = Uploader(folder.path, store)
    for _ in range(2 * MERGE_COUNT + 3):
        folder.log(2)
        uploader.upload()
    names = [entry.name for entry in store.list("segments/")]
    assert len(names) < MERGE_COUNT
    (node,) = manifests.newest(entry.name for entry in store.list("manifests/"))
    kept = manifests.decode(store.read(f"manifests/{node}.json"), node)
    assert set(names) == set(kept.segments())
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(folder.rows))}


def test_a_reader_goes_on_where_segments_are_merged_while_it_reads(cloud, tmp_path, monkeypatch):
    folder, store = Folder(tmp_path / "run"), ObjectStore(f"{cloud}/x")
    uploader = Uploader(folder.path, store)
    for _ in range(MERGE_COUNT - 1):
        folder.log(1)
        uploader.upload()
    reading, real = ObjectStore(store.url), ObjectStore.read_ranges

    def merge_first(self, ranges):
        monkeypatch.setattr(ObjectStore, "read_ranges", real)
        folder.log(1)
        uploader.upload()
        return real(self, ranges)

    monkeypatch.setattr(ObjectStore, "read_ranges", merge_first)
    assert fetch(reading, tmp_path / "copy") == {(1, 0): list(range(MERGE_COUNT))}


def test_two_processes_that_upload_one_folder_agree(any_cloud, tmp_path):
    folder, store = Folder(tmp_path / "run"), ObjectStore(f"{any_cloud}/x")
    folder.log(3)
    pair = [Uploader(folder.path, ObjectStore(store.url)) for _ in range(2)]
    for number in range(6):
        folder.log(2)
        pair[number % 2].upload()
    for uploader in pair:
        while not uploader.upload():
            pass
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(15))}


def test_ranks_without_a_shared_disk_are_one_attempt(store, tmp_path):
    for rank in range(3):
        folder = Folder(tmp_path / str(rank), rank, launch="job", world_size=3)
        folder.log(rank + 1)
        upload_all(folder.path, store)
    rows = fetch(store, tmp_path / "copy")
    assert rows == {(1, rank): list(range(rank + 1)) for rank in range(3)}
    about = json.loads((tmp_path / "copy" / "run.json").read_text())
    assert [attempt["number"] for attempt in about["attempts"]] == [1]


def test_a_restart_on_another_machine_is_another_attempt(store, tmp_path):
    first, second = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    for folder in (first, second):
        folder.log(4)
        folder.event("start")
        upload_all(folder.path, store)
    assert fetch(store, tmp_path / "copy") == {(1, 0): [0, 1, 2, 3], (2, 0): [0, 1, 2, 3]}
    history = events.read(tmp_path / "copy" / "events.jsonl").events
    assert [event.facts["attempt"] for event in history] == [1, 2]


def test_a_restart_that_has_the_launch_of_the_one_before_loses_no_rows(store, tmp_path):
    for name in ("a", "b"):
        folder = Folder(tmp_path / name, 1, launch="master/29500", world_size=2)
        folder.log(4)
        upload_all(folder.path, store)
    assert fetch(store, tmp_path / "copy") == {(1, 1): [0, 1, 2, 3], (2, 1): [0, 1, 2, 3]}


def test_a_folder_that_is_uploaded_under_two_names_counts_once(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(4)
    folder.event("start")
    upload_all(folder.path, store)
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(4))}
    (folder.path / ".bucket.node").unlink()
    folder.log(4)
    upload_all(folder.path, store)
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(8))}
    history = events.read(tmp_path / "copy" / "events.jsonl").events
    assert [event.kind for event in history] == ["start"]


def test_a_folder_that_is_compacted_is_read_the_same(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(400)
    uploader = upload_all(folder.path, store)
    fetch(store, tmp_path / "copy")
    folder.log(400)
    folder.writer.close()
    compact.compact(folder.path)
    for _ in range(3):  # the first sees that the file is gone
        uploader.upload(closing=True)
    rows = copied_rows(folder.path)
    assert sorted(rows[1, 0]) == list(range(800))
    assert fetch(store, tmp_path / "copy") == rows
    assert fetch(store, tmp_path / "fresh") == rows


def test_a_damaged_manifest_and_a_newer_format_are_named(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(4)
    upload_all(folder.path, store)
    (entry,) = store.list("manifests/")
    store.write(entry.name, store.read(entry.name).replace(b'"sequence":1', b'"sequence":2'))
    with pytest.raises(UnreadableLog, match="checksum differs"):
        download(store, tmp_path / "copy")


def test_names_from_a_bucket_stay_below_the_copy():
    attempts = {1: 1}
    for name in ("../../etc/passwd", "blocks/../x", "/etc/passwd", "blocks/1-0/x.rlv", "x"):
        assert manifests.reader_name(name, attempts) == ""
    assert manifests.reader_name("blocks/1-0.rlv", {1: 7}) == "blocks/7-0.rlv"
    assert manifests.reader_name("rollouts/0001-0-0002.jsonl.zst", {1: 7}) == (
        "rollouts/0007-0-0002.jsonl.zst"
    )


def test_a_store_is_asked_which_conditions_it_has(store):
    conditions = store.probe()
    assert conditions.create
    assert conditions.replace == store.has_replace
    assert store.list("probes/") == []
    store.create("a", b"1")
    with pytest.raises(Conflict):
        store.create("a", b"2")
    assert store.read("a") == b"1"


def test_a_missing_package_is_named(monkeypatch):
    hide(monkeypatch, "gcsfs")
    with pytest.raises(VitalsError, match="not installed") as raised:
        ObjectStore("gs://bucket/x")
    assert "gcsfs" in raised.value.hint


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestTimeTooSkewed"])
def test_refused_requests_are_buffered_and_sent_with_new_credentials(
    cloud, tmp_path, monkeypatch, code
):
    """A token expires, or the machine's clock is wrong, for some minutes; then both are right."""
    monkeypatch.setattr(mirror_process, "ObjectStore", RefusingStore)
    folder = Folder(tmp_path / "run")
    folder.log(3)
    job = mirror_process.Mirror(folder.path, f"{cloud}/x", 0.0)
    assert job.upload(closing=False)
    job.store.code, job.store.left = code, 4
    for _ in range(4):
        folder.log(3)
        assert not job.upload(closing=False)
        assert code in job.error
        assert spool.read_state(folder.path)["unsent"] > 0
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "fresh")
    while not job.upload(closing=False):
        pass
    assert spool.read_state(folder.path)["unsent"] == 0
    assert spool.read_state(folder.path)["error"] == ""
    assert job.store._files.s3._request_signer._credentials.access_key == "fresh"
    assert fetch(ObjectStore(f"{cloud}/x"), tmp_path / "copy") == {(1, 0): list(range(15))}


@pytest.mark.soak
def test_clocks_that_disagree_by_days_order_nothing(store, tmp_path, monkeypatch):
    """Each round of two nodes is at another time, most of them before the one that precedes it."""
    folders = [Folder(tmp_path / str(i), i, launch="job", world_size=2) for i in range(2)]
    uploaders = [Uploader(folder.path, ObjectStore(store.url)) for folder in folders]
    reading, real, dice, count = ObjectStore(store.url), time.time, random.Random(0), 0
    for number in range(12):
        shift_s = dice.uniform(-3, 3) * 86_400.0
        monkeypatch.setattr(time, "time", lambda shift_s=shift_s: real() + shift_s)
        folders[number % 2].log(2)
        if number % 4 == 3:  # another process of the node goes on
            uploaders[number % 2] = Uploader(folders[number % 2].path, ObjectStore(store.url))
        while not uploaders[number % 2].upload():
            pass
        uploaders[number % 2].beat()
        count += 2
        rows = fetch(reading, tmp_path / "copy")
        assert sum(map(len, rows.values())) == count
    assert rows == {(1, rank): list(range(12)) for rank in range(2)}


def test_a_bucket_that_is_down_for_long_gets_all_afterwards(cloud, tmp_path, monkeypatch):
    folder = Folder(tmp_path / "run")
    folder.log(3)
    uploader = upload_all(folder.path, ObjectStore(f"{cloud}/x"))
    with monkeypatch.context() as context:
        context.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens
        uploader.store._files = None
        for _ in range(3):
            folder.log(3)
            with pytest.raises(Exception, match=r"(?i)connect"):
                uploader.upload()
    while not uploader.upload():
        pass
    assert fetch(ObjectStore(f"{cloud}/x"), tmp_path / "copy") == {(1, 0): list(range(12))}


def test_a_copy_that_was_deleted_or_damaged_is_fetched_again(store, tmp_path):
    folder = Folder(tmp_path / "run")
    folder.log(4)
    upload_all(folder.path, store)
    fetch(store, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy")
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(4))}
    (tmp_path / "copy" / ".bucket.json").write_text("{")
    assert fetch(store, tmp_path / "copy") == {(1, 0): list(range(4))}
    assert copied_rows(tmp_path / "copy")


def test_an_attempt_of_the_bucket_is_read_once(tmp_path):
    store = ObjectStore(f"memory://{tmp_path.name}/x")
    for number in range(3):
        folder = Folder(tmp_path / str(number), number, launch=f"launch {number}")
        folder.log(1)
        uploader = upload_all(folder.path, store)
    assert len(uploader._read_attempts()) == 3
    before = store.cost.gets
    assert len(uploader._read_attempts()) == 3
    assert store.cost.gets == before
