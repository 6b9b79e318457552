"""Trackio's database, written by Trackio itself: values are those its own reader returns."""

import math
import shutil
import sqlite3
from contextlib import closing

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers import trackio
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats import sqlite
from rlvitals.readers.formats.lines import HEAD_BYTES, REPLACED_NOTE
from rlvitals.readers.select import reader_of

READER = trackio.READER


@pytest.fixture
def written(trackio_store):
    return trackio_store


@pytest.fixture
def path(written, tmp_path):
    """Return a copy of the database to change."""
    return shutil.copy(written[0], tmp_path / "p.db")


def change(path, *statements):
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            query, *values = (statement,) if isinstance(statement, str) else statement
            db.execute(query, values)


def files(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_every_run_is_what_trackio_reads(written):
    path, records = written
    assert reader_of(path) is READER
    runs = READER.runs(path)
    assert list(runs) == ["first", "second", f"first ({records[2][0][:8]})"]
    for run, (_, _, rows) in zip(runs.values(), records, strict=True):
        log, _ = run.read(path, None)
        for key in ("train/loss", "return", "kl", "sparse", "ok"):
            expected = [(step, float(row[key])) for step, _, row in rows if key in row]
            series = log.series[key]
            assert series.steps.tolist() == [step for step, _ in expected]
            np.testing.assert_array_equal(series.values, [value for _, value in expected])
            assert np.isfinite(series.times).all()
        assert log.series["deep/a/b"].steps.tolist() == list(range(0, 300, 20))
        assert log.notes == ("30 values that are none, left out: `said`",)


def test_settings_texts_histograms_tables(written):
    log, _ = READER.runs(written[0])["second"].read(written[0], None)
    assert log.settings == {"learning_rate": 3e-4, "env/id": "CartPole-v1", "clip": math.inf}
    assert log.source == "trackio"
    (text,) = log.texts["alerts"]
    assert (text.step, text.text) == (300, "warn: KL: is high")
    assert len(log.histograms["h"]) == 30
    assert log.histograms["h"][2].edges.tolist() == [2.0, 4.25, 6.5, 8.75, 11.0]
    assert log.histograms["h"][2].counts.tolist() == [3, 2, 2, 3]
    table = log.tables["completions"]
    assert table.steps.tolist() == [300, 300]
    assert table.columns == {"reward": [0.5, 1.5], "text": ["x", "y"]}


def test_a_database_of_several_runs_is_not_one(written):
    path, _ = written
    with pytest.raises(UnreadableLog, match="3 runs") as error:
        READER.read(path, None)
    assert f"{path}/first" in error.value.hint
    assert [run.name for run in sources.find(path)][:2] == ["first", "second"]
    assert [run.name for run in sources.find(path.parent)][:2] == ["p/first", "p/second"]
    (run,) = sources.find(path / "second")
    assert len(sources.read(run)[0].series["return"]) == 30


def test_a_database_of_one_run(path, written):
    change(path, ("DELETE FROM metrics WHERE run_id != ?", written[1][0][0]))
    log, cursor = READER.read(path, None)
    assert len(log.series["return"]) == 30
    again, same = READER.read(path, cursor)
    assert again.series == {}
    assert same == cursor


OLD = """
CREATE TABLE o AS
    SELECT id, timestamp, run_name, step, CAST(metrics AS TEXT) AS metrics FROM metrics;
DROP TABLE metrics; ALTER TABLE o RENAME TO metrics;
CREATE TABLE o AS SELECT id, run_name, config, created_at FROM configs;
DROP TABLE configs; ALTER TABLE o RENAME TO configs;
DROP TABLE alerts; DROP TABLE system_metrics"""


def test_a_database_of_before_run_ids(path, written):
    """The tables as Trackio 0.23 had them: a run was its name, the metrics text."""
    change(path, *OLD.split(";"))
    assert reader_of(path) is READER
    runs = READER.runs(path)
    assert list(runs) == ["first", "second"]
    log, _ = runs["second"].read(path, None)
    new, _ = READER.runs(written[0])["second"].read(written[0], None)
    log_checks.assert_equal(log_checks.points(log), log_checks.points(new))
    assert log.settings == new.settings


def test_a_growing_database_is_read_on(path, tmp_path):
    run = READER.runs(path)["second"]
    whole = log_checks.points(run.read(path, None)[0])
    growing = tmp_path / "growing.db"
    pieces, cursor = {}, None
    with closing(sqlite3.connect(shutil.copy(path, growing))) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE kept AS SELECT * FROM metrics")
        db.execute("DELETE FROM metrics")
        db.commit()
        for at in range(0, 93, 7):
            db.execute("INSERT INTO metrics SELECT * FROM kept LIMIT 7 OFFSET ?", (at,))
            db.commit()
            log, cursor = run.read(growing, cursor)
            assert REPLACED_NOTE not in log.notes
            for key, columns in log_checks.points(log).items():
                pieces.setdefault(key, []).append(columns)
    found = {key: np.concatenate(columns, axis=1) for key, columns in pieces.items()}
    log_checks.assert_equal(found, whole)


def test_a_replaced_database_is_read_again(path):
    run = READER.runs(path)["second"]
    _, cursor = run.read(path, None)
    change(path, "UPDATE metrics SET metrics = '{\"a\": 1}'")
    log, _ = run.read(path, cursor)
    assert log.notes == (REPLACED_NOTE,)
    assert len(log.series["a"]) == 31


SYSTEM = """
INSERT INTO system_metrics (run_id, timestamp, run_name, metrics)
SELECT run_id, ?, 'second', ? FROM metrics LIMIT 1"""


def test_the_machine_s_metrics_have_the_step_of_their_time(path):
    change(
        path,
        "DELETE FROM metrics WHERE run_name != 'second' OR id % 31 > 3 OR id % 31 = 0",
        "UPDATE metrics SET timestamp = '2026-01-01T00:00:0' || (id % 31) || '+00:00'",
        *((SYSTEM, f"2026-01-01T00:00:0{n}.5+00:00", f'{{"gpu": {n}}}') for n in range(5)),
    )
    run = READER.runs(path)["second"]
    log, cursor = run.read(path, None)
    steps = log.series["return"].steps.tolist()
    assert log.series["system/gpu"].values.tolist() == [0, 1, 2]
    assert log.series["system/gpu"].steps.tolist() == [steps[0], steps[0], steps[1]]
    change(
        path,
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) SELECT run_id,"
        " '2026-01-01T00:00:09+00:00', run_name, 99, '{}' FROM metrics LIMIT 1",
    )
    more, _ = run.read(path, cursor)
    assert more.series["system/gpu"].values.tolist() == [3, 4]
    assert more.series["system/gpu"].steps.tolist() == [steps[2], steps[2]]


def test_rows_that_are_damaged_are_refused_and_counted(path):
    change(
        path,
        "UPDATE metrics SET metrics = '{' WHERE id = 33",
        "UPDATE metrics SET step = 'x' WHERE id = 34",
        "UPDATE metrics SET timestamp = 'x' WHERE id = 35",
    )
    log, _ = READER.runs(path)["second"].read(path, None)
    assert log.notes[0] == "2 rows refused: metrics row 33 is not a JSON object"
    assert len(log.series["return"]) == 28
    assert np.isnan(log.series["return"].times).sum() == 1


def test_ids_that_are_no_numbers_are_nothing_to_go_by(path):
    change(path, *OLD.split(";"), "UPDATE metrics SET id = 'x'", "UPDATE configs SET id = NULL")
    log, cursor = READER.runs(path)["second"].read(path, None)
    assert len(log.series["return"]) == 30
    assert READER.runs(path)["second"].read(path, cursor)[0].series == {}


@pytest.mark.parametrize("rounds", [50, pytest.param(5000, marks=pytest.mark.soak)])
def test_bit_flips_are_read_or_refused(path, written, rounds):
    data = written[0].read_bytes()
    chance = log_checks.chance_of(5)
    refused = 0
    for _ in range(rounds):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            for run in READER.runs(path).values():
                log, cursor = run.read(path, None)
                run.read(path, cursor)
                assert all(len(s.steps) == len(s.values) for s in log.series.values())
        except UnreadableLog as error:
            refused += 1
            assert str(path) in error.where  # noqa: PT017 - both outcomes are allowed
    assert 0 < refused < rounds
    assert files(path) == ["p.db"]


def test_a_project_that_is_locked_is_named_as_one(path, monkeypatch):
    """Its schema has outgrown the first page, and stands behind what `claims` gets to see."""
    monkeypatch.setattr(sqlite.read_database, "__defaults__", (0.1,))  # seconds, not 5
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        assert path.read_bytes().find(b"run_name") > HEAD_BYTES
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnreadableLog, match="locked by the program that writes it"):
            sources.find(path.parent)
