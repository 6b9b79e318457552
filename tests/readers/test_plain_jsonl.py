"""Any JSON lines with a step-like key: flattened, counted, cut, followed."""

import json

import log_checks
import numpy as np
import pytest
from loading import read_log

from rlvitals.errors import UnreadableLog
from rlvitals.readers import plain_jsonl
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head
from rlvitals.readers.select import reader_of

READER = plain_jsonl.READER


@pytest.fixture
def write(tmp_path):
    def make(text, name="run.jsonl"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path):
    assert reader_of(path) is READER
    return READER.read(path, None)[0]


def test_nested_objects_are_flattened(write):
    rows = [{"step": n, "actor": {"loss": n / 2, "kl": {"k3": 0.1}}, "ids": [1, 2]} for n in (1, 2)]
    log = read(write(lines(*rows)))
    assert set(log.series) == {"actor/loss", "actor/kl/k3"}
    assert log.series["actor/loss"].steps.tolist() == [1, 2]
    assert log.series["actor/loss"].values.tolist() == [0.5, 1.0]


def test_a_first_line_of_settings_does_not_choose_the_step(write):
    config = {"type": "config", "args": {"steps": 500, "lr": 1e-5, "kl_coef": 0.1}}
    log = read(write(lines(config, *({"step": n, "loss": n / 2} for n in (10, 20, 30)))))
    assert log.series["loss"].steps.tolist() == [10, 20, 30]
    assert log.settings == {
        "type": "config", "args/steps": 500, "args/lr": 1e-5, "args/kl_coef": 0.1
    }  # fmt: skip
    assert log.notes == ()


HEADER = {"event": "config", "lr": 1e-6, "num_steps": 51, "prompts": ["a"]}


def test_the_settings_of_a_first_line_stay_while_the_file_grows(write):
    rows = [{"step": n, "loss": n / 2} for n in range(4)]
    path = write(lines(HEADER, *rows[:2]))
    first, cursor = READER.read(path, None)
    write(lines(HEADER, *rows))
    later, _ = READER.read(path, cursor)
    assert first.settings == later.settings == {"event": "config", "lr": 1e-6, "num_steps": 51}
    assert later.series["loss"].steps.tolist() == [2, 3]


def test_a_first_line_of_settings_may_be_alone_at_first(write):
    path = write(lines(HEADER))
    _, cursor = READER.read(path, None)
    write(lines(HEADER, *({"step": n, "loss": n / 2} for n in range(3))))
    log, _ = READER.read(path, cursor)
    assert log.series["loss"].steps.tolist() == [0, 1, 2]


def test_a_first_row_of_another_measure_is_a_row(write):
    log = read(write(lines({"step": 0, "val_loss": 3.0}, {"step": 1, "loss": 2}, {"step": 2})))
    assert log.series["val_loss"].steps.tolist() == [0]


def test_a_row_wrapped_as_data_reads_as_its_data(write):
    log = read(write(lines(*({"step": n, "data": {"actor/kl": n / 10}} for n in (1, 2)))))
    assert log.series["actor/kl"].steps.tolist() == [1, 2]


def test_odd_values(write):
    text = [
        "NaN",
        "Infinity",
        "null",
        '"NaN"',
        '"-Infinity"',
        '"12"',
        "true",
        "1e400",
        "[]",
        "1e308",
    ]
    log = read(write("".join(f'{{"step": {n}, "v": {x}}}\n' for n, x in enumerate(text))))
    assert log.series["v"].steps.tolist() == [0, 1, 3, 4, 6, 7, 9]
    expected = [np.nan, np.inf, np.nan, -np.inf, 1.0, np.inf, 1e308]
    np.testing.assert_array_equal(log.series["v"].values, expected)


def test_one_key_is_the_step_of_the_whole_file(write):
    rows = [{"step": 1, "epoch": 0, "loss": 1}, {"epoch": 1, "eval": 2}, {"step": 2, "loss": 3}]
    log = read(write(lines(*rows)))
    assert log.series["loss"].steps.tolist() == [1, 2]
    assert "eval" not in log.series
    assert log.notes == ("1 line refused: line 2 has no whole number as `step`",)


@pytest.mark.parametrize("bad", ["{", "[1]", "7", "null", "nonsense", '{"step": 3', "\ufffd{}"])
def test_a_bad_line_is_refused_and_the_others_kept(write, bad):
    log = read(write('{"step": 1, "a": 1}\n' + bad + '\n{"step": 2, "a": 2}\n'))
    assert log.series["a"].steps.tolist() == [1, 2]
    assert log.notes == ("1 line refused: line 2 is not a JSON object",)


def test_times_and_settings(write):
    rows = [
        {"_step": n, "_timestamp": 1.7e9 + n, "env": "Ant", "phase": str(n), "r": n} for n in (1, 2)
    ]
    log = read(write(lines(*rows)))
    assert log.series["r"].times.tolist() == [1.7e9 + 1, 1.7e9 + 2]
    assert log.settings == {"env": "Ant"}
    assert "_timestamp" not in log.series


def test_a_log_without_a_step_is_numbered_by_row_and_says_so(write):
    log = read(write(lines({"type": "config", "lr": 0.1}, {"loss": 1.0}, {"loss": 0.5})))
    assert log.series["loss"].steps.tolist() == [2, 3]
    assert "no step-like key: points are numbered by row" in log.notes


@pytest.mark.parametrize("name", ["run.json", "run.jsonl", "run.ndjson", "run.log"])
def test_file_names(write, name):
    assert len(read(write(lines({"step": 1, "a": 1}, {"step": 2, "a": 2}), name)).series["a"]) == 2


def test_an_array_of_rows(write):
    log = read(write(json.dumps([{"step": n, "a": n} for n in range(5)], indent=1), "run.json"))
    assert log.series["a"].steps.tolist() == list(range(5))
    assert log.notes == ()


def test_a_first_line_longer_than_what_claims_sees(write):
    long = {"step": 1, "loss": 1.0, "texts": ["x" * 100_000]}
    assert len(read(write(lines(long, {**long, "step": 2}))).series["loss"]) == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "run.jsonl"),
        ("\n\n", "run.jsonl"),
        ('{"a": 1}\n', "run.jsonl"),
        ('{"lr": 0.1, "total_timesteps": 1000}\n', "params.json"),
        ('{"lr": 0.1, "total_timesteps": 1000}\n', "config.json"),
        ('{"lr": 0.1, "total_timesteps": 1000}\n', "agent.json"),
        ('{\n "step": 1\n}\n', "run.json"),
        ('["a", "b"]', "run.json"),
        ("[" * 100_000, "run.json"),
        (b"\x00\xff" * 900, "run.jsonl"),
        (b"\xff\xfe\n" * 50, "run.jsonl"),
        ('{"step": 1}\n', "run.png"),
    ],
)
def test_what_is_no_log_is_refused_by_name(write, text, name):
    path = write(text, name)
    assert not READER.claims(path, read_head(path))
    with pytest.raises(UnreadableLog) as error:
        read_log(path)
    assert str(path) in error.value.where


@pytest.mark.parametrize("text", ["", '{"a": 1}\n', "[", "[1]", "x\n"])
def test_reading_what_is_no_log_says_why(write, text):
    with pytest.raises(UnreadableLog) as error:
        READER.read(write(text), None)
    assert error.value.hint


LOG = lines(*({"step": n, "a": n / 7, "deep": {"b": None if n % 3 else n}} for n in range(24)))
ARRAY = "[" + ",\n".join(LOG.splitlines()) + "]\n"


@pytest.mark.parametrize("text", [LOG, ARRAY], ids=["lines", "array"])
def test_cuts_read_as_prefixes(write, text):
    path = write(text)
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_500_cuts_of_a_long_log_read_as_prefixes(write):
    text = lines(*({"step": n, "loss": n / 7} for n in range(1000)))
    path = write(text)
    assert log_checks.check_truncations(READER, path, path.read_bytes(), refusals=True) > 0.8


def test_a_growing_file_reads_once(write):
    path = write(LOG)
    log_checks.check_growth(READER, path, path.read_bytes(), [10, 60, 61, 500, 501, 900])


def test_a_growing_array_reads_once(write):
    path = write(ARRAY)
    log_checks.check_growth(READER, path, path.read_bytes(), [10, 60, 61, 500, 501, 900])


@pytest.mark.parametrize("text", [LOG, ARRAY], ids=["lines", "array"])
def test_a_file_written_anew_is_read_from_its_start(write, text):
    path = write(text)
    _, cursor = READER.read(path, None)
    write(text.replace('"a"', '"b"'))
    log, _ = READER.read(path, cursor)
    assert REPLACED_NOTE in log.notes
    assert len(log.series["b"]) == 24


def test_nothing_new_is_nothing(write):
    path = write(ARRAY)
    _, cursor = READER.read(path, None)
    assert log_checks.points(READER.read(path, cursor)[0]) == {}


def test_a_line_of_100_megabytes_costs_one_row(write):
    first, last = b'{"step": 1, "a": 1}\n', b'{"step": 3, "a": 3}\n'
    path = write(first + b'{"step": 2, "a": "' + b"9" * 100_000_000 + b'"}\n' + last)
    log, _ = READER.read(path, None)
    assert log.series["a"].steps.tolist() == [1, 3]
    assert any("1 line over 16 MiB skipped" in note for note in log.notes)


def test_ms_swift_writes_its_step_with_the_last_one(tmp_path):
    path = tmp_path / "logging.jsonl"
    rows = [
        {"loss": 0.5, "reward": 0.1, "global_step/max_steps": "10/100", "elapsed_time": "1m 3s"},
        {"loss": 0.4, "reward": 0.2, "global_step/max_steps": "20/100", "elapsed_time": "2m 6s"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert reader_of(path).name == "jsonl"
    log, _ = reader_of(path).read(path, None)
    assert log.series["reward"].steps.tolist() == [10, 20]
    assert log.settings["max_steps"] == 100
    assert "max_steps" not in log.series


def test_llama_factory_writes_its_step_with_the_last_one(write):
    rows = [
        {"current_steps": n, "total_steps": 400, "loss": 0.5, "lr": 1e-6, "percentage": n / 4}
        for n in (10, 20, 30)
    ]
    log = read_log(write("".join(json.dumps(row) + "\n" for row in rows)))
    assert log.series["loss"].steps.tolist() == [10, 20, 30]
    assert log.settings["max_steps"] == 400


@pytest.mark.parametrize("first", [0.0, 0.004])
def test_a_fraction_of_an_epoch_counts_nothing(write, first):
    rows = [{"loss": 0.5, "reward": 0.1 * n, "epoch": first + 0.01 * n} for n in range(5)]
    log = read_log(write("".join(json.dumps(row) + "\n" for row in rows)))
    assert log.series["reward"].steps.tolist() == [1, 2, 3, 4, 5]
    assert "no step-like key: points are numbered by row" in log.notes
