"""The checklist of the guides says nothing that is not so: its tests exist, its commands parse."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

from rlvitals import rules
from rlvitals.cli import COMMAND_GROUPS
from rlvitals.cli.program import parser

ROOT = Path(__file__).resolve().parent.parent
LIST = tomllib.loads((ROOT / "tests" / "checklist.toml").read_text(encoding="utf-8"))
ROWS = LIST["row"]
EVERY = 302  # rows
SHOWN_BY = sorted({name for row in ROWS for name in row.get("by", ())})


def test_every_row_is_there_once():
    assert [row["number"] for row in ROWS] == list(range(1, EVERY + 1))


def test_a_row_is_shown_by_something_or_open():
    for row in ROWS:
        assert set(row) <= {"number", "guide", "item", "status", "note", "by"}, row
        assert re.fullmatch(r"00[0-4]:\d+(-\d+)?(,\d+(-\d+)?)*", row["guide"]), row
        assert row["item"], row
        if row["status"] == "shown":
            assert row["by"], row
        else:
            assert row["status"] == "open", row
            assert bool(row.get("by")) == bool(row.get("note")), f"say which part is there: {row}"


def test_what_shows_a_row_exists():
    commands = [name for name in SHOWN_BY if name.startswith("rlvitals ")]
    for name in commands:
        parser(COMMAND_GROUPS).parse_args(name.split()[1:])
    assert [name for name in SHOWN_BY if name not in commands and not _is_defined(name)] == []


def _is_defined(name):
    path, _, test = name.partition("::")
    base, _, parameter = test.partition("[")
    known = not parameter or parameter.removesuffix("]") in _parameters(path)
    return base in _tests(path) and known


def test_what_shows_a_row_is_collected(collected_whole):
    """Of the files that this session collects: by its whole id, or as a test with cases."""
    missing = [
        name
        for name in SHOWN_BY
        if (ids := collected_whole.get(name.partition("::")[0])) is not None
        and not (name in ids or any(one.startswith(f"{name}[") for one in ids))
    ]
    assert missing == []


def test_the_count_is_the_one_that_is_said():
    count = Counter(row["status"] for row in ROWS)
    begun = sum(row["status"] == "open" and "by" in row for row in ROWS)
    assert LIST["count"] == {"shown": count["shown"], "open": count["open"], "begun": begun}


def _tree(path):
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def _tests(path):
    return {node.name for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef)}


@cache
def _parameters(path):
    """The ids of the two parametrised tests that rows name: by rule, and by the guides' metrics."""
    if path == "tests/test_rules.py":
        return {rule.name for rule in rules.CATALOGUE}
    guides = next(
        node.value
        for node in _tree(path).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "GUIDES"
    )
    return {"-".join(row) for row in ast.literal_eval(guides)}
