"""The scheduler's mixed rows: placed where their types prove it, else refused and counted."""

import csv
from datetime import UTC, datetime, timedelta

import log_checks
import numpy as np
import pytest
from loading import read_log

from rlvitals.errors import UnreadableLog
from rlvitals.readers import vidur_csv
from rlvitals.readers.select import reader_of

READER = vidur_csv.READER
START = datetime(2026, 1, 31, 10, 0, tzinfo=UTC)
SHANGHAI = timedelta(hours=8)


def training(step, rng):
    """One decision as the stack logs it."""
    replica, heat = int(rng.integers(4)), round(1.2 + rng.random(), 6)
    latency, rate = round(rng.random() * 20, 6), round(4.7 + rng.random() / 100, 6)
    return {
        **base("training", step),
        **dict.fromkeys(("action", "action_value", "replica_id", "selected_replica"), replica),
        **dict.fromkeys(("temperature", "temp_current_temperature"), heat),
        **dict.fromkeys(("raw_latency", "reward_raw_latency"), latency),
        **dict.fromkeys(("step_count", "reward_step_count"), step // 2),
        **dict.fromkeys(("throughput_ema", "reward_throughput_ema"), rate),
        "reward": round(rng.normal(), 6),
        "throughput": rate,
        "mode": "hybrid",
        "has_temperature_control": True,
        "temp_is_pulsing": bool(rng.random() < 0.3),
        "skipped_invalid_metrics": [True, ""][int(rng.integers(2))],
        "value_estimate": round(rng.normal(), 6),
    }


def base(kind, step):
    moment = START + timedelta(seconds=step)
    local = (moment + SHANGHAI).replace(tzinfo=None)
    stamp = moment.timestamp()
    return {"timestamp": stamp, "datetime": local.isoformat(), "step": step, "data_type": kind}


def update(step, rng):
    return {**base("ppo_update", step), "approx_kl": rng.random() / 50, "clipfrac": rng.random()}


def rollout(step, rng):
    return {**base("rollout", step), "reward_mean": rng.normal(), "action_replica_0": step}


def write(path, names, rows):
    """Write rows under a header; a row as long as its own columns, as the stack's writer does."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        table.writerows(rows)
    return path


def under(names, row):
    return [row.get(name, "") for name in names]


def own(row, without=()):
    return [row[name] for name in sorted(row) if name not in without]


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return [training(step, rng) for step in range(30)]


@pytest.fixture
def mixed(tmp_path):
    """Decisions, updates and rollouts in one sound table."""
    rng = np.random.default_rng(5)
    found = []
    for step in range(12):
        found.append(training(step, rng))
        if step % 4 == 3:
            found += [update(step, rng), rollout(step, rng)]
    names = sorted({name for row in found for name in row})
    return write(tmp_path / "ppo_metrics_a.csv", names, [under(names, row) for row in found])


def test_row_kinds_keep_their_own_columns(mixed):
    log, _ = READER.read(mixed, None)
    assert log.notes == ()
    assert log.step_unit == "decisions"
    assert log.settings == {"mode": "hybrid"}
    assert len(log.series["reward"]) == 12
    assert log.series["approx_kl"].steps.tolist() == [3, 7, 11]
    assert log.series["action_replica_0"].values.tolist() == [3.0, 7.0, 11.0]
    assert log.series["reward"].times[5] == START.timestamp() + 5
    assert set(log.series["temp_is_pulsing"].values) == {0.0, 1.0}
    assert not {"step", "timestamp", "datetime", "data_type", "mode"} & set(log.series)


def test_rows_that_lack_the_provable_column_are_realigned(tmp_path, rows):
    names = sorted(rows[0])
    cells = [under(names, row) for row in rows[:10]]
    cells += [own(row, ("skipped_invalid_metrics",)) for row in rows[10:]]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    assert log.series["temperature"].values.tolist() == [row["temperature"] for row in rows]
    assert log.series["throughput"].values.tolist() == [row["throughput"] for row in rows]
    width = len(names) - 1
    (note,) = log.notes
    assert note.startswith(f"20 rows of {width} fields realigned: `skipped_invalid_metrics` is")
    assert len(log.series["skipped_invalid_metrics"]) <= 10


@pytest.mark.parametrize("lost", ["value_estimate", "vf", "vg", "tick", "latency"])
def test_a_column_that_types_cannot_tell_is_never_guessed(tmp_path, rows, lost):
    """Between plain numbers any may be the missing one."""
    more = dict.fromkeys(("latency", "load", "vf", "vg", "tick", "tock"), 0.5)
    names = sorted([*rows[0], *more])
    cells = [own({**row, **more}, (lost,)) for row in rows]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    assert not log.series
    assert "30 rows refused: line 2 has" in log.notes[0]
    assert "columns could be the missing one" in log.notes[0]


@pytest.mark.parametrize("lost", ["reward", "throughput", "value_estimate", "temperature"])
def test_a_row_that_is_realigned_is_right(tmp_path, rows, lost):
    """A plain number between typed neighbours is proven too, or the row is refused."""
    names = sorted(rows[0])
    log, _ = READER.read(write(tmp_path / "m.csv", names, [own(r, (lost,)) for r in rows]), None)
    assert not log.series or lost not in log.series
    for name, series in log.series.items():
        logged = [float(row[name]) for row in rows if row[name] != ""]
        assert series.values.tolist() == logged, name


def test_rows_with_more_fields_are_refused_one_by_one_and_counted(tmp_path, rows):
    names = sorted(rows[0])
    wide = [own({**row, "approx_kl": 0.1, "vf_loss": 0.2}) for row in rows[5:]]
    cells = [*(under(names, row) for row in rows[:5]), *wide]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    width = len(names)
    assert log.notes == (f"25 rows refused: line 7 has {width + 2} fields under {width} names",)
    assert len(log.series["temperature"]) == 5


def test_a_shift_at_full_width_is_refused_too(tmp_path, rows):
    """A batch that lacks one column and has a new one is as wide as the header."""
    names = sorted(rows[0])
    shifted = [own({**row, "zz_new": 1.0}, ("reward",)) for row in rows[5:]]
    cells = [*(under(names, row) for row in rows[:5]), *shifted]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    assert log.series["temperature"].values.tolist() == [r["temperature"] for r in rows[:5]]
    assert log.notes[0].startswith("25 rows refused: line 7 is not in place")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("timestamp", "4.7"),
        ("timestamp", "inf"),
        ("datetime", "yesterday"),
        ("datetime", "2026-01-31T10:07:31"),
        ("data_type", "hybrid"),
        ("step", "1.5"),
        ("step", ""),
        ("temp_is_pulsing", "2.1"),
        ("temperature", "4.7"),
        ("reward", "tensor(1.)"),
        ("reward", "\ufffd"),
    ],
)
def test_one_cell_of_the_wrong_type_refuses_the_row(tmp_path, rows, name, cell):
    names = sorted(rows[0])
    cells = [under(names, {**rows[0], name: cell}), under(names, rows[1])]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    assert log.series["reward"].steps.tolist() == [1]
    assert log.notes[0].startswith("1 row refused: line 2")


def test_numbers_that_are_none_are_kept_as_logged(tmp_path, rows):
    names = sorted(rows[0])
    odd = ["nan(ind)", "Infinity", "None", "1e308", "", "-1.#IND"]
    cells = [under(names, {**row, "reward": x}) for row, x in zip(rows, odd, strict=False)]
    log, _ = READER.read(write(tmp_path / "m.csv", names, cells), None)
    found = log.series["reward"]
    assert found.steps.tolist() == [0, 1, 3, 5]
    np.testing.assert_array_equal(found.values, [np.nan, np.inf, 1e308, np.nan])


def test_cuts_read_as_prefixes(mixed):
    assert mixed.stat().st_size > 2000
    assert log_checks.check_truncations(READER, mixed, mixed.read_bytes(), refusals=True) > 0.8


def test_cuts_of_a_shifting_file_read_as_prefixes(tmp_path, rows):
    names = sorted(rows[0])
    cells = [under(names, rows[0])]
    cells += [
        own(row, ("skipped_invalid_metrics",)) if row["step"] % 3 else own({**row, "a": 1})
        for row in rows[1:12]
    ]
    path = write(tmp_path / "m.csv", names, cells)
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_a_growing_file_reads_once(mixed):
    log_checks.check_growth(READER, mixed, mixed.read_bytes(), [10, 900, 901, 1500, 2000, 2300])


@pytest.mark.parametrize("junk", [b"", b"\x00\xff" * 500, b"a,b\n1,2\n", b"step,timestamp\n"])
def test_junk_is_refused_by_name(tmp_path, junk):
    path = tmp_path / "ppo_metrics_x.csv"
    path.write_bytes(junk)
    with pytest.raises(UnreadableLog, match="not a scheduler's metrics") as error:
        READER.read(path, None)
    assert str(path) in error.value.where


def test_a_name_twice_in_the_header_is_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("data_type,datetime,reward,reward,step,timestamp\n")
    with pytest.raises(UnreadableLog, match="'reward' twice"):
        READER.read(path, None)


REAL = "vidurrl-2025{}/metrics/ppo_metrics_2025{}.csv"


def real(folder, run, file):
    path = folder / REAL.format(run, file)
    assert reader_of(path) is READER
    return read_log(path)


@pytest.mark.real_logs
def test_a_sound_real_table_loses_nothing(real_logs):
    log = real(real_logs, "0917_201326", "0917_201349")
    assert log.notes == ()
    kinds = {name: len(log.series[name]) for name in ("reward", "approx_kl", "reward_mean")}
    assert kinds == {"reward": 2000, "approx_kl": 62, "reward_mean": 62}
    counts = [int((log.series["selected_replica"].values == n).sum()) for n in range(4)]
    assert counts == [188, 137, 202, 1473]


@pytest.mark.real_logs
def test_real_rows_of_56_57_and_78_fields(real_logs):
    log = real(real_logs, "0918_232535", "0918_233015")
    assert log.notes[0] == "1,038 rows refused: line 52 has 78 fields under 57 names"
    assert log.notes[1].startswith(
        "300 rows of 56 fields realigned: `skipped_invalid_metrics` is the missing column"
    )
    heat = log.series["temperature"].values
    assert len(heat) == 350
    assert 1.08 < heat.min() < heat.max() < 3.65
    assert not ((heat > 4.6) & (heat < 4.8)).any()
    np.testing.assert_array_equal(heat, log.series["temp_current_temperature"].values)
    assert log.series["throughput"].values.max() < 4.9
    assert np.diff(log.series["reward"].steps).min() == 1


@pytest.mark.real_logs
def test_a_real_table_that_loads_and_lies_comes_out_right(real_logs):
    log = real(real_logs, "0919_183038", "0919_184014")
    (note,) = log.notes
    assert note.startswith("1,485 rows of 56 fields realigned: `skipped_invalid_metrics`")
    heat = log.series["temperature"]
    assert heat.steps.tolist() == list(range(1535))
    assert 1.15 < heat.values.min() < heat.values.max() < 3.65


@pytest.mark.real_logs
def test_cuts_of_real_tables_read_as_prefixes(real_logs, tmp_path):
    data = (real_logs / REAL.format("0918_232535", "0918_233015")).read_bytes()[:150_000]
    path = tmp_path / "part.csv"
    assert log_checks.check_truncations(READER, path, data, refusals=True) > 0.8
