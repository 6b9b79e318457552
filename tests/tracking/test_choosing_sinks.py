"""`sinks=` and `[monitoring]`: what a run writes beside its own files."""

import errno
import re
import time
from pathlib import Path

import pandas as pd
import pytest
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import storage
from rlvitals.errors import UsageError
from rlvitals.options import Monitoring
from rlvitals.settings import Recording, Settings, load
from rlvitals.tracking.sinks import SINKS, append_file, selection

ROWS = {"interval": 50, "subsamples": 200_000}


def configured(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "rlvitals.toml").write_text(text)
    return folder


def record(folder, count=120, **options):
    with rlvitals.start(folder, **options) as run:
        for step in range(count):
            run.log(step, {"train/loss": 1 / (step + 1)})
    assert run._pump.notes.counts == {}
    (folder / "rlvitals.toml").unlink(missing_ok=True)
    return {path.name for path in folder.iterdir() if path.name in OTHERS}


OTHERS = ("metrics", "tensorboard")


def test_without_a_section_nothing_else_is_written(tmp_path, capsys):
    assert record(tmp_path / "run") == set()
    assert load(tmp_path).monitoring is None
    assert capsys.readouterr() == ("", "")


def test_the_section_turns_tensorboard_and_the_export_on(tmp_path, capsys):
    folder = configured(tmp_path / "run", "[monitoring]\n")
    assert record(folder) == {"metrics", "tensorboard"}
    assert len(pd.read_csv(folder / "metrics" / "train-1.csv")) == 120
    said = capsys.readouterr().err
    assert said == f"tensorboard --logdir {folder / 'tensorboard'} --port 6006\n"


def test_the_guide_s_keys(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    keys = """
    metrics_export_enabled = true
    metrics_export_format = "parquet"
    metrics_export_interval = 10
    metrics_subsamples = 40
    tensorboard_port = 0
    """
    folder = configured(tmp_path / "run", f"[monitoring]\n{keys}")
    record(folder)
    steps = pd.read_parquet(folder / "metrics" / "train-1")["step"].tolist()
    assert steps == [*range(40), *range(40, 120, 2)]
    assert capsys.readouterr().err == ""


def test_an_export_that_is_turned_off(tmp_path):
    folder = configured(tmp_path / "run", "[monitoring]\nmetrics_export_enabled = false\n")
    assert record(folder) == {"tensorboard"}


def test_the_environment_speaks_of_it_too(tmp_path, monkeypatch):
    monkeypatch.setenv("RLVITALS_MONITORING_METRICS_EXPORT_ENABLED", "false")
    monkeypatch.setenv("RLVITALS_RECORDING_SINKS", "jsonl")
    assert record(tmp_path / "run") == {"metrics", "tensorboard"}
    assert [path.name for path in (tmp_path / "run" / "metrics").iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("metrics_export_intervall = 5", "did you mean metrics_export_interval or "),
        ('metrics_export_format = "parkett"', "did you mean parquet?"),
        ("tensorbord_port = 1", "did you mean tensorboard_port?"),
        ("metrics_export_interval = -1", "metrics_export_interval = 4"),
        ("metrics_export_enabled = 3", ""),
    ],
)
def test_what_is_no_option_is_an_error(tmp_path, line, hint):
    folder = configured(tmp_path / "run", f"[monitoring]\n{line}\n")
    with pytest.raises(UsageError) as found:
        rlvitals.start(folder)
    assert found.value.hint.startswith(hint)
    assert not (folder / "run.json").exists()


def test_a_name_that_is_no_sink_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="no sink is called 'tensorbord'") as found:
        rlvitals.start(tmp_path / "run", sinks=["tensorbord"])
    assert found.value.hint == "did you mean tensorboard?"


@pytest.mark.parametrize(
    ("said", "recording", "section", "found"),
    [
        (None, (), None, {}),
        (None, ("jsonl", "native"), None, {"jsonl": {}}),
        (None, ("jsonl",), Monitoring(), {
            "jsonl": {}, "tensorboard": {"port": 6006}, "csv": ROWS}),
        ((), ("jsonl",), Monitoring(), {}),
        (["csv"], (), Monitoring(metrics_export_interval=7), {
            "csv": {"interval": 7, "subsamples": 200_000}}),
        ("console", (), None, {"console": {}}),
        ({"csv": {"interval": 9}, "console": None}, (), None, {
            "csv": {"interval": 9}, "console": {}}),
    ],
)  # fmt: skip
def test_which_sinks_a_run_has(said, recording, section, found):
    settings = Settings(recording=Recording(sinks=recording), monitoring=section)
    chosen = selection.select(said, settings)
    assert {name: dict(options) for name, options in chosen.items()} == found


def wait_for_lines(path, count):
    """A flush waits for the run's own files alone: the other sinks follow on their threads."""
    until = time.monotonic() + HANG_SECONDS
    while not (path.exists() and path.read_bytes().count(b"\n") >= count):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_sink_that_dies_in_mid_run_takes_nothing_with_it(tmp_path, monkeypatch):
    run = rlvitals.start(tmp_path, sinks=["csv", "jsonl"])
    real = append_file.AppendFile.write

    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    for step in range(300):
        if step == 100:
            run.flush()
            wait_for_lines(tmp_path / "metrics" / "train-1.csv", 101)
            monkeypatch.setattr(append_file.AppendFile, "write", broken)
        if step == 200:
            run.flush()
            monkeypatch.setattr(append_file.AppendFile, "write", real)
        run.log(step, {"train/loss": 1 / (step + 1)})
    run.finish()
    with storage.open(tmp_path) as view:
        assert view.series("train/loss").steps.tolist() == list(range(300))
    assert pd.read_csv(tmp_path / "metrics" / "train-1.csv")["step"].tolist() == list(range(300))
    notes = run._pump.notes.counts
    assert {note.split(":")[0] for note in notes} <= {"sink csv", "sink jsonl"}


def test_20_000_rows_into_every_file_at_once(tmp_path):
    names = ["tensorboard", "csv", "jsonl"]
    with rlvitals.start(tmp_path, sinks=names) as run:
        for step in range(20_000):
            run.log(step, {"train/loss": 1 / (step + 1), "train/return": step})
    assert run._pump.notes.counts == {}
    found = pd.read_csv(tmp_path / "metrics" / "train-1.csv")
    assert found["train/loss"].tolist() == [1 / (step + 1) for step in range(20_000)]
    lines = (tmp_path / "metrics" / "log.jsonl").read_text().splitlines()
    assert sum('"train/loss"' in line for line in lines) == 20_000
    (events,) = (tmp_path / "tensorboard").iterdir()
    series = rlvitals.read(events)[0].series["train/return"]
    assert series.values.tolist() == list(range(20_000))


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "send-a-run-elsewhere.md"


def test_what_the_page_shows_works(tmp_path, monkeypatch):
    text = PAGE.read_text()
    (first, second) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (toml,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(first, {})  # noqa: S102 - our own page
    assert len(pd.read_csv("runs/first/metrics/train-1.csv")) == 100
    (tmp_path / "rlvitals.toml").write_text(toml)
    settings = load(tmp_path, records=True)
    assert settings.monitoring == Monitoring()
    assert selection.select(None, settings).keys() == {"console", "tensorboard", "csv"}
    shown = {}
    exec(second, shown)  # noqa: S102 - the same
    assert selection.select(shown["sinks"], settings)["csv"] == {"interval": 1000, "subsamples": 0}
    listed = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(sink.name for sink in SINKS if sink.name != "native")
