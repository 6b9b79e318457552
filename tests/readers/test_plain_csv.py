"""Any table with a step-like column: told by name, read by cell, refused by row."""

from pathlib import Path

import log_checks
import numpy as np
import pytest
from loading import read_log

import rlvitals
from rlvitals.errors import UnreadableLog
from rlvitals.readers import plain_csv
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head

READER = plain_csv.READER


@pytest.fixture
def write(tmp_path):
    def make(text, name="run.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def read(path):
    assert READER.claims(path, read_head(path))
    return READER.read(path, None)[0]


@pytest.mark.parametrize(
    ("header", "step", "unit"),
    [
        ("step,loss", "step", "steps"),
        ("Step,loss", "Step", "steps"),
        ("_step,loss", "_step", "steps"),
        ("loss,global_step,epoch", "global_step", "steps"),
        ("epoch,Global Step,loss", "Global Step", "steps"),
        ("time/total_timesteps,loss", "time/total_timesteps", "environment steps"),
        ("iteration,timesteps_total,loss", "timesteps_total", "environment steps"),
        ("Epoch,TotalEnvInteracts,loss", "TotalEnvInteracts", "environment steps"),
        ("iter,loss", "iter", "iterations"),
        ("update,epoch,loss", "update", "updates"),
        ("loss,epoch", "epoch", "epochs"),
        ("episode,steps,reward", "episode", "episodes"),
        ("steps,reward", "steps", "steps"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_the_step_is_told_by_its_name(write, header, step, unit, delimiter):
    names = header.split(",")
    rows = [[10 * row + column for column in range(len(names))] for row in range(1, 4)]
    lines = [names, *rows]
    log = read(write("".join(delimiter.join(map(str, line)) + "\n" for line in lines)))
    assert set(log.series) == set(names) - {step}
    assert log.step_unit == unit
    for name, series in log.series.items():
        assert series.steps.tolist() == [row[names.index(step)] for row in rows]
        assert series.values.tolist() == [row[names.index(name)] for row in rows]


def test_odd_cells(write):
    cells = ["nan(ind)", "Infinity", "None", "1e308", "", "-inf", "oops", "1_000", "0x1F", "2"]
    log = read(write("step,loss\n" + "".join(f"{n},{c}\n" for n, c in enumerate(cells))))
    loss = log.series["loss"]
    assert loss.steps.tolist() == [0, 1, 3, 5, 9]
    np.testing.assert_array_equal(loss.values, [np.nan, np.inf, 1e308, -np.inf, 2.0])
    assert log.notes == ("3 cells without a number left out: `loss`",)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("7,1,9", "has 3 fields under 2 names"),
        ("7", "has 1 field under 2 names"),
        ("seven,1", "holds 'seven' as `step`"),
        (",1", "holds '' as `step`"),
        ("nan,1", "holds 'nan' as `step`"),
        ("1e300,1", "holds '1e300' as `step`"),
        ("2.5,1", "holds '2.5' as `step`"),
    ],
)
def test_a_bad_row_is_refused_and_the_others_kept(write, row, why):
    log = read(write(f"step,loss\n1,0.5\n{row}\n2,0.25\n"))
    assert log.series["loss"].steps.tolist() == [1, 2]
    assert log.notes == (f"1 row refused: line 3 {why}",)


def test_settings_behind_the_first_row_alone_leave_the_other_rows_whole(write):
    rows = "".join(f"{n},{2 * n}.5\n" for n in range(2, 12))
    log = read(write(f"episode,reward,gamma,lr,\n1,2.5,0.99,0.001,\n{rows}"))
    assert log.series["reward"].steps.tolist() == list(range(1, 12))
    assert log.series["reward"].values.tolist() == [2 * n + 0.5 for n in range(1, 12)]
    assert len(log.series["gamma"]) == 1
    assert not log.notes


def test_single_short_rows_are_refused(write):
    rows = "".join(f"{n},{n}.5,0.9\n" for n in range(1, 12))
    log = read(write(f"episode,reward,gamma\n{rows}12,3.5\n"))
    assert len(log.series["reward"]) == 11
    assert any("refused" in note for note in log.notes)


def test_steps_may_repeat_and_go_back(write):
    log = read(write("step,loss\n1,1\n2,2\n2,3\n1,4\n"))
    assert log.series["loss"].steps.tolist() == [1, 2, 2, 1]
    assert log.series["loss"].values.tolist() == [1, 2, 3, 4]


HEADS = "step,loss,time\n1,0.5,3\n\nstep,loss,reward,time\n2,0.4,-9,6\n3,0.3,-8,9\n"


def test_names_that_change_within_a_table_name_the_rows_below(write):
    log = read(
        write(HEADS + "4,0.2,7\nstep,time,loss\n5,15,0.1\n\nstep,loss,reward,time\n6,0,-5,1\n")
    )
    assert log.series["loss"].steps.tolist() == [1, 2, 3, 5, 6]
    assert log.series["loss"].values.tolist() == [0.5, 0.4, 0.3, 0.1, 0]
    assert log.series["reward"].values.tolist() == [-9, -8, -5]
    assert log.series["time"].values.tolist() == [3, 6, 9, 15, 1]
    assert log.notes == ("1 row refused: line 7 has 3 fields under 4 names",)


def test_rows_that_are_added_below_changed_names(write):
    path = write(HEADS)
    _, cursor = READER.read(path, None)
    path.write_text(HEADS + "4,0.2,-7,12\n")
    log, cursor = READER.read(path, cursor)
    assert log.series["reward"].values.tolist() == [-7]
    path.write_text(HEADS + "4,0.2,-7,12\nstep,loss,kl\n5,0.1,0.01\n")
    log, _ = READER.read(path, cursor)
    assert log.series["loss"].values.tolist() == [0.5, 0.4, 0.3, 0.2, 0.1], "read again"
    assert log.series["kl"].steps.tolist() == [5]


def test_a_row_of_texts_is_no_head(write):
    log = read(write("step,phase,loss\n1,warm,0.5\nnone,loss,bad,\n2,train,0.4\n"))
    assert log.series["loss"].values.tolist() == [0.5, 0.4]


def test_a_header_that_a_resumed_run_appended_is_no_row(write):
    log = read(write("step,loss\n1,1\nstep,loss\n2,2\n"))
    assert log.series["loss"].steps.tolist() == [1, 2]
    assert log.notes == ()


def test_times(write):
    cells = ["1700000000.5", "1700000001000", "2026-01-31T10:00:00+00:00", "12.5"]
    log = read(
        write("step,timestamp,loss\n" + "".join(f"{n},{c},1\n" for n, c in enumerate(cells)))
    )
    expected = [1700000000.5, 1700000001.0, 1769853600.0, np.nan]
    np.testing.assert_array_equal(log.series["loss"].times, expected)
    assert log.series["timestamp"].values.tolist() == [12.5]  # a duration is a metric


def test_text_that_never_changes_is_a_setting(write):
    log = read(write("step,env,note,loss\n1,CartPole-v1,a,1\n2,CartPole-v1,b,2\n"))
    assert log.settings == {"env": "CartPole-v1"}
    assert log.notes == ("2 cells without a number left out: `note`",)


def test_comments_blank_lines_and_a_byte_order_mark(write):
    log = read(write("\ufeff# made by hand\n\nstep,loss\n\n1,2\n"))
    assert log.series["loss"].steps.tolist() == [1]
    assert log.notes == ()


def test_the_marks_of_a_merge_conflict_are_no_rows(write):
    rows = "".join(f"{step},{step}.5\n" for step in range(1, 12))
    text = f"<<<<<<< HEAD\nepisode,total_reward\n{rows}=======\n>>>>>>> 6467273d\n"
    log = read(write(text))
    assert log.series["total_reward"].steps.tolist() == list(range(1, 12))
    assert log.notes == ("2 rows refused: line 14 has 1 field under 2 names",)


def test_names_that_repeat_stay_apart(write):
    log = read(write("step,loss,loss,\n1,2,3,4\n"))
    assert {k: s.values.tolist() for k, s in log.series.items()} == {
        "loss": [2.0],
        "loss (3)": [3.0],
        "column (4)": [4.0],
    }


def test_decimal_commas_between_semicolons(write):
    log = read(write("step;loss\n1;0,5\n2;1.5\n"))
    assert log.series["loss"].values.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("text", ["reward,loss\n3,1\n4,2\n", "epoch,loss\n0.5,1\n1.0,2\n"])
def test_a_log_without_a_whole_step_is_numbered_by_row_and_says_so(write, text):
    log = read(write(text))
    assert log.series["loss"].steps.tolist() == [1, 2]
    assert log.step_unit == "rows"
    assert log.notes == ("no step-like column: points are numbered by row",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "1,2\n3,4\n",
        "sepal,petal\n1,2\n",
        "step\n1\n",
        "step,loss",
        b"step,loss\x00\n1,2\n",
        b"\x00\xff" * 900,
        b"\xff\xfe\xfd\n" * 50,
        '{"step": 1}\n',
        "plain words, and more\nof them\n",
    ],
)
def test_what_is_no_log_is_refused_by_name(write, text):
    path = write(text)
    assert not READER.claims(path, read_head(path))
    with pytest.raises(UnreadableLog) as error:
        read_log(path)
    assert str(path) in error.value.where
    with pytest.raises(UnreadableLog):
        READER.read(path, None)


def test_a_table_without_a_step_is_refused_with_its_columns(write):
    with pytest.raises(UnreadableLog) as error:
        read_log(write("sepal,petal\n1,2\n"))
    assert "sepal, petal" in error.value.where


TABLE = "step,loss,note\n" + "".join(
    f'{n},{1 / n:.6f},"a, ""b""\nof two lines"\n' if n % 7 == 0 else f"{n},{n * 1.5},\n"
    for n in range(1, 60)
)


def test_cuts_read_as_prefixes(write):
    path = write(TABLE)
    assert path.stat().st_size > 700
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_cuts_without_a_step_column_read_as_prefixes(write):
    path = write("loss,acc\n" + "".join(f"{n},{n / 7:.4f}\n" for n in range(80)))
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_500_cuts_of_a_long_log_read_as_prefixes(write):
    path = write("step,loss\n" + "".join(f"{n},{n / 7:.9f}\n" for n in range(1500)))
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


@pytest.mark.parametrize("text", [TABLE, "loss,acc\n" + "1,2\n" * 300])
def test_a_growing_file_reads_once(write, text):
    path = write(text)
    log_checks.check_growth(READER, path, path.read_bytes(), [5, 40, 41, 300, 500, 501, 502])


def test_a_file_written_anew_is_read_from_its_start(write):
    path = write("step,loss\n1,1\n2,2\n")
    _, cursor = READER.read(path, None)
    write("step,kl,loss\n1,3,1\n2,3,2\n3,3,3\n")
    log, _ = READER.read(path, cursor)
    assert log.notes == (REPLACED_NOTE,)
    assert log.series["loss"].steps.tolist() == [1, 2, 3]


def test_a_line_of_100_megabytes_costs_one_row(write):
    path = write(b"step,loss\n1,1\n2," + b"9" * 100_000_000 + b"\n3,3\n")
    log, _ = READER.read(path, None)
    assert log.series["loss"].steps.tolist() == [1, 3]
    assert "1 line over 16 MiB skipped: the first is line 3" in log.notes


def test_a_file_that_cannot_be_opened_is_refused_by_name(tmp_path):
    path = tmp_path / "run.csv"
    path.symlink_to(tmp_path / "gone.csv")
    with pytest.raises(UnreadableLog, match="a link to a file that does not exist"):
        read_log(path)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("loss", True),
        ("train/policy_loss", True),
        ("meanReward", True),
        ("approx_kl", True),
        ("sepal", False),
        ("class", False),
        ("klondike", False),
        ("gloss", False),
    ],
)
def test_measures_are_told_by_whole_words(name, is_one):
    assert column_guess.is_measure(name) is is_one


@pytest.mark.parametrize(
    "first", ["", "  ", "\n", "# a remark, of two\n", "damage {", "\ufffd,loss"]
)
@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "jsonlines", "json"])
def test_json_lines_are_never_a_table(first, suffix):
    head = (first + '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n').encode()
    assert not READER.claims(Path(f"run.{suffix}"), head)
    if first.strip() == "":
        assert not READER.claims(Path("run.log"), head)


def test_a_head_that_is_not_complete_is_no_table_yet(tmp_path):
    path = tmp_path / "run.csv"
    for size in range(1, len("step,loss")):
        path.write_bytes(b"step,loss"[:size])
        assert not READER.claims(path, read_head(path))
        with pytest.raises(UnreadableLog, match="may be one that has just begun"):
            read_log(path)
    path.write_bytes(b"step,loss\n")
    assert read_log(path).series == {}


def test_a_printed_report_is_no_table(tmp_path):
    report = Path("tests/runs/grpo-paid-by-length/report.txt").read_text()
    (tmp_path / "report.txt").write_text(report)
    assert not plain_csv.claims(tmp_path / "report.txt", report.encode())
    with pytest.raises(UnreadableLog):
        rlvitals.diagnose(tmp_path / "report.txt")


def test_a_quoted_delimiter_makes_no_prose_of_a_table(write):
    rows = "".join(f'{1 / n:.3f},"lr, wd"\n' for n in range(1, 21))
    assert len(read(write(f"loss,notes\n{rows}")).series["loss"]) == 20


def test_a_downloaded_curve_is_named_by_its_file(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text("Walltime,Step,Value\n" + "".join(f"{1.5e9 + n},{n},{n}.5\n" for n in range(9)))
    assert plain_csv.read(path)[0].series["rewards"].values.tolist() == [n + 0.5 for n in range(9)]


def test_a_step_that_is_constant_beside_one_that_moves_is_no_step(write):
    rows = "".join(f'{n},0,"[1.0, 2.0]",{n}\n' for n in range(20))
    log = read(write(f"Episode,Step,State,Reward\n{rows}"))
    assert log.series["Reward"].steps.tolist() == list(range(20))
