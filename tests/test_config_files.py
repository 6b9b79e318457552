"""A settings file that came with a run judges it and does nothing else."""

import logging
import os
from pathlib import Path

import pytest

from rlvitals import cli
from rlvitals.errors import UsageError
from rlvitals.settings import SECTIONS, Settings, load, options
from rlvitals.storage import toml_files

HOSTILE = """
[diagnose]
fail_on = "note"
jobs = 100000
baseline = "{baseline}"

[recording]
mode = "off"
folder = "../../x"
sinks = ["wandb", "mlflow"]
tags = ["harmless"]
"""


@pytest.fixture(autouse=True)
def no_memory():
    toml_files._warn_once.cache_clear()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An archive with a run, a secret file outside it, and a home of the user's own."""
    run = tmp_path / "archive" / "runs" / "one"
    run.mkdir(parents=True)
    (run / "progress.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    (tmp_path / "outside.json").write_text("{}")
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(toml_files.CONFIG_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def hostile(folder, baseline="../../../outside.json"):
    (folder / "rlvitals.toml").write_text(HOSTILE.format(baseline=baseline))


def restricted(found):
    """Which restricted options a file has set."""
    default = Settings()
    return {
        f"{section}.{key}"
        for section in ("diagnose", "recording")
        for key in ("jobs", "baseline", "mode", "folder", "sinks")
        if hasattr(getattr(found, section), key)
        and getattr(getattr(found, section), key) != getattr(getattr(default, section), key)
    }


@pytest.mark.parametrize("lies", ["archive/runs/one", "archive/runs", "archive"])
@pytest.mark.parametrize("cwd", ["elsewhere", "archive", "archive/runs", "archive/runs/one"])
def test_what_is_looked_at_sets_nothing_that_acts(places, monkeypatch, caplog, lies, cwd):
    hostile(places / lies)
    monkeypatch.chdir(places / cwd)
    near = Path(os.path.relpath(places / "archive/runs/one"))
    with caplog.at_level(logging.WARNING):
        found = load(near, {}, os.environ)
        load(near, {}, os.environ)  # told once
    assert restricted(found) == set()
    assert (found.diagnose.fail_on, found.recording.tags) == ("note", ("harmless",))
    told = [record.getMessage() for record in caplog.records]
    for key in ("diagnose.jobs", "recording.mode", "recording.folder", "recording.sinks"):
        assert sum(f"{key} in " in one for one in told) == 1, key
    assert any("diagnose.baseline" in one and "outside the folder" in one for one in told)
    assert all("--config" in one for one in told)


def test_a_file_in_the_working_folder_inside_an_archive(places, monkeypatch):
    hostile(places / "archive" / "runs" / "one")
    monkeypatch.chdir(places / "archive" / "runs" / "one")
    assert restricted(load(Path("progress.csv"), {}, os.environ)) == set()
    assert restricted(load(places / "elsewhere", {}, os.environ)) == set()  # found as cwd's file


@pytest.mark.parametrize("way", ["home", "variable"])
def test_the_user_s_own_file_sets_everything(places, monkeypatch, way):
    if way == "home":
        folder = places / "home" / "rlvitals"
        folder.mkdir()
    else:
        folder = places / "elsewhere"
        monkeypatch.setenv(toml_files.CONFIG_VARIABLE, str(folder / "rlvitals.toml"))
    hostile(folder)
    found = load(places / "archive" / "runs" / "one", {}, os.environ)
    assert len(restricted(found)) == 5
    assert found.recording.sinks == ("wandb", "mlflow")


def test_flags_and_environment_set_everything(places):
    hostile(places / "archive")
    environ = {"RLVITALS_DIAGNOSE_JOBS": "3", "RLVITALS_RECORDING_SINKS": "csv"}
    found = load(places / "archive/runs/one", {"diagnose": {"baseline": "/x"}}, environ)
    assert (found.diagnose.jobs, found.recording.sinks) == (3, ("csv",))
    assert found.diagnose.baseline == "/x"


def test_the_nearest_file_overrules_the_home_s(places):
    (places / "home" / "rlvitals").mkdir()
    (places / "home" / "rlvitals" / "rlvitals.toml").write_text(
        '[diagnose]\nfail_on = "error"\njobs = 2\n'
    )
    (places / "archive" / "rlvitals.toml").write_text('[diagnose]\nfail_on = "note"\n')
    found = load(places / "archive/runs/one", {}, os.environ).diagnose
    assert (found.fail_on, found.jobs) == ("note", 2)


def test_a_project_s_file_says_where_its_own_training_is_recorded(places, monkeypatch):
    project = places / "project"
    (project / "runs" / "a").mkdir(parents=True)
    (project / "rlvitals.toml").write_text('[recording]\nsinks = ["csv"]\n')
    monkeypatch.chdir(project)
    assert load(project / "runs" / "a", {}, {}, records=True).recording.sinks == ("csv",)
    assert load(project, {}, {}, records=True).recording.sinks == ("csv",)
    (project / "run.json").write_text("{}")
    assert load(project, {}, {}, records=True).recording.sinks == ()  # it lies in a run folder
    (project / "run.json").unlink()
    monkeypatch.chdir(places / "elsewhere")
    assert load(project / "runs" / "a", {}, {}, records=True).recording.sinks == ()


def test_a_training_inside_somebody_s_run_folder(places, monkeypatch):
    (places / "archive" / "run.json").write_text("{}")
    hostile(places / "archive")
    inner = places / "archive" / "work"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert load(inner / "runs" / "b", {}, {}, records=True).recording.sinks == ()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_file_of_another_user_sets_no_sinks(places, monkeypatch):
    (places / "rlvitals.toml").write_text('[recording]\nsinks = ["wandb"]\n')
    (places / "project").mkdir()
    monkeypatch.chdir(places / "project")
    assert load(places / "project/a", {}, {}, records=True).recording.sinks == ("wandb",)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if (places / "rlvitals.toml").stat().st_uid == 0:  # root's files are the system's
        monkeypatch.setattr(Path, "stat", _as_owner(Path.stat, 1234))
    assert load(places / "project/a", {}, {}, records=True).recording.sinks == ()


def _as_owner(stat, uid):
    class Owned:
        def __init__(self, real):
            self.real, self.st_uid = real, uid

        def __getattr__(self, name):
            return getattr(self.real, name)

    return lambda path, **options: Owned(stat(path, **options))


@pytest.mark.parametrize(
    ("baseline", "allowed"),
    [
        ("known.json", True),
        ("sub/../known.json", True),
        ("not-there.json", True),
        ("../outside.json", False),
        ("{outside}", False),
        ("link.json", False),
        ("pipe", False),
        ("/dev/zero", False),
        ("~/x", True),
        ("$HOME/x", True),
    ],
)
def test_a_baseline_stays_in_its_file_s_folder(places, baseline, allowed):
    archive = places / "archive"
    (archive / "sub").mkdir()
    (archive / "known.json").write_text("{}")
    (archive / "link.json").symlink_to(places / "outside.json")
    os.mkfifo(archive / "pipe")
    name = baseline.format(outside=places / "outside.json")
    (archive / "rlvitals.toml").write_text(f'[diagnose]\nbaseline = "{name}"\n')
    found = load(archive / "runs/one", {}, {}).diagnose.baseline
    # Neither "~" nor "$HOME" is read as anything but a name.
    assert found == (str(archive / name) if allowed else "")


def test_nothing_is_read_from_the_environment_into_a_file_s_text(places, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "q7Xsecret")
    text = '[recording]\nproject = "${HF_TOKEN} $HF_TOKEN %HF_TOKEN% {HF_TOKEN} ~"\n'
    (places / "archive" / "rlvitals.toml").write_text(text)
    found = load(places / "archive/runs/one", {}, os.environ)
    assert found.recording.project == "${HF_TOKEN} $HF_TOKEN %HF_TOKEN% {HF_TOKEN} ~"


@pytest.mark.parametrize("command", ["diagnose", "follow"])
def test_a_user_in_a_downloaded_archive(places, monkeypatch, capfd, command):
    archive = places / "archive" / "runs" / "one"
    hostile(archive)
    monkeypatch.chdir(archive)
    code = cli.main([command, ".", *(["--once"] if command == "follow" else [])])
    said = capfd.readouterr()
    assert code in {0, 1, 4}, said.err
    assert "Traceback" not in said.err
    assert sorted(path.name for path in places.rglob("*") if path.is_file()) == [
        "outside.json",
        "progress.csv",
        "rlvitals.toml",
    ]


def test_config_names_the_user_s_own_file(places, capfd):
    own = places / "elsewhere" / "own.toml"
    own.write_text('[diagnose]\nfail_on = "nonsense"\n')
    run = str(places / "archive" / "runs" / "one")
    assert cli.main(["diagnose", run, "--config", str(own)]) == cli.program.EXIT_USAGE
    assert str(own) in capfd.readouterr().err
    missing = str(places / "none.toml")
    assert cli.main(["diagnose", run, "--config", missing]) == cli.program.EXIT_USAGE
    assert "no such settings file" in capfd.readouterr().err


def test_a_path_is_told_without_what_a_terminal_obeys(places, caplog):
    odd = places / "odd\x1b]0;owned\x07"
    odd.mkdir()
    hostile(odd)
    with caplog.at_level(logging.WARNING):
        load(odd / "run", {}, {})
    assert caplog.records
    assert "\x1b" not in caplog.text
    assert "\x07" not in caplog.text


def test_a_huge_or_nested_file_is_refused_in_words(places):
    file = places / "archive" / "rlvitals.toml"
    file.write_text("#" * (toml_files.MAX_SETTINGS_BYTES + 1))
    with pytest.raises(UsageError, match="more than 1 MiB"):
        load(places / "archive/runs/one", {}, {})
    file.write_text(f"x = {'[' * 100_000}")
    with pytest.raises(UsageError):
        load(places / "archive/runs/one", {}, {})


def test_every_option_that_names_a_place_or_a_service_is_restricted():
    """A new option with a path, a sink or a number of processes must be put on a list."""
    listed = {
        (section, key)
        for names in (toml_files.RESTRICTED_OPTIONS, toml_files.CONFINED_OPTIONS)
        for section, keys in names.items()
        for key in keys
    }
    acting = {"FILE", "FOLDER", "SINK", "COMMAND", "URL"}
    found = {(name, one.key) for name in SECTIONS for one in options(name) if one.item in acting}
    assert found <= listed
    assert listed <= {(name, one.key) for name in SECTIONS for one in options(name)}
