"""SQLite's index and ClickHouse give the same answers: asked of the real engine, in chdb.

chdb is 534 MB: its packages are not in the development environment. `pip install
'rlvitals[soak]'`, then `make soak` runs these.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import random_indexes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlvitals
from rlvitals.cli import index_runs, main
from rlvitals.errors import UsageError
from rlvitals.storage.blocks import Writer
from rlvitals.storage.index import Index
from rlvitals.storage.run_folder import block_files

pytest.importorskip("chdb", reason="the engine of ClickHouse: pip install 'rlvitals[soak]'")
pytestmark = pytest.mark.soak

from rlvitals.clickhouse import fill, store_tables  # noqa: E402 - after the skip
from rlvitals.clickhouse.connection import Connection  # noqa: E402
from rlvitals.clickhouse.run_store import RunStore  # noqa: E402

BUCKET = 4  # points: short series have inner buckets and edges
RANGES = [
    (1,),
    (3,),
    (7, 0, 20),
    (800,),
    (2, None, 5),
    (2, 3, None),
    (5, 30, 20),
    (4, -(2**62), 2**62),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """One folder: a process has one engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_tables, "BUCKET_POINTS", BUCKET)
        yield f"chdb:{tmp_path_factory.mktemp('chdb')}"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def new_store(url, root):
    """Open an empty database."""
    with Connection(url) as connection:
        connection.command("DROP DATABASE IF EXISTS rlvitals SYNC")
    return RunStore.create(url, str(root))


def judge(index, runs):
    words, summaries, findings = random_indexes.verdicts(runs)
    index.note(words, "judge", summaries, findings)


def same_points(left, right):
    return all(
        np.array_equal(
            getattr(left, name), getattr(right, name), equal_nan=name in {"times", "values"}
        )
        for name in left.__slots__
    )


def assert_same(index, store):
    """Compare all that both can be asked of their runs."""
    entries = index.search()
    assert store.search() == entries
    assert len(store) == len(index)
    assert store.summaries() == index.summaries()
    for sort in ("name", "step", "newest"):
        assert store.search("", sort, 2) == index.search("", sort, 2)
    for path in [*(entry.path for entry in entries), "no such run"]:
        assert store.findings(path) == index.findings(path)
        last = index.last(path)
        assert store.last(path).keys() == last.keys()
        for key, point in last.items():
            np.testing.assert_equal(tuple(store.last(path)[key]), tuple(point))
            for args in RANGES:
                points = index.points(path, key, *args)
                assert same_points(store.points(path, key, *args), points), (path, key, args)
    with pytest.raises(KeyError):
        store.points("no such run", "loss", 3)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(
    random_indexes.ROOTS,
    random_indexes.ROOTS,
    st.tuples(st.lists(random_indexes.WORDS, min_size=12, max_size=12), st.booleans()),
)
def test_random_roots_and_searches(url, root, runs, later, asked):
    """Fill, fill what came later, replay, and ask both."""
    words, replay = asked
    random_indexes.write(root, runs)
    with Index(root) as index, new_store(url, root) as store:
        index.refresh()
        judge(index, runs)
        fill.Filler(index, store).fill()
        for path, content in later.items():
            if (root / path).exists():  # grows by one attempt
                grow(root / path, content["attempts"][:1])
            else:
                random_indexes.write_run(root / path, content)
        index.refresh()
        judge(index, later)
        fill.Filler(index, store).fill()
        if replay:
            for table in ("series", "pixels"):
                store.connection.command(f"TRUNCATE TABLE {table}")
            store.connection.command("TRUNCATE TABLE runs")
            fill.Filler(index, store).fill()
        assert_same(index, store)
        records = list(index.records())
        for word in words:
            try:
                answer = index.search(word)
            except UsageError:
                with pytest.raises(UsageError):
                    store.search(word)
                continue
            assert store.search(word) == answer
            assert {e.path for e in answer} == {
                r.entry.path for r in records if random_indexes.fits(r, word)
            }


def grow(folder, attempts):
    from rlvitals.storage.run_folder import RunFolder

    for attempt in attempts:
        _, _, file = RunFolder.open(folder).begin()
        writer = Writer(file)
        random_indexes.append(writer, attempt)
        writer.close()


RUN = {"name": "n", "project": "", "group": "", "notes": "", "tags": (), "seed": 1,
       "settings": {"lr": 0.5}, "verdict": "learning", "attempts": []}  # fmt: skip


def points_of(count, start=0):
    return {"loss": [(10 * n, n / 7) for n in range(start, start + count)]}


def counts(store):
    """Count the stored points, before and after what is doubled is put together."""
    ((rows,),) = store.connection.query("SELECT count() FROM points FINAL")
    ((count,),) = store.connection.query("SELECT sum(n) FROM (SELECT max(points) AS n FROM series "
                                         "GROUP BY run, key, attempt)")  # fmt: skip
    return rows, count


def test_only_what_is_new_is_inserted_while_a_run_grows(url, root):
    random_indexes.write(root, {"a": RUN, "b": {**RUN, "attempts": [points_of(9)]}})
    file = root / "a" / "blocks"
    grow(root / "a", [points_of(10)])
    with Index(root) as index, new_store(url, root) as store:
        index.refresh()
        filler = fill.Filler(index, store)
        assert (filler.fill().points, filler.fill().points) == (19, 0)
        writer = Writer(next(file.glob("*.rlv")))
        for size in (3, 5):  # in one process, by its cursor
            random_indexes.append(writer, points_of(size, 10))
            index.refresh()
            assert filler.fill().points == size
        random_indexes.append(writer, points_of(4, 20))
        index.refresh()
        assert fill.Filler(index, store).fill().points == 4  # in another, by what is stored
        writer.close()
        assert main(["compact", str(root / "b")]) == 0
        index.refresh()
        assert fill.Filler(index, store).fill().points == 0
        assert_same(index, store)


def test_a_run_that_was_begun_anew_and_one_that_is_gone(url, root):
    random_indexes.write(root, {name: {**RUN, "attempts": [points_of(9)]} for name in "abc"})
    with Index(root) as index, new_store(url, root) as store:
        index.refresh()
        fill.Filler(index, store).fill()
        for name in "ab":
            shutil.rmtree(root / name)
        random_indexes.write_run(root / "a", {**RUN, "attempts": [points_of(3, 50)]})
        index.refresh()
        filled = fill.Filler(index, store).fill()
        assert (filled.points, filled.removed) == (3, 1)
        assert counts(store) == (12, 12)
        assert_same(index, store)
        random_indexes.write_run(root / "b", {**RUN, "attempts": [points_of(2)]})
        index.refresh()
        fill.Filler(index, store).fill()
        assert_same(index, store)


def test_the_rank_that_names_the_metrics_may_come_late(url, root):
    random_indexes.write(root, {"a": {**RUN, "attempts": [{}]}})
    rank_0 = block_files(root / "a")[0].path
    rank_1 = Writer(rank_0.with_name("1-1.rlv"))
    random_indexes.append(rank_1, points_of(5))
    with Index(root) as index, new_store(url, root) as store:
        index.refresh()
        fill.Filler(index, store).fill()
        assert store.last("a").keys() == {"loss"}
        writer = Writer(rank_0)
        random_indexes.append(writer, points_of(7))
        writer.close()
        rank_1.close()
        index.refresh()
        fill.Filler(index, store).fill()
        assert store.last("a").keys() == {"loss", "rank/1/loss"}
        assert_same(index, store)


def test_a_database_holds_the_runs_of_one_root(url, root):
    random_indexes.write(root, {"a": RUN})
    new_store(url, root).__exit__(None, None, None)
    with pytest.raises(UsageError, match="holds the runs of"):
        RunStore.create(url, "/elsewhere")


POINTS = """INSERT INTO points SELECT 'run', concat('key ', toString(intDiv(number, 300000))), 1,
    number % 300000, 10 * (number % 300000), 0, cityHash64(number) FROM numbers(1200000)"""


def rows_read(store, ask):
    """Return the number of rows that the engine reads for a call, by its own count."""
    query = "SELECT value FROM system.events WHERE event = 'SelectedRows'"
    ((before,),) = store.connection.query(query)
    ask()
    ((after,),) = store.connection.query(query)
    return after - before


def test_a_plot_reads_buckets_and_the_edges_of_its_columns(url, root, monkeypatch):
    monkeypatch.setattr(store_tables, "BUCKET_POINTS", 128)
    with new_store(url, root) as store:
        store.connection.command(POINTS)
        whole = rows_read(store, lambda: store.points("run", "key 2", 100))
        # `pixels` has 9,376 rows; each edge is a bucket of 128 points, in granules of 256.
        assert 9_376 < whole < 3 * 9_376 + 99 * 2 * 256
        part = rows_read(store, lambda: store.points("run", "key 2", 100, 1_000_000, 1_010_000))
        assert part < 5 * 9_376 + 20 * 256


KILLED = """
    import os, sys
    from pathlib import Path
    from rlvitals.clickhouse import connection, fill, store_tables
    from rlvitals.clickhouse.run_store import RunStore
    from rlvitals.storage.index import Index

    store_tables.BUCKET_POINTS = 4
    fill.MAX_BATCH_POINTS = 7
    insert, left = connection.Connection.insert, int(sys.argv[3])
    def counted(self, *args):
        global left
        if not left:
            os.kill(os.getpid(), 9)
        left -= 1
        insert(self, *args)
    root = Path(sys.argv[1])
    with Index(root) as index, RunStore.create(sys.argv[2], str(root)) as store:
        connection.Connection.insert = counted
        index.refresh()
        fill.Filler(index, store).fill()
"""


def test_a_fill_that_is_killed_at_any_insert_is_made_whole(tmp_path, root):
    runs = {name: {**RUN, "attempts": [points_of(9), points_of(6)]} for name in "ab"}
    random_indexes.write(root, runs)
    url = f"chdb:{tmp_path / 'killed.chdb'}"
    code = textwrap.dedent(KILLED)
    for inserts in (0, 1, 3, 99):
        command = [sys.executable, "-c", code, str(root), url, str(inserts)]
        process = subprocess.run(command, check=False, env=os.environ)
        assert process.returncode == (0 if inserts == 99 else -signal.SIGKILL)
    query = "select run, count() from points group by run order by run"
    asked = subprocess.run(
        [sys.executable, "-m", "rlvitals", "sql", url, query, "--csv"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert asked.stdout == "run,count()\na,15\nb,15\n"


def test_the_commands_ask_the_engine(url, root, capsys):
    random_indexes.write(root, {"a": {**RUN, "attempts": [points_of(40)]}, "b'": RUN})
    sample = {"prompt": "p", "completion": "yes", "reward": 0.5, "rewards": {"format": 1.0}}
    with rlvitals.start(root / "c") as run:
        run.log_rollouts(1, [sample] * 3)
        run.log_rollouts(2, [sample] * 2)
    new_store(url, root.resolve()).__exit__(None, None, None)
    assert main(["index", str(root), "--to", url]) == 0
    assert "3 runs written, " in (printed := capsys.readouterr().out)
    assert "5 rollouts" in printed
    assert main(["sql", url, "select step, count() from rollouts group by step", "--csv"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == ["1,3", "2,2"]
    assert main(["runs", "--index", url, "--json", "--search", "lr<1"]) == 0
    by_engine = json.loads(capsys.readouterr().out)
    assert main(["runs", str(root), "--json", "--search", "lr<1"]) == 0
    assert json.loads(capsys.readouterr().out) == by_engine
    code = main(["triage", "--index", url, "--json"])
    assert {row["run"] for row in json.loads(capsys.readouterr().out)["runs"]} == {"a", "b'", "c"}
    assert code in {0, 1, 4}
    query = "select key, value from last_values where run = 'a'"
    assert main(["sql", url, query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"key": "loss", "value": 39 / 7}]
    for statement in ("drop table points", "select 1 settings readonly = 0"):
        assert main(["sql", url, statement]) == 2


def test_follow_inserts_what_a_live_run_logs(url, root, capsys, monkeypatch):
    """A round each time that the command would sleep; the last is cut by Ctrl-C."""
    random_indexes.write(root, {"a": {**RUN, "attempts": [points_of(9)]}})
    new_store(url, root.resolve()).__exit__(None, None, None)
    pauses = []

    def log_meanwhile(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt
        grow(root / "a", [points_of(len(pauses))])

    monkeypatch.setattr(index_runs.time, "sleep", log_meanwhile)
    assert main(["index", str(root), "--to", url, "--follow", "--every", "7"]) == 130
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[1] for line in printed] == ["9 points", "1 point", "2 points"]
    assert pauses == [7.0, 7.0, 7.0]
    with Index(root) as index, RunStore(url) as store:
        index.refresh()
        assert_same(index, store)


def test_a_page_is_filtered_and_drawn_from_the_engine(url, root):
    from starlette.testclient import TestClient

    from rlvitals import settings as options
    from rlvitals.server.app import build

    random_indexes.write(root, {name: {**RUN, "attempts": [points_of(40)]} for name in "ab"})
    with Index(root) as index, new_store(url, root) as store:
        index.refresh()
        fill.Filler(index, store).fill()
        shutil.rmtree(root / "b")  # what is not in its folder any more can only come from there
        app = build([root], options.load(root), store=store)
        with TestClient(app, base_url="http://127.0.0.1") as client:

            def count(words):
                return client.get("/api/runs", params={"search": words}).json()["total"]

            deadline = time.monotonic() + 60.0
            while count("") < 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert (count("lr<1"), count("lr>1")) == (2, 0)
            plot = {"key": "a", "metric": "loss", "width": 800}
            assert client.get("/api/pixels", params=plot).json()["count"] == 40
