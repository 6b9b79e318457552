"""DVCLive's tables, one a metric, written by DVCLive itself."""

import gzip
import math
import os
import subprocess
import sys

import log_checks
import numpy as np
import pytest

from rlvitals.errors import UnreadableLog
from rlvitals.readers import dvclive
from rlvitals.readers.discovery import sources
from rlvitals.readers.formats.lines import REPLACED_NOTE
from rlvitals.readers.select import claim, reader_of

READER = dvclive.READER
ODD = (math.nan, math.inf, -math.inf, 1.5)
KEYS = ["ep_rew_mean", "odd", "policy/deep/kl", "test", "train/loss", "val/return"]


# A process of its own: DVCLive looks after the repository that it is run in.
PROGRAM = """
import math
import numpy as np
from dvclive import Live

for name in ("first/dvclive", "second/dvclive", "own"):
    with Live(dir=name, save_dvc_exp=False, dvcyaml=None) as live:
        live.log_params({"lr": 3e-4})
        for step in range(30):
            live.log_metric("train/loss", 1 / (step + 1))
            live.log_metric("ep_rew_mean", np.float32(step), timestamp=True)
            live.log_metric("policy/deep/kl", 0.01)
            live.log_metric("odd", (math.nan, math.inf, -math.inf, 1.5)[step % 4])
            if step % 10 == 0:
                live.log_metric("val/return", step)
                live.log_metric("test", step)
                live.log_metric("said", "hello")
            live.next_step()
"""


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return a folder of two runs in `dvclive/` and of one in a folder of its own name."""
    folder = tmp_path_factory.mktemp("dvclive")
    env = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, cwd=folder, env=env, capture_output=True, check=True)
    return folder


@pytest.fixture
def path(tmp_path):
    """Where a metric's table is to be written."""
    path = tmp_path / "dvclive" / "plots" / "metrics" / "train" / "loss.tsv"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.soak
def test_a_folder_s_tables_are_one_run(written):
    runs = {run.name: run for run in sources.find(written)}
    assert list(runs) == ["first", "own", "second"]
    for run in runs.values():
        (log,) = (log for log in sources.read(run) if log.source == "dvclive")
        assert sorted(log.series) == KEYS  # "val" and "test" stay what they are
        assert log.series["train/loss"].values.tolist() == [1 / (n + 1) for n in range(30)]
        assert log.series["train/loss"].steps.tolist() == list(range(30))
        expected = [ODD[n % 4] for n in range(30)]
        np.testing.assert_array_equal(log.series["odd"].values, expected)
        assert log.series["val/return"].steps.tolist() == [0, 10, 20]
        times = log.series["ep_rew_mean"].times
        assert (np.diff(times) >= 0).all()
        assert 1.7e9 < times[0] < 1e10
        assert np.isnan(log.series["odd"].times).all()
        (note,) = log.notes
        assert note.endswith("said.tsv: 3 values refused: line 2 is the text 'hello'")


@pytest.mark.parametrize(
    ("inside", "name"),
    [("", "first"), ("dvclive", "first/dvclive"), ("dvclive/plots", "plots")],
)
def test_any_of_its_folders_will_do(written, inside, name):
    (run,) = sources.find(written / "first" / inside)
    assert run.name == name
    assert sorted(sources.read(run)[0].series) == KEYS


def test_one_table_keeps_its_metric_s_name(written):
    path = written / "first" / "dvclive" / "plots" / "metrics" / "train" / "loss.tsv"
    assert reader_of(path) is READER
    (run,) = sources.find(path)
    assert list(sources.read(run)[0].series) == ["train/loss"]


def test_packed_tables(written, tmp_path):
    for source in (written / "own").rglob("*.tsv"):
        packed = tmp_path / "own" / source.relative_to(written / "own")
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.with_name(f"{packed.name}.gz").write_bytes(gzip.compress(source.read_bytes()))
    (run,) = sources.find(tmp_path)
    (whole,) = sources.find(written / "own")
    found, expected = (log_checks.points(sources.read(one)[0]) for one in (run, whole))
    log_checks.assert_equal(found, expected)


def test_prefixes_growth_and_damage(path, written):
    for name in ("train/loss", "ep_rew_mean", "odd"):
        source = written / "first" / "dvclive" / "plots" / "metrics" / f"{name}.tsv"
        path = path.with_name(source.name)
        data = source.read_bytes()
        assert log_checks.check_truncations(READER, path, data) == 1
        log_checks.check_cursor(READER, path, data, rounds=20)
        log_checks.check_damage(READER, path, data, rounds=100)


def test_a_replaced_table_is_read_from_its_start(path):
    path.write_text("step\tloss\n0\t1.5\n1\t2.5\n")
    _, cursor = READER.read(path, None)
    path.write_text("step\tloss\n0\t3.5\n1\t4.5\n2\t5.5\n")
    log, _ = READER.read(path, cursor)
    assert log.notes == (REPLACED_NOTE,)
    assert log.series["train/loss"].values.tolist() == [3.5, 4.5, 5.5]


def test_rows_that_are_no_points_are_refused(path):
    path.write_text("step\tloss\n0\t1.5\nx\t1\n1.5\t1\n3\n4\t\n5\t6\n")
    log, _ = READER.read(path, None)
    assert log.series["train/loss"].steps.tolist() == [0, 5]
    assert log.notes == ("3 rows refused: line 3 has no step: 'x'",)
    path.write_text("step\tother\n0\t1\n")
    with pytest.raises(UnreadableLog, match="no step and loss"):
        READER.read(path, None)
    assert claim(path) is not READER


def test_a_table_elsewhere_is_not_its(tmp_path):
    path = tmp_path / "loss.tsv"
    path.write_text("step\tloss\n0\t1\n")
    assert claim(path) is not READER
