import csv
import io
import json
import math

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.metrics import canonicalize
from rlvitals.readers import rllib
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.literals import MAX_LITERAL_CHARACTERS, parse_literal
from rlvitals.readers.select import reader_of

CONFIG = {"env": "Breakout-v4", "lr": 5e-4, "lr_schedule": [[0, 5e-4]], "model": {"dim": 84}}


def result(i):
    learner = {"kl": [0.01 * i, math.nan, None][i % 3], "vf_loss": 1 / (i + 1)}
    return {
        "info": {"learner": learner, "num_steps_trained": 500 * i},
        "training_iteration": i + 1,
        "trial_id": "1234e567",
        "node_ip": "10.0.0.1",
        "timestamp": 1534819438 + 10 * i,
        "episode_reward_mean": None if i == 0 else 1.5 * i,
        "timesteps_total": 500 * (i + 1),
        "done": False,
        "config": CONFIG,
        "hist_stats": {"episode_reward": [1, 2]},
    }


def json_log(rows=25):
    return "".join(json.dumps(result(i)) + "\n" for i in range(rows)).encode()


def csv_log(rows=25, flat=False):
    """Write as Tune's CSV logger: dicts as Python literals (old), or as columns (new)."""
    out = io.StringIO()
    writer = None
    for i in range(rows):
        row = result(i)
        if flat:
            row["info/learner/kl"] = row["info"]["learner"]["kl"]
            row |= {"config/lr": 5e-4, "config/env": "Breakout-v4", "config/hiddens": "[8, 8]"}
            del row["info"], row["config"], row["hist_stats"]
        else:
            row["info"] = str(row["info"])
        writer = writer or csv.DictWriter(out, row.keys())
        if i == 0:
            writer.writeheader()
        writer.writerow(row)
    return out.getvalue().encode()


LOGS = {
    "old progress.csv": csv_log(),
    "new progress.csv": csv_log(flat=True),
    "result.json": json_log(),
}


@pytest.fixture(params=LOGS)
def case(request, tmp_path):
    return rllib.READER, tmp_path / request.param.split()[-1], LOGS[request.param]


def test_the_right_reader_claims_it(case):
    reader, path, data = case
    path.write_bytes(data)
    assert reader_of(path) is reader


def test_truncations(case):
    reader, path, data = case
    log_checks.check_truncations(reader, path, data[:800])
    log_checks.check_truncations(reader, path, data)


def test_reading_on(case):
    log_checks.check_cursor(*case)


def test_damage_never_breaks_the_reader(case):
    log_checks.check_damage(*case)


def test_values(case):
    _, path, data = case
    path.write_bytes(data)
    log, _ = rllib.read(path, None)
    assert log.step_unit == "environment steps"
    assert log.notes == ()
    returns = log.series["episode_reward_mean"]  # None at first: not logged
    np.testing.assert_array_equal(returns.steps, 500 * np.arange(2, 26))
    np.testing.assert_array_equal(returns.times, 1534819438 + 10.0 * np.arange(1, 25))
    np.testing.assert_array_equal(returns.values, 1.5 * np.arange(1, 25))
    kl = log.series["info/learner/kl"]  # NaN is data, None is not
    assert kl.steps.tolist() == [500 * (i + 1) for i in range(25) if i % 3 < 2]
    assert np.isnan(kl.values[1::2]).all()
    assert kl.values[::2].tolist() == [0.01 * i for i in range(0, 25, 3)]
    assert not {"trial_id", "node_ip", "timestamp", "timesteps_total"} & set(log.series)
    assert log.settings["env_id"] == "Breakout-v4"
    assert log.settings["config/lr"] == 5e-4
    assert not any(key.startswith("config") for key in log.series)


def test_nested_settings(tmp_path):
    path = tmp_path / "progress.csv"
    path.write_bytes(csv_log(2))
    settings = rllib.read(path, None)[0].settings
    assert settings["config/model/dim"] == 84
    assert settings["config/lr_schedule"] == "[[0, 0.0005]]"


def test_params_beside_the_log(tmp_path):
    path = tmp_path / "progress.csv"
    path.write_bytes(csv_log(2, flat=True))
    params = tmp_path / "params.json"
    params.write_text('{"env": "Other-v1", "gamma": 0.99, "clip": null}')
    (run,) = sources.find(path)
    settings = canonicalize.trace(sources.read(run)).settings
    assert settings["gamma"] == 0.99
    assert settings["env_id"] == "Breakout-v4"  # the log's own word holds
    params.write_text('{"env": "Other')
    assert sources.read(run)[1].notes == ("not JSON: its settings are not known",)


def test_a_file_cut_inside_a_quoted_string(tmp_path):
    path = tmp_path / "progress.csv"
    path.write_bytes(csv_log(3)[:-200])
    log, _ = rllib.read(path, None)
    assert len(log.series["info/learner/vf_loss"]) == 2
    assert log.notes == ("the last line is not complete: left for the next reading",)


def test_a_quote_lost_in_the_middle_costs_one_row(tmp_path):
    path = tmp_path / "progress.csv"
    lines = csv_log(9).splitlines(keepends=True)
    at = lines[4].index(b'"')
    lines[4] = lines[4][:at] + lines[4][at + 1 :]
    path.write_bytes(b"".join(lines))
    log, _ = rllib.read(path, None)
    assert log.series["info/learner/vf_loss"].steps.tolist() == [
        500 * (i + 1) for i in range(9) if i != 3
    ]
    assert log.notes == ("1 row refused: line 5 opens a quote that it does not close",)


@pytest.mark.parametrize(
    ("columns", "step", "unit"),
    [
        ({"num_env_steps_sampled_lifetime": 70, "timesteps_total": None}, 70, "environment steps"),
        ({"env_runners": {"num_env_steps_sampled_lifetime": 70}}, 70, "environment steps"),
        ({"timesteps_total": "nan"}, 3, "iterations"),
    ],
)
def test_the_step_is_the_first_that_the_log_has(tmp_path, columns, step, unit):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"training_iteration": 3, "loss": 1.0, **columns}) + "\n{}\n")
    log, _ = rllib.read(path, None)
    assert log.series["loss"].steps.tolist() == [step]
    assert log.step_unit == unit
    assert log.notes[0].startswith("1 line refused: line 2 has no ")


def test_a_table_of_something_else_is_refused(tmp_path):
    path = tmp_path / "progress.csv"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(UnreadableLog, match="no column training_iteration"):
        rllib.read(path, None)


def test_literals():
    text = "{'a': -1.5, 'b': [1, (2, None)], 'c': {'d': True}, 'e': -inf, 'f': <class 'a.B'>}"
    assert parse_literal(text) == {
        "a": -1.5,
        "b": [1, [2, None]],
        "c": {"d": True},
        "e": -math.inf,
        "f": None,
    }
    assert math.isnan(parse_literal("{'a': nan}")["a"])
    assert parse_literal("{'a': __import__('os').getcwd(), 'b': 1 + 1}") == {"a": None, "b": None}
    assert parse_literal(r"{'\ud800': '\d'}") == {"?": "\\d"}


@pytest.mark.parametrize(
    "text", ["{", "{'a': }", "{" * 5000, "-" * 100_000, "x" * (MAX_LITERAL_CHARACTERS + 1)]
)
def test_what_is_no_literal_is_refused(text):
    with pytest.raises(ValueError, match=r"literal|characters"):
        parse_literal(text)
