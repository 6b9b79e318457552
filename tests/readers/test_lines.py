import io
import json
import os
import tracemalloc

import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.json_lines import MAX_ROW_DEPTH, Objects, flatten, parse_object
from rlvitals.readers.formats.lines import MAX_LINE_BYTES, Lines, open_log, read_head
from rlvitals.readers.formats.rows import Rows, read_header


def test_lines_are_numbered_and_placed():
    data = b"\xef\xbb\xbfa\r\n\nc\xff\n half"
    lines = Lines(io.BytesIO(data))
    assert [tuple(line) for line in lines] == [(1, 0, 6, "a"), (2, 6, 7, ""), (3, 7, 10, "c�")]
    assert lines.torn
    assert lines.position().offset == 10


def test_lines_across_chunks():
    data = b"".join(b"%d\n" % i for i in range(400_000))
    texts = [line.text for line in Lines(io.BytesIO(data))]
    assert texts == [str(i) for i in range(400_000)]


def test_a_line_of_100_mb_is_skipped_in_little_memory():
    data = io.BytesIO(b"a\n" + b"x" * 100_000_000 + b"\nb\n")
    tracemalloc.start()
    lines = Lines(data)
    texts = [line.text for line in lines]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert texts == ["a", "b"]
    assert lines.notes() == ["1 line over 16 MiB skipped: the first is line 2"]
    assert peak < 4 * MAX_LINE_BYTES


def test_another_file_in_its_place_is_read_from_its_start():
    lines = Lines(io.BytesIO(b"a\nb\n"))
    assert len(list(lines)) == 2
    for other in (b"c\nd\n", b"a\n", b""):
        again = Lines(io.BytesIO(other), lines.position())
        assert again.replaced
        assert "".join(line.text for line in again).encode() == other.replace(b"\n", b"")
    grown = Lines(io.BytesIO(b"a\nb\nc\n"), lines.position())
    assert not grown.replaced
    assert [line.number for line in grown] == [3]


def test_what_cannot_be_opened_says_why(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, why in [
        (tmp_path, "a folder"),
        (tmp_path / "gone.csv", "this path does not exist"),
        (loop, "symbolic links"),
        (pipe, "not a regular file"),
        (tmp_path / "a\0b", "no file can have"),
    ]:
        with pytest.raises(UnreadableLog, match=why) as caught:
            read_head(path)
        assert str(tmp_path)[:8] in caught.value.where


@pytest.fixture
def nobody():
    """Root may read everything: be someone else for a while."""
    if os.geteuid():
        yield
    else:
        os.seteuid(65534)
        yield
        os.seteuid(0)


def test_no_permission(tmp_path, nobody):  # noqa: ARG001  # who we are
    path = tmp_path / "log.csv"
    if os.access(tmp_path, os.W_OK, effective_ids=True):
        path.write_text("a\n")
        path.chmod(0)
    with pytest.raises(UnreadableLog, match="Permission denied"):
        read_head(path)


def test_a_file_that_fails_while_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a\n")
    with pytest.raises(UnreadableLog, match="Stale file handle"), open_log(path):
        raise OSError(116, "Stale file handle")


def test_names_are_told_apart():
    names, start = read_header(io.BytesIO(b"\n a ,b,,a,a.1\n1,2,3,4,5\n"))
    assert names == ["a", "b", "column 3", "a.1", "a.1.1"]
    assert start.line == 2
    assert read_header(io.BytesIO(b"a,b")) is None


def rows_of(data, width=0):
    rows = Rows(Lines(io.BytesIO(data)), width)
    return [(row.line, row.fields) for row in rows], rows


def test_rows_of_another_width_are_refused_and_counted():
    found, rows = rows_of(b"1,2\n1,2,3\n\n4,5\n6\n")
    assert found == [(1, ["1", "2"]), (4, ["4", "5"])]
    assert rows.notes() == ["2 rows refused: line 2 has 3 fields under 2 names"]


def test_quoted_cells_hold_commas_quotes_and_newlines():
    found, rows = rows_of(b'1,"a, ""b""\nc"\r\n2,d\n')
    assert found == [(1, ["1", 'a, "b"\nc']), (3, ["2", "d"])]
    assert rows.notes() == []


def test_an_unclosed_quote_costs_its_own_row_only():
    found, rows = rows_of(b'1,2\n3,"4\n5,6\n7,8\n')
    assert [fields for _, fields in found] == [["1", "2"], ["5", "6"], ["7", "8"]]
    assert rows.notes() == ["1 row refused: line 2 opens a quote that it does not close"]


def test_an_open_quote_at_the_end_is_left_for_the_next_reading():
    found, rows = rows_of(b'1,2\n3,"4\n')
    assert found == [(1, ["1", "2"])]
    assert rows.position().line == 1


def test_objects():
    data = b'{"a": NaN}\n\n[1]\nnull\n{"a": 1\n{"b": {"c": 2}}\n{"half": '
    objects = Objects(Lines(io.BytesIO(data)))
    found = list(objects)
    assert [number for number, _ in found] == [1, 6]
    assert "3 lines refused: line 3 is not a JSON object" in objects.notes()


def test_nesting_is_flattened_to_a_depth():
    assert list(flatten({"a": {"b": 1, "c": {}}, "d": [2]})) == [("a/b", 1), ("d", [2])]
    deep = leaf = {}
    for _ in range(100):
        leaf["k"] = {"v": 1}
        leaf = leaf["k"]
    assert len(list(flatten(deep))) == MAX_ROW_DEPTH - 1


def test_objects_that_would_break_a_parser():
    assert parse_object('{"a":' * 100_000 + "1" + "}" * 100_000) is None
    assert parse_object('{"a": ' + "9" * 5000 + "}") is None
    assert json.dumps(parse_object(r'{"\ud800": "\ud83d\ude00"}'), ensure_ascii=False).encode()
