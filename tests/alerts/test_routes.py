"""Where alerts go: the user's own file or flags, and no file near a run."""

import logging
from datetime import datetime

import pytest

from rlvitals.alerts import routes
from rlvitals.cli import main
from rlvitals.errors import UsageError

FILE = """
[[alert]]
channel = "slack"
url = "$HOOK"
when = ["error", "kl-spike", "outcome/return < 100 after 1M"]
quiet_hours = "22:00-07:00"
digest_minutes = 2

[[alert]]
channel = "desktop"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = routes.path({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def test_the_file_is_read(file):
    slack, desktop = routes.read(file, {"HOOK": "https://hush"})
    assert slack.fields == {"url": "https://hush"}
    assert "hush" not in repr(slack)
    limit = slack.conditions[2]
    assert (limit.metric, limit.sign, limit.value, limit.after) == ("outcome/return", "<", 100, 1e6)
    assert [condition.text for condition in desktop.conditions] == ["error", "failed", "silent"]
    assert slack.digest_seconds == 120


@pytest.mark.parametrize(
    ("hour", "quiet"), [(21, False), (22, True), (3, True), (7, False), (12, False)]
)
def test_quiet_hours_span_midnight(file, hour, quiet):
    slack, desktop = routes.read(file, {"HOOK": "x"})
    moment = datetime(2030, 1, 1, hour).astimezone()
    assert slack.is_quiet(moment) is quiet
    assert not desktop.is_quiet(moment)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('channel = "slak"', "no channel is called 'slak'"),
        ('channel = "slack"', "slack needs url"),
        ('channel = "slack"\nurl = "$NOT_SET"', "the variable NOT_SET is not set"),
        ('channel = "slack"\nurl = "s3cret"\nlink = "s3cret"', "slack has no field 'link'"),
        ('channel = "desktop"\nwhen = ["eror"]', "'eror' is not a condition"),
        ('channel = "desktop"\nwhen = ["outcome/retrun < 1"]', "no metric is called"),
        ('channel = "desktop"\nquiet_hours = "late"', "quiet_hours are no two times"),
        ('channel = "desktop"\ndigest_minutes = -1', "digest_minutes is not an amount"),
        ("channel = 'x", "alerts cannot be read"),
    ],
)
def test_wrong_files_are_refused_without_their_secrets(file, text, problem):
    file.write_text(f"[[alert]]\n{text}\n")
    with pytest.raises(UsageError) as error:
        routes.read(file, {})
    assert problem in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_file_that_others_may_write_is_refused(file):
    file.chmod(0o622)
    with pytest.raises(UsageError, match="other users can write"):
        routes.read(file, {"HOOK": "x"})


def test_no_file_near_a_run_is_read(tmp_path, monkeypatch, capsys, caplog):
    """Neither `alerts.toml` nor sections of `rlvitals.toml` in the looked-at folder count."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    runs = tmp_path / "runs"
    runs.mkdir()
    bad = (
        f'[[alert]]\nchannel = "command"\ncommand = ["touch", "{tmp_path}/pwned"]\nwhen = "warning"'
    )
    (runs / "alerts.toml").write_text(bad)
    monkeypatch.chdir(runs)
    caplog.set_level(logging.WARNING)
    assert main(["alerts", "test"]) == 2
    assert main(["follow", str(runs), "--until-end", "--alerts"]) == 2
    assert "no alerts file" in capsys.readouterr().err
    (runs / "rlvitals.toml").write_text(bad)
    assert main(["follow", str(runs), "--once"]) == 2, "an unknown section, as any other"
    assert not (tmp_path / "pwned").exists()


def test_the_command_tests_a_channel(file, capsys, tmp_path):
    target = tmp_path / "got"
    file.write_text(f'[[alert]]\nchannel = "command"\ncommand = ["tee", "{target}"]\n')
    assert main(["alerts", "test"]) == 0
    assert "a test" in target.read_text()
    assert main(["alerts", "test", "webhook=http://169.254.169.254/"]) == 1
    assert "not sent: 169.254.169.254 is a link-local" in capsys.readouterr().out
    assert main(["alerts", "test", "carrier-pigeon"]) == 2


@pytest.mark.parametrize(
    "section",
    [
        {"channel": "https://hooks.example/hush"},
        {"channel": "webhook", "url": "http://x", "token": "$hush!word"},
    ],
)
def test_an_error_quotes_no_address_and_no_password(section):
    with pytest.raises(UsageError) as error:
        routes.make_route(section, "test", {})
    assert "hush" not in str(error.value)
