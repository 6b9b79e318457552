"""Changes of runs that are followed, as lines and as objects: each kind, whatever its names."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import made
import numpy as np
import pytest

from rlvitals.following import changes
from rlvitals.following.duration_text import format_duration
from rlvitals.rules.rule import Severity
from rlvitals.types import Budget, Lifecycle, Series
from rlvitals.views import json_view
from rlvitals.views.console import plain
from rlvitals.views.follow import Lines

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "follow-a-run.md"
EVIL = "run\x1b[2J\u202e"
FOUND = made.diagnosis()
RULE, FINDING = FOUND.findings[0]
SERIES = {"loss": Series(np.array([1, 2]), np.array([np.nan, 5.0]), np.array([np.inf, np.nan]))}
AT = (EVIL, 1.7e9)
EVERY = (
    changes.Found(*AT, ("csv",), 1, 2, 2, new=True),
    changes.Renamed(*AT, "before"),
    changes.Points(*AT, "a.csv", SERIES),
    changes.Judged(*AT, FOUND, turned=True, first=False),
    changes.Fired(*AT, RULE, FINDING, 7, "kl-spike"),
    changes.Regraded(*AT, RULE, FINDING, Severity.NOTE, 7),
    changes.Cleared(*AT, RULE, FINDING, "it no longer holds", 7),
    changes.Resumed(*AT, 7, "it grows again after 90 s"),
    changes.Restarted(*AT, "a.csv"),
    changes.Ended(*AT, 7, "failed", "exit code 1", 1),
    changes.Quiet(*AT, 7, 90.0),
    changes.Copy(*AT, "original"),
    changes.Vanished(*AT, "its files are no longer there"),
    changes.Unreadable(*AT, "a.csv", "not a log"),
    changes.Readable(*AT, "a.csv"),
)


def name(change):
    return type(change).__name__.lower()


def test_every_kind_is_here():
    assert {type(change) for change in EVERY} == set(get_args(changes.Change))


@pytest.mark.parametrize("change", EVERY, ids=name)
def test_a_line_for_a_person(change):
    line = Lines().line(change)
    if isinstance(change, changes.Points):
        assert line is None
        return
    text = plain(line, width=100)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert re.match(r"\d\d:\d\d:\d\d  run\\x1b", text)


def test_the_verdict_of_a_run_that_has_only_begun_is_called_provisional():
    trace = replace(FOUND.trace, lifecycle=Lifecycle(live=True))
    for budget, expected in ((Budget(100 * trace.last_step, "set"), True), (None, False)):
        judged = replace(FOUND, trace=replace(trace, budget=budget))
        line = Lines().line(changes.Judged(*AT, judged, turned=True, first=False))
        assert ("provisional" in plain(line, width=100)) is expected


def test_a_silent_run_is_not_told_of_again_and_again():
    lines = Lines()
    judged = changes.Judged(*AT, FOUND, turned=False, first=False)
    later = changes.Judged(EVIL, 1.8e9, FOUND, turned=False, first=False)
    assert lines.line(judged) is not None
    assert lines.line(later) is None
    for change in (EVERY[-2], EVERY[-1], EVERY[-2]):  # lost, found, lost again
        assert lines.line(change) is not None
    assert lines.line(EVERY[-2]) is None
    assert lines.line(changes.Judged("other", 1.8e9, FOUND, turned=False, first=False)) is not None


@pytest.mark.parametrize("change", EVERY, ids=name)
def test_an_object_for_a_program(change):
    line = json_view.change(change)
    assert line.isascii()
    assert "\n" not in line
    document = json.loads(line)
    assert (document["format"], document["change"], document["time"]) == (1, name(change), 1.7e9)
    page = PAGE.read_text()
    (row,) = [row for row in page.splitlines() if row.startswith("| `") and f"`{name(change)}`" in
              row.split("|")[1]]  # fmt: skip
    text = set(re.findall(r"`(\w+)`", row.split("|")[3]))
    if name(change) != "readable":  # it stands beside its opposite
        assert text == document.keys() - {"format", "change", "run", "time"}


def test_new_points_are_told_whole_and_old_ones_counted():
    document = json.loads(json_view.change(EVERY[2]))["series"]["loss"]
    assert document == {"steps": [1, 2], "times": [None, 5.0], "values": ["Infinity", None]}
    first = changes.Points(*AT, "a.csv", SERIES, first=True)
    document = json.loads(json_view.change(first))["series"]["loss"]
    assert document == {"points": 2, "first_step": 1, "last_step": 2}


def test_a_line_says_what_and_where():
    lines = Lines()
    texts = [plain(line, width=100) for c in EVERY if (line := lines.line(c)) is not None]
    text = "\n".join(texts)
    for piece in (
        "a new run: csv, 1 metric, 2 points, at step 2", "was called before so far",
        f"[{RULE.name}]", "(explained by kl-spike)", "it no longer holds",
        "goes on: it grows again after 90 s", "started anew: a.csv holds other rows",
        "ended, failed, at step 7: exit code 1", "quiet: no new row for 90 s, at step 7",
        "gone: its files are no longer there", "cannot be read: a.csv: not a log",
        "a.csv can be read again",
    ):  # fmt: skip
        assert piece in text
    assert len(re.findall(r"\d\d:\d\d:\d\d", text)) == 1, (
        "of one moment and run the time is told once"
    )


def test_notes_are_told_where_they_are_asked_for():
    rule, note = next(pair for pair in FOUND.findings if pair[1].severity is Severity.NOTE)
    fired = changes.Fired(*AT, rule, note, 7)
    assert Lines().line(fired) is None
    assert f"note[{rule.name}]" in plain(Lines(notes=True).line(fired))
    milder = changes.Regraded(*AT, rule, note, Severity.ERROR, 7)
    assert "(was an error" in plain(Lines().line(milder), width=200)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (2e5, "2 days")],
)
def test_spans(seconds, said):
    assert format_duration(seconds) == said
