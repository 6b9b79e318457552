"""MLflow's two stores, written by MLflow itself: values are those its client returns."""

import math
import os
import shutil
import sqlite3
import sys
from contextlib import closing

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers import mlflow_files, mlflow_sqlite
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.select import claim, reader_of

FILES, SQLITE = mlflow_files.READER, mlflow_sqlite.READER


@pytest.fixture
def written(mlflow_store):
    return mlflow_store


@pytest.fixture
def database(written, tmp_path):
    """Return a copy of the database to change."""
    return shutil.copy(written[0] / "m.db", tmp_path / "m.db")


@pytest.fixture
def meta(written, tmp_path):
    """Return the meta.yaml of a copy of the first run's folder."""
    folder, found = written
    (source,) = (folder / "mlruns").glob(f"*/{found['files'][0][0]}")
    return shutil.copytree(source, tmp_path / "run") / "meta.yaml"


def metas(folder):
    return {path.parent.name: path for path in (folder / "mlruns").glob("*/*/meta.yaml")}


def assert_history(log, history, largest=math.inf):
    """`largest` is what the store's own reader makes of infinity."""
    for key, rows in history.items():
        series = log.series[key]
        expected = sorted(tuple(map(float, row)) for row in rows)
        found = sorted(zip(series.steps, series.times, series.values, strict=True))
        clipped = np.clip(np.array(found), -largest, largest)
        np.testing.assert_array_equal(clipped, np.array(expected))


def test_every_run_of_the_file_store_is_what_mlflow_reads(written):
    folder, found = written
    for run, history in found["files"]:
        path = metas(folder)[run]
        assert reader_of(path) is FILES
        log, _ = FILES.read(path, None)
        assert log.series.keys() == history.keys()
        assert_history(log, history)
        assert log.settings == {"lr": 3e-4, "env/id": "CartPole-v1", "seed": 7}


def test_every_run_of_the_database_is_what_mlflow_reads(written):
    folder, found = written
    path = folder / "m.db"
    assert reader_of(path) is SQLITE
    before = sorted(file.name for file in folder.iterdir())
    runs = SQLITE.runs(path)
    assert list(runs) == [
        "cart/pole/a",
        "cart/pole/b",
        f"cart/pole/a ({found['sqlite'][2][0][:8]})",
        "cart/pole/c",
    ]
    for reader, (_, history) in zip(runs.values(), found["sqlite"], strict=True):
        log, _ = reader.read(path, None)
        assert log.series.keys() == history.keys()
        assert_history(log, history, sys.float_info.max)
        assert math.inf in log.series["odd"].values
        assert log.settings == {"lr": 3e-4, "env/id": "CartPole-v1", "seed": 7}
        assert log.series["again"].steps.tolist() == [70, 7]  # as logged
    assert sorted(file.name for file in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("number", "ended", "notes"),
    [
        (0, True, ()),
        (1, True, ("MLflow says that the run failed",)),
        (2, False, ()),
        (3, True, ("MLflow says that the run was killed",)),
    ],
)
def test_how_runs_ended(written, number, ended, notes):
    folder, found = written
    path = metas(folder)[found["files"][number][0]]
    inner = list(SQLITE.runs(folder / "m.db").values())[number]
    for log, _ in (FILES.read(path, None), inner.read(folder / "m.db", None)):
        assert (log.ending is not None) is ended
        assert log.notes == notes


def test_runs_are_found_by_their_names(written):
    folder, found = written
    names = [run.name for run in sources.find(folder / "mlruns")]
    twins = [f"cart/pole/a ({found['files'][n][0][:8]})" for n in (0, 2)]
    assert sorted(names) == sorted([*twins, "cart/pole/b", "cart/pole/c"])
    (run,) = sources.find(folder / "m.db" / "cart" / "pole" / "b")
    assert run.name == "cart/pole/b"
    assert "again" in sources.read(run)[0].series
    with pytest.raises(UnreadableLog, match="no run called 'cart/b'") as error:
        sources.find(folder / "m.db" / "cart" / "b")
    assert "cart/pole/b" in error.value.hint
    assert "m/cart/pole/b" in [run.name for run in sources.find(folder)]


def test_deleted_runs_and_experiments_are_left_out(written):
    folder, _ = written
    deleted = [path for path in metas(folder).values() if "deleted" in path.read_text()]
    assert deleted
    assert [path for path in deleted if claim(path) is not None] == []
    assert claim(next((folder / "mlruns").glob("*/meta.yaml"))) is None  # an experiment's


def test_runs_that_logged_nothing(meta, database):
    """A finished one is left out, where others logged something; a failed one is a run."""
    shutil.rmtree(meta.parent / "metrics")
    assert claim(meta) is None
    meta.write_text(meta.read_text().replace("status: 3", "status: 4"))
    assert claim(meta) is FILES
    assert FILES.read(meta, None)[0].series == {}
    with closing(sqlite3.connect(database)) as db, db:
        named = "(SELECT run_uuid FROM runs WHERE name IN ('b', 'a'))"
        db.execute(f"DELETE FROM metrics WHERE run_uuid IN {named}")  # noqa: S608 - ours
    assert [name[:11] for name in SQLITE.runs(database)] == [
        "cart/pole/b",
        "cart/pole/a",
        "cart/pole/c",
    ]
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("DELETE FROM metrics")
        db.execute("UPDATE runs SET status = 'FINISHED'")
    assert len(SQLITE.runs(database)) == 4
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE experiments SET lifecycle_stage = 'deleted'")
    assert SQLITE.runs(database) == {}


def test_files_that_grow_are_read_on(meta):
    metrics = [file for file in meta.parent.glob("metrics/**/*") if file.is_file()]
    data = {file: file.read_bytes() for file in metrics}
    whole = log_checks.points(FILES.read(meta, None)[0])
    chance = log_checks.chance_of(1)
    for _ in range(20):
        shutil.rmtree(meta.parent / "metrics")
        cursor, pieces = None, {}
        for share in (0.0, 0.3, 0.7, 1.0):
            for file, text in data.items():
                if share and (share == 1.0 or chance.random() < 0.7):
                    file.parent.mkdir(parents=True, exist_ok=True)
                    size = len(text) if share == 1.0 else int(len(text) * share)
                    file.write_bytes(text[: chance.randint(0, 5) * (share < 1.0) + size])
            log, cursor = FILES.read(meta, cursor)
            for key, columns in log_checks.points(log).items():
                pieces.setdefault(key, []).append(columns)
        found = {key: np.concatenate(columns, axis=1) for key, columns in pieces.items()}
        log_checks.assert_equal(found, whole)
        again, same = FILES.read(meta, cursor)
        assert (again.series, same) == ({}, cursor)


def test_any_truncation_of_a_metric_is_a_prefix(meta):
    file = meta.parent / "metrics" / "odd"
    shutil.rmtree(meta.parent / "params")
    shutil.rmtree(meta.parent / "tags")
    data, whole = file.read_bytes(), FILES.read(meta, None)[0].series["odd"]
    for size in range(len(data)):
        file.write_bytes(data[:size])
        found = FILES.read(meta, None)[0].series.get("odd", whole.tail(0))
        assert len(found) == data[:size].count(b"\n")
        np.testing.assert_array_equal(found.values, whole.values[: len(found)])


def test_a_replaced_metric_is_read_again_with_all_others(meta):
    _, cursor = FILES.read(meta, None)
    (meta.parent / "metrics" / "again").write_text("1700000000000 3.5 1\n")
    log, _ = FILES.read(meta, cursor)
    assert log.notes[0] == REPLACED_NOTE
    assert log.series["again"].values.tolist() == [3.5]
    assert len(log.series["odd"]) == 40


def test_lines_of_other_versions_and_damage(meta):
    text = "1700000000000 1.5\n1700000000001 2.5 3 data 0a1b\n\nx y z\n1 2 3.5\n5\n"
    (meta.parent / "metrics" / "again").write_text(text)
    log, _ = FILES.read(meta, None)
    assert log.series["again"].steps.tolist() == [0, 3]
    assert log.series["again"].times.tolist() == [1.7e9, 1.7e9 + 0.001]
    (note,) = log.notes
    assert note.startswith("metrics/again: 3 lines refused: line 4 is not `milliseconds value")


@pytest.mark.parametrize("text", ["run_id: [", "- 1\nrun_id: 1", "[" * 9999])
def test_a_damaged_meta_is_a_note(meta, text):
    meta.write_text(text)
    log, _ = FILES.read(meta, None)
    assert len(log.series["odd"]) == 40
    assert log.notes[0].startswith("meta.yaml")
    assert FILES.run_name(meta).endswith("/a")  # of its tag


def test_a_pipe_among_the_metrics_does_not_hang(meta):
    os.mkfifo(meta.parent / "metrics" / "pipe")
    os.mkfifo(meta.parent / "params" / "pipe")
    log, _ = FILES.read(meta, None)
    assert log.notes == ("metrics/pipe: not a regular file",)


def test_damaged_files_are_read_or_refused(meta):
    metrics = [*(file for file in meta.parent.glob("metrics/**/*") if file.is_file()), meta]
    data = {file: file.read_bytes() for file in metrics}
    chance = log_checks.chance_of(3)
    for _ in range(200):
        file = chance.choice(metrics)
        damaged = bytearray(data[file])
        for _ in range(chance.randint(1, 9)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        file.write_bytes(damaged)
        log, cursor = FILES.read(meta, None)
        FILES.read(meta, cursor)
        assert all(len(s.steps) == len(s.values) for s in log.series.values())
        file.write_bytes(data[file])


def test_a_growing_database_is_read_on(database, tmp_path):
    name = "cart/pole/b"
    whole = log_checks.points(SQLITE.runs(database)[name].read(database, None)[0])
    run, cursor, pieces = SQLITE.runs(database)[name], None, {}
    growing = tmp_path / "growing.db"
    with closing(sqlite3.connect(shutil.copy(database, growing))) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE kept AS SELECT * FROM metrics")
        db.execute("DELETE FROM metrics")
        db.commit()
        for at in range(0, 350, 37):
            db.execute("INSERT INTO metrics SELECT * FROM kept LIMIT 37 OFFSET ?", (at,))
            db.commit()
            log, cursor = run.read(growing, cursor)
            assert REPLACED_NOTE not in log.notes
            for key, columns in log_checks.points(log).items():
                pieces.setdefault(key, []).append(columns)
        db.execute("UPDATE metrics SET value = value + 1")
        db.commit()
        log, _ = run.read(growing, cursor)
        assert log.notes[0] == REPLACED_NOTE
        assert len(log.series["train/loss"]) == 40
    found = {key: np.concatenate(columns, axis=1) for key, columns in pieces.items()}
    log_checks.assert_equal(found, whole)


def test_a_database_of_before_steps_and_nan_flags(database):
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("CREATE TABLE o AS SELECT key, value, timestamp, run_uuid FROM metrics")
        db.execute("DROP TABLE metrics")
        db.execute("ALTER TABLE o RENAME TO metrics")
        named = "(SELECT run_uuid FROM runs WHERE name = 'b')"
        db.execute(f"DELETE FROM metrics WHERE run_uuid != {named}")  # noqa: S608 - ours
        db.execute("UPDATE runs SET name = NULL, status = 'FINISHED'")
    assert reader_of(database) is SQLITE
    log, _ = SQLITE.read(database, None)  # the only run with a point
    assert log.series["train/loss"].steps.tolist() == [0] * 40
    assert list(SQLITE.runs(database)) == ["cart/pole/b"]  # of its tag


@pytest.mark.parametrize("rounds", [60, pytest.param(3000, marks=pytest.mark.soak)])
def test_bit_flips_of_a_database_are_read_or_refused(database, rounds):
    data = database.read_bytes()
    chance = log_checks.chance_of(5)
    for _ in range(rounds):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 200)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        database.write_bytes(damaged)
        try:
            for run in SQLITE.runs(database).values():
                log, cursor = run.read(database, None)
                run.read(database, cursor)
                assert all(len(s.steps) == len(s.values) for s in log.series.values())
        except UnreadableLog as error:
            assert str(database) in error.where  # noqa: PT017 - both outcomes are allowed
