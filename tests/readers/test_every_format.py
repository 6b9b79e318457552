"""Every reader with a small file of its own: damage, cuts, growth, packing, what is no file."""

import gzip
import io
import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import leveldb
import log_checks
import native
import numpy as np
import pyarrow as pa
import pytest
import tfrecords as tf
from effort import cases
from pyarrow import parquet
from test_rllib import csv_log, json_log
from test_sb3 import monitor_log, sb3_csv_log, sb3_json_log
from test_scheduler_csv import mixed  # noqa: F401 - a fixture
from test_scope import packed
from waiting import HANG_CPU_SECONDS

from rlvitals.errors import UnreadableLog
from rlvitals.readers import READERS
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.select import claim, reader_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TESTS = Path(__file__).parent.parent
RUNS, CONSOLE = TESTS / "runs", Path(__file__).parent / "console"
QUICK, LONG = 40, 2000  # bits flipped


@dataclass(frozen=True)
class Case:
    """A file of a format: where it lies, what it holds, what another run's would hold."""

    reader: str
    name: str  # path of the file that is read
    data: bytes = b""
    other: bytes = b""
    checked: bool = False  # the format has checksums: no wrong number, ever
    appended: bool = True  # any truncation is a prefix
    target: str = ""  # the file that is damaged, where another one is read
    beside: tuple[tuple[str, bytes], ...] = ()


def events(factor):
    rows = (
        tf.event(n, tf.simple("loss", n / factor), tf.simple("a/b", -n), time=1.0e9 + n)
        for n in range(40)
    )
    return tf.VERSION + b"".join(rows)


def wandb(factor):
    rows = ({"_step": n, "_timestamp": 1.7e9 + n, "loss": n / factor} for n in range(60))
    return leveldb.wandb_file(*rows)


def swanlab(factor):
    return leveldb.swanlab_file(*((n, n / factor) for n in range(60)))


def table(head, row, count=40):
    """Return a table's bytes; "N" in a row is its number."""
    return "".join(f"{line}\n" for line in (head, *(row(n) for n in range(count)))).encode()


def shifted(data):
    """Return the same log with other digits, as another run would have written it."""
    return data.translate(bytes.maketrans(b"123456789", b"234567891"))


def text(reader, name, data, other=None, **more):
    return Case(reader, name, data, other or shifted(data), **more)


def recorded(run, name):
    return (RUNS / run / name).read_bytes()


def blocks(*factors):
    """Return the bytes of block files: three key tables, flushed row by row."""
    return [
        native.blocks(*((n, {"loss": n / factor, "kl": -n} if n % 3 else {"eval/loss": n / factor})
                        for n in range(30)))
        for factor in factors
    ]  # fmt: skip


RUN = b'{"format": 1, "written_by": "rlvitals", "id": "a1", "name": "x", "settings": {"lr": 1}}'
META = b"run_id: a1\nrun_name: first\nexperiment_id: '1'\nstatus: 1\nlifecycle_stage: active\n"
POINTS = table("1700000000000 0.5 0", lambda n: f"{1700000000000 + n} {n / 7} {n * 10}")
LIGHTNING = table("epoch,loss,step", lambda n: f"{n // 8},{n / 7},{n * 10}")
DVCLIVE = table("timestamp\tstep\tloss", lambda n: f"{1700000000000 + n}\t{n}\t{n / 7}")
ROWS = table("step,time,loss", lambda n: f"{n},{1.7e9 + n},{n / 7}")
JSON_ROWS = table(
    '{"step": 0, "a": {"b": 1.5}}', lambda n: f'{{"step": {n + 1}, "a": {{"b": {n / 7}}}}}'
)
STATE = recorded("grpo-healthy", "run.json")


def samples(factor):
    columns = {
        "step": [10] * 20,
        "prompt": ["2 + 2 ="] * 20,
        "completion": [f"is {n}" for n in range(20)],
        "accuracy": [n / factor for n in range(20)],
        "advantage": [n - 9.5 for n in range(20)],
    }
    held = io.BytesIO()
    parquet.write_table(pa.table(columns), held)
    return held.getvalue()


def sacred(factor):
    """Return `metrics.json` as Sacred's FileStorageObserver writes it."""
    times = [f"2026-01-01T10:{n:02d}:00.000000" for n in range(40)]
    values = [n / factor for n in range(40)]
    steps = [n * 100 for n in range(40)]
    metrics = {key: {"steps": steps, "timestamps": times, "values": values} for key in "ab"}
    return json.dumps(metrics, sort_keys=True, indent=2).encode()


def evaluations(factor):
    """Return `evaluations.npz` as EvalCallback saves it."""
    held = io.BytesIO()
    results = np.arange(200.0).reshape(40, 5) / factor
    np.savez(
        held, timesteps=np.arange(1, 41) * 500, results=results, ep_lengths=results.astype(int)
    )
    return held.getvalue()


def array(factor):
    held = io.BytesIO()
    np.save(held, np.arange(60) / factor)
    return held.getvalue()


def lists(factor):
    rewards = [n / factor for n in range(60)]
    return json.dumps({"gamma": 0.99, "training_rewards": rewards, "losses": rewards}).encode()


def executed(rows):
    """Return a notebook whose only cell printed `rows`."""
    stream = {"output_type": "stream", "name": "stdout", "text": rows.decode()}
    cell = {"cell_type": "code", "source": ["train()"], "outputs": [stream]}
    return json.dumps({"cells": [cell], "nbformat": 4}).encode()


PRINTED = table("starts", lambda n: f"Episode {n}: reward = {n / 7:.3f}, loss = {n / 9:.3f}")


CASES = (
    Case("rlvitals", "run/run.json", *blocks(7, 9), checked=True, target="run/blocks/1-0.rlv",
         beside=(("run/run.json", RUN),)),
    text("rlvitals", "run/run.json", RUN, target="run/run.json",
         beside=(("run/blocks/1-0.rlv", blocks(7)[0]),)),
    Case("rlvitals", "1-0.rlv", *blocks(7, 9), checked=True),
    Case("rlvitals", "1-0.packed.rlv", *(native.packed(one) for one in blocks(7, 9)),
         checked=True, appended=False),
    Case("tensorboard", "events.out.tfevents.1.h.1.0", events(7), events(9), checked=True),
    Case("wandb", "run-x.wandb", wandb(7), wandb(9), checked=True),
    Case("swanlab", "run-x.swanlab", swanlab(7), swanlab(9), checked=True),
    text("sb3-csv", "progress.csv", sb3_csv_log()),
    text("sb3-json", "progress.json", sb3_json_log()),
    text("sb3-monitor", "0.monitor.csv", monitor_log()),
    text("rllib", "progress.csv", csv_log()),
    text("rllib", "result.json", json_log()),
    text("scheduler-csv", "ppo_metrics_a.csv", b""),  # of a fixture
    text("trainer-state", "trainer_state.json", STATE, appended=False),
    Case("trackio", "p.db", appended=False),  # of a fixture
    Case("mlflow-sqlite", "m.db", appended=False),  # of a fixture
    text("mlflow-files", "1/a1/meta.yaml", POINTS, target="1/a1/metrics/train/loss",
         beside=(("1/a1/meta.yaml", META),)),
    text("mlflow-files", "1/a1/meta.yaml", META, target="1/a1/meta.yaml",
         beside=(("1/a1/metrics/loss", POINTS),)),
    text("lightning", "version_0/metrics.csv", LIGHTNING),
    text("dvclive", "dvclive/plots/metrics/train/loss.tsv", DVCLIVE),
    Case("scope", "scope/train-loss.float", packed(*((n * 10, n / 7) for n in range(60))),
         packed(*((n * 10, n / 9) for n in range(60)))),
    Case("trl-completions", "completions/completions_00010.parquet", samples(7), samples(9),
         appended=False),
    Case("notebook", "train.ipynb", executed(PRINTED), executed(shifted(PRINTED)), appended=False),
    text("console", "sb3.log", (CONSOLE / "sb3.log").read_bytes()[:12000]),
    text("console", "grpo.log", (CONSOLE / "grpo.log").read_bytes()[:12000]),
    text("csv", "run.csv", ROWS),
    text("jsonl", "run.jsonl", JSON_ROWS),
    Case("sacred", "metrics.json", sacred(7), sacred(9), appended=False),
    Case("sb3-evaluations", "evaluations.npz", evaluations(7), evaluations(9), appended=False),
    Case("json-lists", "rewards.json", lists(7), lists(9), appended=False),
    Case("numpy", "rewards.npy", array(7), array(9), appended=False),
    text("headerless-csv", "rewards.csv", table("0.5", lambda n: n / 7)),
    text("repeated-lines", "output.txt",
         table("7: done 1 games, reward 0.5",
               lambda n: f"{7 * n + 14}: done {n + 2} games, reward {n / 7}")),
)  # fmt: skip
ADDED = {"sb3-csv", "rllib", "lightning", "csv"}  # tables that get a new column


@dataclass
class Files:
    """A case on a disk."""

    case: Case
    path: Path
    target: Path
    data: bytes
    other: bytes

    @property
    def alone(self):
        """Whether all numbers stand in the file that is damaged."""
        return not self.case.beside

    @property
    def location(self):
        """The path to look for runs at: the folder, or the file where only a named one is read."""
        return self.path if self.case.reader == "repeated-lines" else self.path.parent

    def read(self):
        """Return the points of all runs of the file, by run and key."""
        return Following(self).read()


class Following:
    """Reads a file again and again as someone who follows it does: by cursor."""

    def __init__(self, files):
        self.path = files.path
        self.reader = next(r for r in READERS if r.name == files.case.reader)
        self.cursors = {}
        self.found = {}

    def read(self):
        runs = self.reader.runs(self.path) if self.reader.runs else {"": self.reader}
        for name, reader in runs.items():
            log, self.cursors[name] = reader.read(self.path, self.cursors.get(name))
            if REPLACED_NOTE in log.notes or any(
                note.endswith(REPLACED_NOTE) for note in log.notes
            ):
                self.found = {k: v for k, v in self.found.items() if k[0] != name}
            for key, points in log_checks.points(log).items():
                before = self.found.get((name, key), np.empty((3, 0)))
                self.found[name, key] = np.concatenate([before, points], axis=1)
        return self.found


def whole(files):
    return Following(files).read()


@pytest.fixture(params=CASES, ids=lambda case: f"{case.reader} {Path(case.name).name}")
def files(request, tmp_path):
    case = request.param
    data, other = case.data, case.other
    if case.reader == "scheduler-csv":
        data = request.getfixturevalue("mixed").read_bytes()
        other = shifted(data)
    elif case.reader == "trackio":
        data = request.getfixturevalue("trackio_store")[0].read_bytes()
    elif case.reader == "mlflow-sqlite":
        data = (request.getfixturevalue("mlflow_store")[0] / "m.db").read_bytes()
    folder = tmp_path / "case"
    for name, content in (*case.beside, (case.target or case.name, data)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    path = folder / case.name
    yield Files(case, path, folder / (case.target or case.name), data, other)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    allowed = {case.name, case.target, *(name for name, _ in case.beside)}
    assert {Path(name).name for name in there} <= {
        f"{Path(name).name}{end}" for name in allowed for end in ("", ".gz", ".zst")
    }, "nothing is written beside a person's files"


def test_no_reader_is_left_out():
    assert {case.reader for case in CASES} == {reader.name for reader in READERS}


def test_the_right_reader_claims_it(files):
    assert reader_of(files.path).name == files.case.reader
    assert sum(points.shape[1] for points in files.read().values()) > 0


def attempt(files):
    """Read a file in full, whatever it holds; None where it is refused."""
    start = time.process_time()
    try:
        claim(files.path)
        found = files.read()
    except UnreadableLog as error:
        assert str(files.path) in error.where  # noqa: PT017 - both outcomes are allowed
        found = None
    assert time.process_time() - start < HANG_CPU_SECONDS
    return found


def is_among(found, original):
    """Tell whether every point that was found is one of the original ones."""
    known, new = (
        {(key, column.tobytes()) for key, points in some.items() for column in points.T}
        for some in (original, found)
    )
    return new <= known


@pytest.mark.parametrize("rounds", [QUICK, pytest.param(LONG, marks=pytest.mark.soak)])
def test_flipped_bits(files, rounds):
    original = files.read()
    flips = leveldb.flip_bits(files.target, files.data, rounds, log_checks.chance_of(rounds))
    for at in flips:
        found = attempt(files)
        if files.case.checked and found is not None:
            assert is_among(found, original), f"a wrong number after a flipped bit at {at}"


def test_truncations(files):
    original = files.read()
    chance = log_checks.chance_of(3)
    for size in sorted(chance.sample(range(len(files.data)), cases(25, 80)), reverse=True):
        os.truncate(files.target, size)
        found = attempt(files)
        if found is None:
            continue
        for key, points in found.items():
            if files.case.appended or files.case.reader == "trainer-state":
                part = original[key][:, : points.shape[1]]
                np.testing.assert_array_equal(points, part, err_msg=f"{key} at {size}")


def states(files):
    """Return the contents that a file has one after another, by what happens to it."""
    data, other = files.data, files.other
    chance = log_checks.chance_of(4)
    sizes = sorted(chance.sample(range(len(data)), 12))
    half = len(data) // 2
    found = {
        "grows": [*(data[:size] for size in sizes), data],
        "is rotated": [data, other, other],
        "is rotated to a shorter one": [data, other[: len(other) // 2], other],
        "starts again": [data, b"", other[:half], other],
        "is cut and goes on": [data, data[:half], data],
        "stays": [data, data, data],
    }
    if files.case.reader in ADDED:
        lines = data.splitlines()
        added = b"".join(
            b"%s,%s\n" % (line, b"new" if not n else b"") for n, line in enumerate(lines)
        )
        found["gets a column"] = [data, added, added + lines[-1] + b",1.5\n"]
    return found


def test_a_file_that_is_followed(files):
    """Databases, which are not written as a whole, are followed in their own tests."""
    for contents in states(files).values() if files.other else ():
        following = Following(files)
        for content in contents:
            files.target.write_bytes(content)
            try:
                following.read()
            except UnreadableLog:
                following.cursors, following.found = {}, {}
                continue
            if content:  # an empty file is about to be written: what was read stays until then
                assert_followed(following, files)


def assert_followed(following, files):
    """What was put together while following is what a fresh reading finds."""
    fresh = whole(files)
    log_checks.assert_equal(
        {key: points for key, points in following.found.items() if points.size}, fresh
    )


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_packed_copies_are_the_same(files, end, pack):
    expected = {key: points for (_, key), points in files.read().items()}
    copy = files.path.with_name(files.path.name + end)
    copy.write_bytes(pack(files.path.read_bytes()))
    files.path.unlink()
    if Following(files).reader.runs:
        with pytest.raises(UnreadableLog, match="unpack it first"):
            claim(copy)
        return
    reader = reader_of(copy)
    assert reader.name == files.case.reader
    log_checks.assert_equal(log_checks.points(reader.read(copy, None)[0]), expected)


@pytest.mark.parametrize("data", [b"", b"\n", b"\0", b"{", b"\xff", b"1"])
def test_nothing_and_one_byte(files, data):
    files.target.write_bytes(data)
    found = attempt(files)
    if files.alone:
        assert not found
        try:
            reader_of(files.path)
        except UnreadableLog as error:
            assert error.hint  # noqa: PT017 - both outcomes are allowed
        else:
            assert data


def test_a_folder_in_its_place(files):
    files.target.unlink()
    files.target.mkdir()
    found = attempt(files)
    assert found is None or not files.alone
    files.target.rmdir()


def test_no_permission(files):
    files.target.chmod(0)
    with as_nobody():
        found = attempt(files)
    assert found is None or not files.alone


@contextmanager
def as_nobody():
    """Be another user where the tests run as root, whom nothing is forbidden."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_vanishes_before_it_is_read(files):
    (run, *_) = sources.find(files.location)
    files.target.unlink()
    if files.alone:
        with pytest.raises(UnreadableLog, match="this path does not exist"):
            sources.read(run)
    else:
        sources.read(run)
