import json
import math

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers import sb3_csv, sb3_json, sb3_monitor
from rlvitals.readers.select import claim, reader_of

CSV = "progress.csv"
JSON = "progress.json"
MONITOR = "0.monitor.csv"


class SB3Writer:
    """Writes as SB3's CSVOutputFormat does: a new key rewrites the whole file."""

    def __init__(self):
        self.keys, self.lines = [], []

    def row(self, **values):
        new = [key for key in values if key not in self.keys]
        self.keys += new
        self.lines = [line + "," * len(new) for line in self.lines]
        self.lines.append(",".join(str(values.get(key, "")) for key in self.keys))

    def data(self):
        header = ",".join(key.replace("_slash_", "/") for key in self.keys)
        return "".join(f"{line}\n" for line in [header, *self.lines]).encode()


def sb3_csv_log(rows=24):
    writer = SB3Writer()
    for i in range(rows):
        values = {"time_slash_total_timesteps": 2048 * (i + 1), "time_slash_time_elapsed": i * 3}
        values["rollout_slash_ep_rew_mean"] = [20.5 + i, math.nan, math.inf][i % 3]
        if i:
            values["train_slash_approx_kl"] = 0.01 / i
        if i > rows // 2:
            values["eval_slash_mean_reward"] = i if i % 2 else ""
        writer.row(**values)
    return writer.data()


def sb3_json_log(rows=20):
    lines = []
    for i in range(rows):
        item = {"time/total_timesteps": 2048 * (i + 1), "rollout/ep_rew_mean": 20.5 + i}
        item["train/approx_kl"] = [0.01, math.nan, None][i % 3]
        lines.append(json.dumps(item) + "\n")
    return "".join(lines).encode()


def monitor_log(rows=40, start=1.7e9):
    head = f'#{{"t_start": {start}, "env_id": "CartPole-v1"}}\nr,l,t\n'
    return (head + "".join(f"{i + 0.5},{i + 1},{i * 2}\r\n" for i in range(rows))).encode()


LOGS = {
    CSV: (sb3_csv.READER, sb3_csv_log()),
    JSON: (sb3_json.READER, sb3_json_log()),
    MONITOR: (sb3_monitor.READER, monitor_log()),
}


@pytest.fixture(params=LOGS)
def case(request, tmp_path):
    reader, data = LOGS[request.param]
    return reader, tmp_path / request.param, data


def test_the_right_reader_claims_it(case):
    reader, path, data = case
    path.write_bytes(data)
    assert reader_of(path) is reader


def test_truncations(case):
    log_checks.check_truncations(*case)


def test_truncations_of_a_long_log(tmp_path):
    log_checks.check_truncations(sb3_csv.READER, tmp_path / CSV, sb3_csv_log(300))
    log_checks.check_truncations(sb3_json.READER, tmp_path / JSON, sb3_json_log(120))
    log_checks.check_truncations(sb3_monitor.READER, tmp_path / MONITOR, monitor_log(800))


def test_reading_on(case):
    log_checks.check_cursor(*case)


def test_damage_never_breaks_the_reader(case):
    log_checks.check_damage(*case)


def test_sb3_csv_values(tmp_path):
    path = tmp_path / CSV
    path.write_bytes(sb3_csv_log())
    log, _ = sb3_csv.read(path, None)
    assert log.step_unit == "environment steps"
    assert log.notes == ()
    elapsed = log.series["time/time_elapsed"]
    np.testing.assert_array_equal(elapsed.steps, 2048 * np.arange(1, 25))
    np.testing.assert_array_equal(elapsed.values, 3 * np.arange(24))
    assert np.isnan(elapsed.times).all()
    returns = log.series["rollout/ep_rew_mean"].values
    np.testing.assert_array_equal(returns[:6], [20.5, math.nan, math.inf, 23.5, math.nan, math.inf])
    kl = log.series["train/approx_kl"]  # not logged in the first row: no point, not a NaN
    assert kl.steps[0] == 4096
    assert len(kl) == 23
    assert log.series["eval/mean_reward"].steps.tolist() == [2048 * i for i in range(14, 25, 2)]
    assert "time/total_timesteps" not in log.series


def test_sb3_rewriting_the_file_repeats_and_loses_nothing(tmp_path):
    path, cursor, found = tmp_path / CSV, None, {}
    writer = SB3Writer()
    for i in range(30):
        extra = {f"train_slash_key{i // 5}": i}
        writer.row(time_slash_total_timesteps=i * 100, train_slash_loss=i / 8, **extra)
        if i % 3:
            continue
        path.write_bytes(writer.data())
        log, cursor = sb3_csv.read(path, cursor)
        assert log.notes == ()
        for key, columns in log_checks.points(log).items():
            found.setdefault(key, []).append(columns)
    path.write_bytes(writer.data())
    log, cursor = sb3_csv.read(path, cursor)
    for key, columns in log_checks.points(log).items():
        found.setdefault(key, []).append(columns)
    joined = {key: np.concatenate(pieces, axis=1) for key, pieces in found.items()}
    log_checks.assert_equal(joined, log_checks.points(sb3_csv.read(path, None)[0]))
    assert joined["train/loss"][0].tolist() == [i * 100 for i in range(30)]


def test_sb3_caught_in_the_middle_of_rewriting(tmp_path):
    path, writer = tmp_path / CSV, SB3Writer()
    for i in range(30):
        writer.row(time_slash_total_timesteps=i * 100, train_slash_loss=i / 8)
    old = writer.data()
    writer.row(time_slash_total_timesteps=3000, train_slash_loss=1.5, train_slash_kl=0.5)
    new = writer.data()
    steps, clean = [i * 100 for i in range(31)], 0
    for done in range(new.index(b"\n") + 1, len(new)):
        for seen in (len(old) // 2, len(old)):
            path.write_bytes(old[:seen])
            first, cursor = sb3_csv.read(path, None)
            path.write_bytes(new[:done] + old[done:])
            between, cursor = sb3_csv.read(path, cursor)
            path.write_bytes(new)
            last, _ = sb3_csv.read(path, cursor)
            pieces = [log.series["train/loss"] for log in (first, between, last) if log.series]
            if any("replaced" in note for note in last.notes):  # halves of two rows looked whole
                pieces = [last.series["train/loss"]]
            else:
                clean += 1
            assert np.concatenate([series.steps for series in pieces]).tolist() == steps
    assert clean > 0.95 * 2 * (len(new) - new.index(b"\n"))


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_another_run_in_the_same_place(tmp_path, rows):
    path = tmp_path / CSV
    path.write_bytes(sb3_csv_log(20))
    cursor = sb3_csv.read(path, None)[1]
    writer = SB3Writer()
    for i in range(rows):
        writer.row(time_slash_total_timesteps=i, train_slash_loss=i)
    path.write_bytes(writer.data())
    log, _ = sb3_csv.read(path, cursor)
    assert log.series["train/loss"].values.tolist() == list(range(rows))
    assert "replaced" in log.notes[0]
    path.write_bytes(sb3_csv_log(20).replace(b"20.5", b"21.5"))  # the same header, another run
    log, _ = sb3_csv.read(path, cursor)
    assert "replaced" in log.notes[0]
    assert log.series["rollout/ep_rew_mean"].values[0] == 21.5


def test_bad_rows_are_refused_one_by_one(tmp_path):
    path = tmp_path / CSV
    rows = [b"time/total_timesteps,loss,kl", b"100,1,2", b"200,3", b"300,4,5,6", b"\x00\xff,1,1"]
    rows += [b"nan,7,7", b"1e308,8,8", b"400,tensor(1.),9", b"", b"100,10,nan(ind)", b"500,1e308,"]
    path.write_bytes(b"\n".join(rows) + b"\n")
    log, _ = sb3_csv.read(path, None)
    assert log.series["loss"].steps.tolist() == [100, 100, 500]
    assert log.series["loss"].values.tolist() == [1, 10, 1e308]
    assert log.series["kl"].steps.tolist() == [100, 400, 100]
    assert np.isnan(log.series["kl"].values[2])
    refused, cells = log.notes
    assert refused == "5 rows refused: line 3 has 2 fields under 3 names"
    assert cells.startswith("2 cells refused: line 5 has ")


def test_a_table_without_steps_is_refused(tmp_path):
    path = tmp_path / CSV
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(UnreadableLog, match="no column time/total_timesteps"):
        sb3_csv.read(path, None)


def test_sb3_json_values(tmp_path):
    path = tmp_path / JSON
    bad = b'{"rollout/ep_rew_mean": 5}\n[1, 2]\n{"time/total_timesteps": 7, "a": [1], "b": "x"}\n'
    path.write_bytes(sb3_json_log(6) + bad)
    log, _ = sb3_json.read(path, None)
    assert sorted(log.series) == ["rollout/ep_rew_mean", "train/approx_kl"]
    kl = log.series["train/approx_kl"]  # null is not logged, NaN is data
    np.testing.assert_array_equal(kl.steps, [2048, 4096, 8192, 10240])
    np.testing.assert_array_equal(kl.values, [0.01, math.nan, 0.01, math.nan])
    assert log.notes == (
        "2 lines refused: line 7 has no time/total_timesteps",
        "2 nulls left out: 2 under `train/approx_kl`",
    )


def test_monitor_values(tmp_path):
    path = tmp_path / MONITOR
    path.write_bytes(monitor_log(4))
    log, _ = sb3_monitor.read(path, None)
    assert log.settings == {"env_id": "CartPole-v1"}
    assert log.step_unit == "environment steps"
    returns = log.series["r"]
    assert returns.steps.tolist() == [1, 3, 6, 10]
    assert returns.times.tolist() == [1.7e9, 1.7e9 + 2, 1.7e9 + 4, 1.7e9 + 6]
    assert returns.values.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert log.series["l"].values.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["monitor_sac.csv", "episodes.csv"])
def test_a_monitor_file_is_known_by_its_first_line(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(monitor_log(4))
    assert claim(path) is sb3_monitor.READER


def test_monitor_with_several_attempts(tmp_path):
    path = tmp_path / MONITOR
    path.write_bytes(monitor_log(2) + monitor_log(2, start=1.8e9) + b"9,10,0\n")
    log, _ = sb3_monitor.read(path, None)
    returns = log.series["r"]
    assert returns.steps.tolist() == [1, 3, 4, 6, 16]
    np.testing.assert_array_equal(
        returns.times, [1.7e9, 1.7e9 + 2, 1.8e9, 1.8e9 + 2, math.nan]
    )  # SB3 appends without a header: nobody knows when that attempt began
    assert log.notes == (
        "attempt 2 starts at line 5, step 3",
        "attempt 3 starts at line 9, step 6",
    )


def test_monitor_with_more_columns_and_bad_rows(tmp_path):
    path = tmp_path / MONITOR
    data = b'# {"t_start": 5, "env_id": null}\nr,l,t,is_success,why\n1,10,0.5,True,fell\n'
    path.write_bytes(data + b"2,-3,0.6,False,\n3,5\nnan,4,0.7,,\n#{broken\n")
    log, _ = sb3_monitor.read(path, None)
    assert log.settings == {}
    assert log.series["is_success"].values.tolist() == [1.0]
    assert log.series["r"].steps.tolist() == [10, 14]
    assert np.isnan(log.series["r"].values[1])
    assert log.notes == (
        "attempt 2 starts at line 7, step 14",
        "3 rows refused: line 4 has no return or no length",
        "1 cell refused: line 3 has 'fell' under why",
    )


def test_the_three_columns_of_a_monitor_are_one_whatever_its_name(tmp_path):
    path = tmp_path / "1612222716.1375391.csv"
    path.write_text("r,l,t\n" + "".join(f"{row},5,{row / 10}\n" for row in range(30)))
    log, _ = reader_of(path).read(path, None)
    assert log.source == "sb3-monitor"
    assert log.series["r"].steps.tolist() == [5 * (row + 1) for row in range(30)]
    other = tmp_path / "table.csv"
    other.write_text("r,l,t,step\n" + "".join(f"{row},5,1,{row}\n" for row in range(30)))
    assert reader_of(other) is not sb3_monitor.READER
