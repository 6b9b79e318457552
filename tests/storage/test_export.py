"""Tables for other programs, and other programs' runs as our own."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from native_runs import points, record

import rlvitals
from rlvitals.errors import UsageError
from rlvitals.storage import import_log
from rlvitals.storage.export import export
from rlvitals.types import Ending, Histogram, Log, Series, Table, Text

NAN, INF = float("nan"), float("inf")


def series(steps, values, times=None):
    steps = np.array(steps, np.int64)
    times = np.full(len(steps), NAN) if times is None else np.array(times, float)
    return Series(steps, times, np.array(values, float))


RUN = {
    "loss": series([1, 2, 2, 3], [0.1, NAN, INF, -0.0], [5.0, 6.0, 6.0, 7.0]),
    'eval, "x"': series([3], [1 / 3], [7.0]),
    "step": series([1], [9.0], [5.0]),
}  # fmt: skip


@pytest.mark.parametrize("end", ["csv", "jsonl", "parquet"])
def test_a_table_has_a_row_for_each_step_and_every_number(tmp_path, end):
    path = tmp_path / f"x.{end}"
    assert export(RUN, path) == 4
    if end == "csv":
        text = pd.read_csv(path, dtype=str, keep_default_na=False)
        assert text["loss"].tolist() == ["0.1", "nan", "inf", "-0.0"]
        assert text['eval, "x"'].tolist() == ["", "", "", repr(1 / 3)]
        frame = pd.read_csv(path)
    elif end == "jsonl":
        frame = pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    else:
        frame = pd.read_parquet(path)
    assert frame["step"].tolist() == [1, 2, 2, 3]
    assert frame["time"].tolist() == [5.0, 6.0, 6.0, 7.0]
    assert frame["loss"][[0, 2, 3]].tolist() == [0.1, INF, 0.0]
    assert np.isnan(frame["loss"][1])
    assert frame['eval, "x"'][3] == 1 / 3
    assert frame["step_"][0] == 9.0
    assert frame["step_"].isna().tolist() == [False, True, True, True]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_spreadsheet_holds_the_same_and_no_formula(tmp_path):
    pytest.importorskip("xlsxwriter")
    path = tmp_path / "x.xlsx"
    assert export({**RUN, "=1+1": series([1], [2.0], [5.0])}, path) == 4
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    rows = [re.findall(r"<(?:v|t)>(.*?)</", row) for row in sheet.split("<row ")[1:]]
    assert [rows[0][0], rows[0][2], rows[0][-1]] == ["step", "loss", "=1+1"]
    assert rows[1] == ["1", "5", "0.1", "9", "2"]
    assert [row[2] for row in rows[2:4]] == ["nan", "inf"]


def test_rows_without_times_are_in_the_order_of_their_steps(tmp_path):
    export({"a": series([3, 1], [1, 2]), "b": series([1, 2], [3, 4])}, tmp_path / "x.csv")
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines == ["step,time,a,b", "1,,2.0,3.0", "2,,,4.0", "3,,1.0,"]


def test_an_ending_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot tell"):
        export(RUN, tmp_path / "x.ods")


def test_what_a_reader_found_becomes_a_run_of_our_own(tmp_path):
    log = Log(
        "sb3-csv",
        {"rollout/ep_rew_mean": RUN["loss"], "train/loss": RUN["loss"], "time/fps": RUN["step"]},
        {"lr": 0.5, "name": "x"},
        ("line 3 refused",),
        step_unit="environment steps",
        histograms={"h": [Histogram(1, NAN, np.array([0.0, 1.0]), np.array([2.0]))]},
        texts={"t": [Text(1, 2.0, "hm")]},
        tables={"c": Table(np.array([4]), {"a": ["b"]})},
        ending=Ending(1, "ValueError: boom", "SIGTERM", 4, "rank 2: stopped"),
    )
    episodes = Log("sb3-monitor", {"r": RUN["step"]}, step_unit="episodes")
    import_log.write([log, episodes], tmp_path / "run")
    (found,) = rlvitals.read(tmp_path / "run")
    assert points(found.series) == points({**log.series, "sb3-monitor/r": RUN["step"]})
    assert (found.framework, found.step_unit) == ("sb3", "environment steps")
    assert found.settings["lr"] == 0.5
    assert found.ending == log.ending
    assert found.texts == {"t": [Text(1, 2.0, "hm")]}
    assert found.tables["c"].columns == {"a": ["b"]}
    assert found.histograms["h"][0].counts.tolist() == [2.0]
    with pytest.raises(UsageError, match="a run is here already"):
        import_log.write([log], tmp_path / "run")


def test_a_run_is_the_same_when_it_was_exported_and_read_again(tmp_path):
    record(tmp_path / "run", attempts=2)
    logs = rlvitals.read(tmp_path / "run")
    import_log.write(logs, tmp_path / "again")
    (again,) = rlvitals.read(tmp_path / "again")
    assert points(again.series) == points(logs[0].series)
