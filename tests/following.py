"""Follow runs in tests: by a clock of our own, beside which whole runs are read at once."""

import time
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from rlvitals.diagnosis import batch, load
from rlvitals.following import changes
from rlvitals.following.loop import Watch
from rlvitals.readers.discovery import sources
from rlvitals.settings import Settings

CHOSEN = Settings()
UNWATCHED = {"live": None, "live_by": "", "silence": None, "beat_age": None}  # what one look knows


def judge(run, logs, now, grew):
    trace = load.build_trace(run, logs, load.run_overrides(CHOSEN), now, grew)
    return batch.judge_trace((run, CHOSEN), trace)


class Followed:
    """What lies at some paths, followed; time passes only where a test says so."""

    def __init__(self, *paths):
        self.now = time.time()
        self.watch = Watch(
            {Path(path): judge for path in paths}, clock=lambda: self.now, timer=lambda: 0.0
        )

    def look(self, seconds=1.0):
        """Let time pass and return what changed."""
        self.now += seconds
        return list(self.watch.look())

    def settle(self):
        """Let so much time pass that everything is judged as it stands."""
        return [change for _ in range(3) for change in self.look(4000.0)]

    def trace(self, number=0):
        return self.watch.runs[number].diagnosis.trace


def of(kind, told):
    """Return the changes of one kind."""
    return [one for one in told if isinstance(one, kind)]


def kinds(told):
    """Return the names of what was told but points and judgements, in order."""
    plain = (changes.Points, changes.Judged)
    return [type(one).__name__ for one in told if not isinstance(one, plain)]


def points(told):
    """Count the points that were told, by key."""
    count = Counter()
    for change in of(changes.Points, told):
        for key, series in change.series.items():
            count[key] += len(series)
    return dict(count)


def assert_same_trace(found, expected):
    """Two traces hold the same but for their notes and what watching tells of their life."""
    assert sorted(found.series) == sorted(expected.series)
    for name, series in expected.series.items():
        for column in ("steps", "times", "values"):
            np.testing.assert_array_equal(
                getattr(found[name], column), getattr(series, column), err_msg=f"{name} {column}"
            )
    assert replace(found.lifecycle, **UNWATCHED) == replace(expected.lifecycle, **UNWATCHED)
    # Of the columns of one row a reading of many rows may give another order.
    assert sorted(found.unmapped) == sorted(expected.unmapped)
    told = ("measured", "settings", "profile", "budget", "step_unit")
    for name in told:
        assert getattr(found, name) == getattr(expected, name), name
    for held in ("histograms", "texts", "tables"):
        old, new = getattr(expected, held), getattr(found, held)
        assert {key: len(some) for key, some in new.items()} == {
            key: len(some) for key, some in old.items()
        }, held


def assert_same_diagnosis(found, expected):
    assert found.verdict == expected.verdict
    assert [r.name for r in found.clear] == [r.name for r in expected.clear]
    assert [(r.name, a) for r, a in found.undecided] == [(r.name, a) for r, a in expected.undecided]
    for (rule, one), (other, two) in zip(found.findings, expected.findings, strict=True):
        assert rule.name == other.name
        for f in fields(one):
            if f.name != "curve":
                assert repr(getattr(one, f.name)) == repr(getattr(two, f.name)), f.name


def assert_as_read_at_once(followed, path):
    """Every run at a path ends as one reading of it all, at the same moment."""
    runs = {run.name: run for run in sources.find(Path(path))}
    assert sorted(one.name for one in followed.watch.runs) == sorted(runs)
    for one in followed.watch.runs:
        run = runs[one.name]
        logs = sources.read(run)
        known = one.diagnosis
        if known is None:
            assert not any(len(series) for log in logs for series in log.series.values())
            continue
        watched = {name: getattr(known.trace.lifecycle, name) for name in UNWATCHED}
        expected = judge(run, logs, followed.now, None)
        trace = replace(expected.trace, lifecycle=replace(expected.trace.lifecycle, **watched))
        assert_same_trace(known.trace, trace)
        assert_same_diagnosis(known, batch.judge_trace((run, CHOSEN), trace))
