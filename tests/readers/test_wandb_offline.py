"""W&B's files: what the real library writes, read as its own records say; and every mishap."""

import contextlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import leveldb
import log_checks
import numpy as np
import pytest
from following import Followed, assert_as_read_at_once, of, points
from hypothesis import given, settings
from hypothesis import strategies as st
from swanlab.converter.wb.wbdatastore import DataStoreTruncatedError, WBDataStoreReader
from waiting import HANG_SECONDS
from wandb.proto import wandb_internal_pb2 as pb

from rlvitals.errors import UnreadableLog
from rlvitals.following import changes
from rlvitals.readers import wandb_offline
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head
from rlvitals.readers.select import reader_of
from rlvitals.readers.wandb import rows as wandb_rows

READER = wandb_offline.READER
SCRIPT = Path(__file__).with_name("wandb_script.py")
INTERNAL = ("_step", "_timestamp")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """{how it ended: its .wandb file}, written by the real library at the same time."""
    processes = {}
    for how in ("ends", "killed", "raises"):
        folder = tmp_path_factory.mktemp(f"wandb-{how}")
        env = {**os.environ, "WANDB_SILENT": "true", "WANDB_MODE": "offline", "HOME": str(folder)}
        command = [sys.executable, str(SCRIPT), str(folder), how]
        pipe = subprocess.DEVNULL
        processes[folder, how] = subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe)
    for process in processes.values():
        process.wait(timeout=HANG_SECONDS)
    return {how: next(folder.glob("wandb/off*/*.wandb")) for folder, how in processes}


def library(path):
    """The history as W&B's own protobuf holds it, through SwanLab's importer of such files."""
    rows = []
    with WBDataStoreReader() as reader:
        reader.open(path)
        with contextlib.suppress(DataStoreTruncatedError):  # a killed run's last record
            while (data := reader.scan()) is not None:
                record = pb.Record.FromString(data)
                if record.WhichOneof("record_type") == "history":
                    items = record.history.item
                    names = [item.key or ".".join(item.nested_key) for item in items]
                    values = [json.loads(item.value_json) for item in items]
                    rows.append(dict(zip(names, values, strict=True)))
    return rows


def is_number(value):
    return isinstance(value, int | float)


def expected(rows, key):
    return [float(row[key]) for row in rows if key in row and is_number(row[key])]


def record(**row):
    """A history record as W&B 0.31 writes it."""
    made = pb.Record(num=7)
    for key, value in row.items():
        text = value if isinstance(value, str) else json.dumps(value)
        made.history.item.add(nested_key=key.split("__"), value_json=text)
    made.history.step.num = row.get("_step", 0)
    return made.SerializeToString()


def run_of(count, **more):
    """The records of a run of `count` rows."""
    header = pb.Record(num=1)
    header.header.version_info.producer = "0.31.0"
    rows = [
        record(_step=n, _timestamp=1.7e9 + n, loss=1 / (n + 1), a__b=n / 3, **more)
        for n in range(count)
    ]
    return [header.SerializeToString(), *rows]


@pytest.fixture
def write(tmp_path):
    def make(payloads, name="run-x.wandb"):
        path = tmp_path / name
        data = (
            payloads if isinstance(payloads, bytes) else leveldb.framed(leveldb.WANDB, payloads)[0]
        )
        path.write_bytes(data)
        return path

    return make


def read(path):
    return READER.read(path, None)[0]


# ---------------------------------------------------------------- written by the real library


@pytest.mark.parametrize("how", ["ends", "killed", "raises"])
def test_every_number_is_the_librarys(runs, how):
    rows = library(runs[how])
    log = read(runs[how])
    keys = {key for row in rows for key, value in row.items() if is_number(value)}
    inside = {key for key in keys if key.startswith("table.")}  # of a table, not metrics
    assert set(log.series) == keys - inside - set(INTERNAL)
    assert inside or how == "killed"
    assert {"loss", "bad", "big", "reward.mean", "reward.deep.max", "flag"} <= set(log.series)
    for key, series in log.series.items():
        np.testing.assert_array_equal(series.values, expected(rows, key))
        times = [row["_timestamp"] for row in rows if is_number(row.get(key))]
        np.testing.assert_array_equal(series.times, times)
    assert len(log.series["loss"]) == 40 or how == "killed"
    own = [row["_step"] for row in rows if "loss" in row]
    assert log.series["loss"].steps.tolist() == own
    assert math.isnan(log.series["bad"].values[1])
    assert log.series["bad"].values[0] == -math.inf


def test_a_defined_metric_stands_at_its_own_steps(runs):
    log = read(runs["ends"])
    assert log.series["eval/return"].steps.tolist() == [0, 1000, 2000, 3000]
    assert any("`eval_at`" in note for note in log.notes)


def test_settings_are_the_config_as_it_was_last_set(runs):
    found = read(runs["ends"]).settings
    assert found["lr"] == 5e-4
    assert found["net/width"] == 64
    assert found["env_id"] == "CartPole-v1"
    assert found["wandb/project"] == "cart"
    assert found["wandb/name"] == "first"
    assert found["wandb/tags"] == "a, b"
    assert not [key for key in found if key.startswith("_wandb")]


def test_histograms_are_read_and_tables_named(runs):
    log = read(runs["ends"])
    (one,) = log.histograms["weights"]
    assert one.edges.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert one.counts.tolist() == [1.0, 2.0, 4.0]
    assert any("table" in note and "not read" in note for note in log.notes)


def test_how_it_ended(runs):
    assert read(runs["ends"]).ending.exit_code == 0
    killed = read(runs["killed"])
    assert killed.ending is None
    assert wandb_offline.NO_EXIT_NOTE in killed.notes
    raised = read(runs["raises"]).ending
    assert raised.exit_code == 1
    assert raised.traceback.startswith("Traceback (most recent call last):")
    assert raised.traceback.endswith("ValueError: the loss is gone")


def test_the_reader_is_found(runs, write):
    for path in (*runs.values(), write(run_of(1))):
        assert reader_of(path) is READER
        assert READER.claims(path, read_head(path))


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_real_files_cut_grown_and_damaged(runs, how, tmp_path):
    data = runs[how].read_bytes()
    path = tmp_path / "run-x.wandb"
    log_checks.check_truncations(READER, path, data)
    log_checks.check_cursor(READER, path, data, rounds=10)
    log_checks.check_damage(READER, path, data, rounds=40)


# ------------------------------------------------------------------------------------ mishaps


@pytest.mark.parametrize(("how", "ended"), [("ends", "finished"), ("raises", "failed")])
def test_a_real_file_followed_to_its_end(runs, how, ended, tmp_path):
    data = runs[how].read_bytes()
    path = tmp_path / "ppo" / runs[how].name
    path.parent.mkdir()
    followed, told = Followed(tmp_path), []
    for part in range(1, 11):
        path.write_bytes(data[: len(data) * part // 10])
        told += followed.look(11.0)
    assert [one.how for one in of(changes.Ended, told)] == [ended]
    whole = {key: len(series) for key, series in read(path).series.items()}
    assert points(told) == whole
    told = followed.settle()
    assert not of(changes.Quiet, told), "it is over"
    assert_as_read_at_once(followed, tmp_path)


def test_cuts_of_a_log_of_many_blocks(tmp_path):
    payloads = run_of(600)
    payloads.insert(100, record(_step=100, _timestamp=1.0, text=json.dumps("x" * 90_000)))
    data, ends = leveldb.framed(leveldb.WANDB, payloads)
    path = tmp_path / "run-x.wandb"
    assert log_checks.check_truncations(READER, path, data) == 1
    log_checks.check_cursor(READER, path, data)
    log_checks.check_growth(READER, path, data, ends[::40])
    log_checks.check_damage(READER, path, data)


def rows_of(columns):
    return set(zip(*columns.tolist(), strict=True))


def check_flips(path, data, rounds, seed=0):
    path.write_bytes(data)
    whole = {
        k: set(zip(*p.tolist(), strict=True)) for k, p in log_checks.points(read(path)).items()
    }
    lost = 0
    for _ in leveldb.flip_bits(path, data, rounds, log_checks.chance_of(seed)):
        try:
            log = read(path)
        except UnreadableLog:
            continue
        for key, columns in log_checks.points(log).items():
            assert rows_of(columns) <= whole[key]
        lost += len(log.notes) > 1
    assert lost > rounds * 0.9


@pytest.mark.soak
def test_2000_flipped_bits_never_give_a_wrong_number(tmp_path):
    data, _ = leveldb.framed(leveldb.WANDB, run_of(12))
    check_flips(tmp_path / "run-x.wandb", data, 2000)


@pytest.mark.soak
def test_many_more_flipped_bits(tmp_path):
    data, _ = leveldb.framed(leveldb.WANDB, run_of(800))
    check_flips(tmp_path / "run-x.wandb", data, 20_000, seed=1)


def test_damage_costs_one_record_and_is_named(write):
    payloads = run_of(50)
    data, ends = leveldb.framed(leveldb.WANDB, payloads)
    damaged = bytearray(data)
    damaged[ends[10] - 3] ^= 1
    log = read(write(bytes(damaged)))
    assert log.series["loss"].steps.tolist() == [n for n in range(50) if n != 9]
    lost = ends[10] - ends[9]
    assert f"{lost:,} damaged bytes skipped: the first at byte {ends[9]:,}" in log.notes


def test_a_damaged_length_costs_the_rest_of_its_block(write):
    payloads = run_of(1200)
    data, ends = leveldb.framed(leveldb.WANDB, payloads)
    first = next(n for n, end in enumerate(ends) if end > leveldb.BLOCK)
    damaged = bytearray(data)
    damaged[ends[10] + 5] ^= 0x7F  # of the length of the next record
    steps = read(write(bytes(damaged))).series["loss"].steps.tolist()
    assert steps[:10] == list(range(10))
    assert steps[10:] == list(range(first, 1200))


def test_a_torn_tail_is_left(write):
    data, ends = leveldb.framed(leveldb.WANDB, run_of(5))
    log, cursor = READER.read(write(data[: ends[4] + 20]), None)
    assert len(log.series["loss"]) == 4
    log, _ = READER.read(write(data), cursor)
    assert log.series["loss"].steps.tolist() == [4]


def test_a_file_written_anew_is_read_from_its_start(write):
    _, cursor = READER.read(write(run_of(30)), None)
    log, _ = READER.read(write(run_of(40, other=1.5)), cursor)
    assert REPLACED_NOTE in log.notes
    assert len(log.series["other"]) == 40


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"not a log at all", "header"),
        (b":W&B\xe1\xbe\x05", "version 5"),
    ],
)
def test_other_files_are_refused_by_name(write, data, problem):
    with pytest.raises(UnreadableLog, match=problem) as error:
        read(write(data))
    assert error.value.where.endswith("run-x.wandb")


def test_a_record_that_is_no_protobuf_is_counted(write):
    payloads = [*run_of(3), b"\x2a\xff\xff\x03ab", b"\x12\x05abc", b""]
    log = read(write(payloads))
    assert len(log.series["loss"]) == 3
    assert "2 records could not be understood" in log.notes


# -------------------------------------------------------------------------------------- steps


def steps_of(write, rows, key, defined=()):
    payloads = []
    for name, metric in defined:
        made = pb.Record()
        kind = "glob_name" if "*" in name else "name"
        setattr(made.metric, kind, name)
        made.metric.step_metric = metric
        payloads.append(made.SerializeToString())
    payloads += [record(_step=n, **row) for n, row in enumerate(rows)]
    data, ends = leveldb.framed(leveldb.WANDB, payloads)
    path = write(data)
    log_checks.check_growth(READER, path, data, ends)
    path.write_bytes(data)
    log = read(path)
    return log.series[key].steps.tolist(), log.step_unit


@pytest.mark.parametrize(
    ("rows", "steps", "unit"),
    [
        ([{"a": 1}] * 3, [0, 1, 2], "steps"),
        ([{"a": 1, "global_step": n * 64} for n in range(3)], [0, 64, 128], "steps"),
        ([{"a": 1, "train/global_step": 10 + n} for n in range(3)], [10, 11, 12], "updates"),
        (
            [{"a": 1}, {"a": 1, "total_timesteps": 50}, {"a": 1}, {"a": 1, "total_timesteps": 90}],
            [0, 50, 50, 90],
            "environment steps",
        ),
        # What an evaluation now and then says is not the step of the rows between.
        ([{"a": 1, "global_step": 0}, {"a": 1}, {"a": 1, "global_step": 900}], [0, 1, 2], "steps"),
        ([{"a": 1, "epoch": 0, "step": 5}, {"a": 1, "step": 1}], [0, 1], "steps"),
        ([{"a": 1, "global_step": 0.5}, {"a": 1, "global_step": 1.5}], [0, 1], "steps"),
    ],
)
def test_the_step_of_a_row(write, rows, steps, unit):
    assert steps_of(write, rows, "a") == (steps, unit)


@pytest.mark.parametrize(
    ("defined", "steps"),
    [
        ([("eval/*", "t")], [10, 20, 20]),
        ([("eval/a", "t")], [10, 20, 20]),
        ([("*", "t")], [10, 20, 20]),
        ([("eval/*", "t"), ("eval/a", "")], [0, 1, 2]),
        ([("other/*", "t")], [0, 1, 2]),
        ([("eval/*", "never")], [0, 1, 2]),
    ],
)
def test_defined_metrics(write, defined, steps):
    rows = [{"eval/a": 1, "t": 10}, {"eval/a": 2, "t": 20}, {"eval/a": 3}]
    assert steps_of(write, rows, "eval/a", defined)[0] == steps


def test_old_files_have_flat_keys_and_may_have_no_step_item(write):
    made = []
    for n in range(4):
        one = pb.Record()
        one.history.item.add(key="loss", value_json=str(n / 2))
        one.history.step.num = n + 5
        made.append(one.SerializeToString())
    log = read(write(made))
    assert log.series["loss"].steps.tolist() == [5, 6, 7, 8]


# ------------------------------------------------------------------- the quick and the plain way

NAMES = st.sampled_from(["loss", "a", "_step", "_timestamp", "x" * 9, "é", "k" * 130, "k" * 300])
VALUES = st.one_of(
    st.floats().map(json.dumps),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(
        ["NaN", "Infinity", "-Infinity", '"NaN"', "null", "true", '"text"', "", "1,2", "[1", "01",
         '{"_type": "histogram"}', "1 2", '"' + "y" * 200 + '"', "1e999", " 3", "N", "-", "1\x00"]
    ),
)  # fmt: skip


@st.composite
def history(draw):
    made = pb.HistoryRecord()
    if draw(st.booleans()):
        made.item.add(nested_key=["_step"], value_json=str(draw(st.integers(0, 99))))
    for _ in range(draw(st.integers(0, 4))):
        key = draw(NAMES)
        if draw(st.booleans()):
            item = made.item.add(nested_key=[key, *draw(st.lists(NAMES, max_size=2))])
        else:
            item = made.item.add(key=key)
        item.value_json = draw(VALUES)
    if draw(st.booleans()):
        made.step.num = draw(st.integers(0, 2**40))
    data = made.SerializeToString()
    if draw(st.integers(0, 9)) == 0:
        data += draw(st.binary(max_size=6))
    return data


@settings(deadline=None, max_examples=300)
@given(st.lists(history(), max_size=8), st.integers(0, 8))
def test_both_ways_read_the_same(payloads, regular):
    payloads = [*payloads, *(made_row(n) for n in range(regular))]
    plain = wandb_rows.parse_each(payloads)
    rows = wandb_rows.parse_vectorized(payloads)
    if rows is None:
        return
    assert rows.numbers.keys() == plain.numbers.keys()
    for key, (where, values) in plain.numbers.items():
        np.testing.assert_array_equal(rows.numbers[key][0], where)
        np.testing.assert_array_equal(rows.numbers[key][1], values)
    by_row = sorted(rows.others, key=repr)
    assert repr(by_row) == repr(sorted(plain.others, key=repr))
    assert rows.malformed == plain.malformed


def made_row(n):
    made = pb.Record.FromString(record(_step=n, loss=n / 7, a__b=-n))
    return made.history.SerializeToString()


def test_usual_rows_go_the_quick_way(runs):
    payloads = []
    with WBDataStoreReader() as reader:
        reader.open(runs["ends"])
        while (data := reader.scan()) is not None:
            made = pb.Record.FromString(data)
            if made.WhichOneof("record_type") == "history":
                payloads.append(made.history.SerializeToString())
    assert len(payloads) > 40
    assert wandb_rows.parse_vectorized(payloads) is not None


def test_one_row_that_is_far_longer_than_the_others(write):
    payloads = run_of(30)
    payloads.insert(9, record(_step=8, **{f"k{n}": n for n in range(20_000)}))
    log = read(write(payloads))
    assert log.series["k19999"].values.tolist() == [19999.0]
    assert len(log.series["loss"]) == 30


def test_an_old_file_says_media_config_and_console_in_its_own_way(write):
    media = {"_type": "histogram", "values": [1, 2], "packedBins": {"min": -1.0, "size": 0.5}}
    config, run = pb.Record(), pb.Record()
    for key, value in {
        "lr": "0.1",
        "gone": "1",
        "net": '{"value": {"w": 2}, "desc": null}',
    }.items():
        run.run.config.update.add(key=key, value_json=value)
    run.run.config.update.add(key="_wandb", value_json='{"version": 1}')
    run.run.git.commit = "abc"
    config.config.update.add(key="lr", value_json="0.2")
    config.config.update.add(key="bad", value_json="{")
    config.config.remove.add(key="gone")
    output, end, stats = pb.Record(), pb.Record(), pb.Record()
    text = "step 1\nTraceback (most recent call last):\n  File x\n\x1b[31mKeyError\x1b[0m: 'a'\n"
    output.output.line = text
    end.exit.exit_code = 255
    stats.stats.item.add(key="cpu", value_json="63.5")
    rows = [record(_step=3, _timestamp=5.0, h=media, broken={"_type": "histogram"}, a=1.5)]
    others = [made.SerializeToString() for made in (run, config, output, stats, end)]
    log = read(write([*others[:2], *rows, *others[2:]]))
    (one,) = log.histograms["h"]
    assert (one.step, one.time) == (3, 5.0)
    assert one.edges.tolist() == [-1.0, -0.5, 0.0]
    assert one.counts.tolist() == [1.0, 2.0]
    assert list(log.series) == ["a"]
    assert log.settings == {"lr": 0.2, "net/w": 2, "wandb/commit": "abc"}
    expected = "Traceback (most recent call last):\n  File x\nKeyError: 'a'"
    assert (log.ending.exit_code, log.ending.traceback) == (255, expected)
    assert any("broken, of the kind histogram" in note for note in log.notes)
    assert "1 record could not be understood" in log.notes
