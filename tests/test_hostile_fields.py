"""No field of our own files, whatever it holds, makes a traceback: it is dropped and named."""

import contextlib
import io
import json
import math
import shutil
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import xxhash
from effort import cases, sampled
from hostile_fields import (
    FILES,
    VALUES,
    change,
    change_all,
    changed,
    fields,
    fresh,
    recorded,
    verbs,
)

from rlvitals.checkpoints import inspect_run, manifest, progress
from rlvitals.cli import main
from rlvitals.errors import VitalsError
from rlvitals.readers import native
from rlvitals.storage import events, run_folder
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE, About, Attempt
from rlvitals.tracking import exit_reason

VERBS = tuple(verbs(Path("a"), Path("b"), Path("c")))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "runs" / "r"
    recorded(folder)
    return folder


@pytest.fixture(scope="module")
def hostile_run(run, tmp_path_factory):
    """Return the run with every field changed, by the values in turn from one on."""

    @cache
    def changed_run(first):
        folder = fresh(run, tmp_path_factory.mktemp("wrong") / "r")
        change_all(folder, first)
        return folder

    return changed_run


def ends_well(argv, codes):
    """Run a command in this process: its exit code is one of those documented."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(one) for one in argv])
    assert code in codes, (code, err.getvalue()[-500:])
    assert "Traceback (most recent call last)" not in err.getvalue()
    return out.getvalue(), err.getvalue()


def is_typed(about):
    """Tell whether every field of an About is of the type that it declares."""
    assert isinstance(about, About)
    for name in ("id", "name", "project", "group", "notes", "framework"):
        getattr(about, name).encode()
    for name in ("tags", "command"):
        assert all(one.encode() is not None for one in getattr(about, name))
    for name in ("settings", "git", "host", "more"):
        json.dumps(getattr(about, name), ensure_ascii=False).encode()
        assert isinstance(getattr(about, name), Mapping)
    assert about.seed is None or (type(about.seed) is int and math.isfinite(float(about.seed)))
    assert 0 <= about.created < 1e12
    for one in about.attempts:
        assert isinstance(one, Attempt)
        assert all(type(at) is int for at in (one.number, one.pid, one.world_size))
        assert 0 <= one.started < 1e12
        (one.launch + one.host).encode()


def reads_run(folder):
    is_typed(run_folder.read_about(folder / RUN_FILE))
    native.read(folder / RUN_FILE, None)


def reads_events(folder):
    found = events.read(folder / EVENTS_FILE)
    for event in found.events:
        event.kind.encode()
        assert math.isfinite(event.time)
        assert event.step is None or -(2**63) <= event.step < 2**63
        json.dumps(event.facts, ensure_ascii=False).encode()
    exit_reason.read(folder, found.events, 1)
    native.read(folder / RUN_FILE, None)


def reads_beat(folder):
    found = exit_reason.read(folder, [], 1)
    for one in found.open:
        assert type(one.pid) is type(one.attempt) is type(one.rank) is int
        assert math.isfinite(one.beat)
        (one.host + one.boot).encode()


def reads_manifest(folder):
    inspect_run.inspect(folder)
    sealed = manifest.read(folder / "checkpoint-40")
    assert type(sealed.step) is type(sealed.sequence) is type(sealed.attempt) is int
    assert 0 <= sealed.created < 1e12
    json.dumps(sealed.facts, ensure_ascii=False).encode()
    assert all(isinstance(one, float) for one in sealed.metrics.values())
    assert all(isinstance(one, str) for one in sealed.versions.values())


READ = {
    "run.json": reads_run,
    "end": reads_events,
    "note": reads_events,
    "progress": progress.read,
    "manifest": reads_manifest,
    "heartbeat": reads_beat,
}


@pytest.mark.parametrize("file", FILES)
def test_each_field_is_read_as_its_type_or_dropped(run, tmp_path, file):
    folder = fresh(run, tmp_path / "r")
    name = FILES[file].name
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for place in fields(fresh(run, tmp_path / "other"), file):
        for word, value in list(VALUES.items())[:: cases(6, 1)]:
            change(folder, file, place, value)
            try:
                with contextlib.suppress(VitalsError):  # it is refused in words
                    READ[file](folder)
            except Exception as error:
                raise AssertionError(f"{name} {place} = {word}") from error
            finally:
                for path, data in before.items():
                    path.write_bytes(data)


@pytest.mark.parametrize("first", sampled(range(0, len(VALUES), 9), 3))
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_ends_in_a_traceback(run, hostile_run, tmp_path, verb, first):
    """Every field of every file is wrong at once, each by another value."""
    folder = fresh(hostile_run(first), tmp_path / "runs" / "r")
    (tmp_path / "out").mkdir()
    ends_well(*verbs(folder, run, tmp_path / "out")[verb])


def test_an_event_at_a_time_that_no_calendar_holds_is_left_out(run, tmp_path):
    folder = fresh(run, tmp_path / "runs" / "r")
    count = len(events.read(folder / "events.jsonl").events)
    change(folder, "end", ("time",), VALUES["2^63"])
    assert len(events.read(folder / "events.jsonl").events) == count - 1
    (tmp_path / "out").mkdir()
    ends_well(*verbs(folder, run, tmp_path / "out")["report"])


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_ends_in_a_traceback_for_any_field_and_value(run, tmp_path, verb, file):
    """Each field gets a quarter of the values, the next field the next: all values are met.

    That a reader takes every pair is `test_each_field_is_read_as_its_type_or_dropped`.
    """
    places = fields(fresh(run, tmp_path / "other"), file)
    pairs = [
        (place, value)
        for i, place in enumerate(places)
        for k, value in enumerate(VALUES)
        if (i + k) % 4 == 0
    ]
    attempt(run, tmp_path, file, verb, pairs)


def attempt(run, tmp_path, file, verb, pairs):
    for place, value in pairs:
        folder = fresh(run, tmp_path / "runs" / "r")
        change(folder, file, place, VALUES[value])
        output = tmp_path / "out"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        argv, codes = verbs(folder, run, output)[verb]
        try:
            ends_well(argv, codes)
        except Exception as error:
            raise AssertionError(f"{verb}: {FILES[file].name} {place} = {value}") from error


def test_a_bad_field_is_named_and_the_rest_is_read(run, tmp_path):
    folder = fresh(run, tmp_path / "runs" / "r")
    change(folder, "run.json", ("seed",), "x")
    change(folder, "run.json", ("settings", "lr"), 10**400)
    change(folder, "end", ("step",), float("inf"))
    log, _ = native.read(folder / RUN_FILE, None)
    assert "run.json: seed is not an integer: dropped" in log.notes
    assert "run.json: settings/lr exceeds the range of float64: dropped" in log.notes
    assert "events.jsonl: event finish: step is not a 64-bit integer: dropped" in log.notes
    assert log.settings["net/sizes"] == "[8, 8]"
    assert len(log.series["rollout/ep_rew_mean"]) == 40
    assert log.ending.exit_code == 0


@pytest.mark.parametrize("place", [("name",), ("seed",), ("created",), ("tags",)])
def test_one_bad_run_does_not_hide_the_others(run, tmp_path, place):
    root = tmp_path / "runs"
    for name in ("good", "bad", "worse"):
        fresh(run, root / name)
    change(root / "bad", "run.json", place, [10**400])
    (root / "worse" / RUN_FILE).write_bytes(b'{"format": 1, "written_by": "rlvitals", ')
    for copied in (root / "worse").glob(".run.json*"):
        copied.unlink()
    out, err = ends_well(["runs", root], {0})
    assert "good" in out
    assert "bad" in out
    assert f"bad: run.json: {place[0]}" in err
    assert "run.json is damaged" in out
    found = json.loads(ends_well(["runs", root, "--json"], {0})[0])
    assert {one["path"]: one["verdict"] for one in found}["good"] != "unreadable"


def bundled(folder, index):
    """Pack an archive whose list of contents is as given."""
    with tarfile.open(folder / "b.tar", "w") as archive:
        for name, data in (("w/bundle.json", json.dumps(index).encode()), ("w/a", b"x")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return folder / "b.tar"


@pytest.mark.parametrize("value", sampled(VALUES, 2))
def test_no_list_of_a_bundle_makes_a_traceback(tmp_path, value):
    index = {"format": 1, "written_by": "rlvitals", "name": "w",
             "files": [["a", 1, xxhash.xxh3_128(b"x").hexdigest()]]}  # fmt: skip
    for place in (("format",), ("written_by",), ("name",), ("files",), ("files", 0),
                  *(("files", 0, at) for at in range(3))):  # fmt: skip
        archive = bundled(tmp_path, changed(index, place, VALUES[value]))
        ends_well(["unbundle", archive, "-o", tmp_path / "out", "--force"], {0, 2, 3})


def test_a_name_that_utf8_cannot_encode_is_exported(run, tmp_path):
    import rlvitals

    recording = rlvitals.start(tmp_path / "r")
    recording.log(1, {"\ud800/loss": 1.0})
    recording.finish()
    for name in ("rows.csv", "rows.jsonl", "rows.parquet"):
        ends_well(["export", tmp_path / "r", tmp_path / name], {0})
    assert "\\ud800/loss" in (tmp_path / "rows.csv").read_text()
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"step": 1, "\\ud800": 2}\n{"step": 2, "\\ud800": 3}\n')
    ends_well(["export", log, tmp_path / "others.parquet"], {0, 3})
    del run
