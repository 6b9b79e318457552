"""The words of a search as SQL, and the index of SQLite by the words' documented meaning.

ClickHouse itself is asked in test_same_answers.py.
"""

import io

import pytest
import random_indexes
from hypothesis import HealthCheck, given, settings

from rlvitals.cli import main
from rlvitals.clickhouse import store_tables
from rlvitals.clickhouse.connection import Connection, is_url
from rlvitals.clickhouse.run_store import compile_extremes, compile_search
from rlvitals.errors import UsageError
from rlvitals.storage.index import Index

HOSTILE = "x'; DROP TABLE runs; --"


@pytest.mark.parametrize(
    "words", [HOSTILE.replace(" ", ""), "tag:'", "name:{p0:String}", "a/b='", "env!=`", "%"]
)
def test_what_a_user_types_is_bound_and_never_part_of_the_statement(words):
    statement, values = compile_search(words, "newest", 3)
    value = values["p0"]
    assert value in words
    blank, _ = compile_search(words.replace(str(value), "Q"), "newest", 3)
    assert statement == blank
    assert all(f"{{{name}:" in statement for name in values)


def test_a_search_names_its_order_and_limit():
    statement, values = compile_search("lr<1e-3 tag:sweep", "step", 10)
    assert "ORDER BY isNull(step), step DESC, path LIMIT {limit:UInt64}" in statement
    assert values == {"p0": 1e-3, "p0_key": "lr", "p0_end": "/lr", "p1": "sweep", "limit": 10}
    with pytest.raises(UsageError, match="no order"):
        compile_search("", "'", None)


def test_pixels_of_a_range_beyond_64_bits_are_counted_in_wider_integers():
    assert "toInt256" not in compile_extremes(0, 10**9, 800)
    assert "toInt256" in compile_extremes(-(2**63), 2**63 - 1, 800)


def test_replays_are_replaced_and_views_know_only_minima_and_maxima():
    assert "ReplacingMergeTree" in store_tables.POINT_TABLE.engine
    for table in (store_tables.SERIES_TABLE, store_tables.PIXEL_TABLE):
        keys = table.engine.partition("ORDER BY ")[2].strip("()").split(", ")
        rest = [column for column in table.columns if column.name not in keys]
        assert all(
            column.kind.startswith(("SimpleAggregateFunction(min", "SimpleAggregateFunction(max"))
            for column in rest
        )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(random_indexes.ROOTS, random_indexes.WORDS)
def test_sqlite_answers_by_the_meaning_of_the_words(tmp_path, runs, words):
    root = tmp_path / "runs"
    random_indexes.write(root, runs)
    with Index(root) as index:
        index.refresh()
        index.note(*_notes(runs))
        try:
            paths = {entry.path for entry in index.search(words)}
        except UsageError:
            with pytest.raises(UsageError):
                compile_search(words, "newest", None)
            return
        records = list(index.records())
        assert paths == {r.entry.path for r in records if random_indexes.fits(r, words)}
        for sort, key in SORTS.items():
            entries = index.search(sort=sort)
            assert entries == tuple(sorted((r.entry for r in records), key=key))
            assert index.search(sort=sort, limit=2) == entries[:2]


SORTS = {
    "name": lambda entry: entry.path.encode(),
    "step": lambda entry: (entry.step is None, -(entry.step or 0), entry.path.encode()),
    "newest": lambda entry: (-(entry.time or entry.created), entry.path.encode()),
}


def _notes(runs):
    words, summaries, findings = random_indexes.verdicts(runs)
    return words, "judge", summaries, findings


@pytest.mark.parametrize(
    "url", ["clickhouse:///db", "clickhouse://host/a/b", "clickhouse://host:x/db",
            "clickhouse://u:secret@host/db?user=1", "chdb:"],
)  # fmt: skip
def test_a_wrong_address_is_named_without_its_password(url):
    assert is_url(url)
    with pytest.raises(UsageError) as caught:
        Connection(url)
    assert "secret" not in str(caught.value)


def test_sql_on_a_folder_is_sqlite_and_reads_only(tmp_path, capsys, monkeypatch):
    content = {"name": "n", "project": "", "group": "g", "notes": "", "tags": ("t",), "seed": 1,
               "settings": {"lr": 0.5}, "attempts": [{"loss": [(1, 2.0), (3, 4.0)]}]}  # fmt: skip
    random_indexes.write(tmp_path / "runs", {"a": content})
    query = """select r.path, r."group", s.number, l.value, count(*) as n from runs r
      join settings s on s.run = r.path and s.key = 'lr' join last_values l on l.run = r.path
      join points p on p.run = r.path"""
    assert main(["sql", str(tmp_path / "runs"), query, "--csv"]) == 0
    assert capsys.readouterr().out == "path,group,number,value,n\na,g,0.5,4.0,2\n"
    for statement in ("drop table points", "delete from runs", "attach 'x' as y", "select 1;;x"):
        assert main(["sql", str(tmp_path / "runs"), statement]) == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("select count(*) from runs"))
    assert main(["sql", str(tmp_path / "runs"), "--json"]) == 0
    assert '"count(*)": 1' in capsys.readouterr().out


def test_help_of_sql_lists_every_public_column(capsys):
    assert main(["sql", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(
        column.name in text and column.doc in text
        for table in store_tables.PUBLIC_TABLES
        for column in table.columns
        if column.doc
    )
