"""The table of how language-model training fails: each row has a rule, or says what to log."""

import re
from pathlib import Path

import pytest

from rlvitals import metrics
from rlvitals.rules import CATALOGUE, kinds
from rlvitals.types import Profile

PAGE = Path(__file__).resolve().parent.parent / "docs" / "language-failures.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if re.match(r"\| \d", line)
]
COUNT = 33  # failures; the last is several
RULES = {rule.name: rule for rule in CATALOGUE}
NAMES = {metric.name for metric in metrics.CATALOGUE}
LANGUAGE = {*kinds.LANGUAGE, Profile.SUPERVISED}
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0].strip('| ')} {row[1]}")


def named(row):
    return re.findall(r"\[([a-z-]+)\]\(rules/([a-z-]+)\.md\)", row[3])


def test_every_failure_has_a_row():
    assert [int(row[0].strip("| ")) for row in ROWS][:COUNT] == list(range(1, COUNT + 1))


@each_row
def test_a_row_names_a_rule_of_language_models_or_what_to_log(row):
    assert len(row) == 4, row
    for text, page in named(row):
        assert text == page
        assert not RULES[text].profiles or LANGUAGE.intersection(RULES[text].profiles), text
    assert named(row) or "Log " in row[3]


@each_row
def test_numbers_are_metrics(row):
    for name in re.findall(r"`([a-z]+/[\w/]+)`", row[2]):
        assert name in NAMES


@each_row
def test_a_named_rule_reads_a_number_of_the_row(row):
    """A row whose rules ask for none of its numbers would promise what nobody judges."""
    listed = set(re.findall(r"`([a-z]+/[\w/]+)`", row[2]))
    asked = [{m.name for m in (*r.needs, *r.needs_any)} for r in (RULES[n] for n, _ in named(row))]
    assert not asked or any(not metrics or metrics & listed for metrics in asked)
