"""danijar's scope: packed rows in a file for each metric, written as its source writes them."""

import struct

import log_checks
import numpy as np
import pytest
from loading import read_log
from test_sources import LINES, build

from rlvitals.errors import UnreadableLog
from rlvitals.readers import scope, select
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE, read_head

READER = scope.READER


def packed(*rows):
    """Rows of (step, value) as `table_append(path, '>qd', steps, values)` packs them."""
    return b"".join(struct.pack(">qd", step, value) for step, value in rows)


LOG = packed(*((n * 1000, n / 7) for n in range(50)))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run" / "scope" / "train-loss.float"
    path.parent.mkdir(parents=True)
    path.write_bytes(LOG)
    return path


def test_steps_and_values(path):
    rows = [(0, 1.5), (10, np.nan), (20, -np.inf), (2**60, 1e308), (5, 2.0)]
    path.write_bytes(packed(*rows))
    assert select.reader_of(path) is READER
    series = read_log(path).series
    assert list(series) == ["train/loss"]
    assert series["train/loss"].steps.tolist() == [step for step, _ in rows]
    np.testing.assert_array_equal(series["train/loss"].values, [value for _, value in rows])
    assert np.isnan(series["train/loss"].times).all()


def test_truncations_growth_and_damage(path):
    assert log_checks.check_truncations(READER, path, LOG) == 1
    log_checks.check_cursor(READER, path, LOG)
    log_checks.check_damage(READER, path, LOG)


def test_a_file_written_anew_is_read_from_its_start(path):
    _, cursor = READER.read(path, None)
    path.write_bytes(packed((1, 2.0)))
    log, _ = READER.read(path, cursor)
    assert log.series["train/loss"].values.tolist() == [2.0]
    assert REPLACED_NOTE in log.notes


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("train-loss.float", b""),
        ("train-loss.float", b"\xff" * 4 + LOG),
        ("train-loss.float", LOG[:15]),
        ("train-loss.bin", LOG),
        ("Train Loss!.float", LOG),
    ],
)
def test_what_is_no_column_is_not_claimed(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    assert not READER.claims(path, read_head(path))


def test_absurd_steps_are_refused(path):
    path.write_bytes(packed((1, 1.0), (2**63 - 1, 2.0), (3, 3.0)))
    log = read_log(path)
    assert log.series["train/loss"].values.tolist() == [1.0, 3.0]
    assert log.notes == ("1 row refused: a step beyond 2**62",)
    path.write_bytes(packed((2**63 - 1, 2.0)))
    with pytest.raises(UnreadableLog, match="no row has a step"):
        READER.read(path, None)


def test_a_dreamer_run_is_one(tmp_path):
    scores = b'{"step": 100, "episode/score": 3.5}\n{"step": 200, "episode/score": 4.5}\n'
    files = {
        "dreamer/scope/train-loss-image.float": LOG,
        "dreamer/scope/episode-score.float": packed((100, 3.5), (200, 4.5)),
        "dreamer/scope/report-text.txt/index": struct.pack("q8s", 1, b"abcdefgh"),
        "dreamer/scope/report-text.txt/0001-6162.txt": b"some text",
        "dreamer/scope/openl.png/index": struct.pack("q8s", 1, b"abcdefgh"),
        "dreamer/metrics.jsonl": LINES,
        "dreamer/scores.jsonl": scores,
        "dreamer/config.yaml": b"seed: 3\nagent: {opt: {lr: 4e-5}}\n",
    }
    (run,) = sources.find(build(tmp_path, files))
    assert run.name == "dreamer"
    logs = {log.source: log for log in sources.read(run)}
    assert set(logs["scope"].series) == {"episode/score", "train/loss/image"}
    assert logs["settings"].settings == {"seed": 3, "agent/opt/lr": 4e-5}
    found = [key for log in sources.read(run) if log.source == "jsonl" for key in log.series]
    assert sorted(found) == ["episode/score", "loss"]


def test_a_file_of_many_gigabytes_is_not_held(path):
    with path.open("r+b") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UnreadableLog, match="more than 128 MiB of one metric"):
        READER.read(path, None)
