"""Command line > environment > rlvitals.toml > default, and nothing unknown passes."""

import pytest

from rlvitals import settings
from rlvitals.errors import UsageError
from rlvitals.rules.rule import Severity
from rlvitals.settings import PROFILE_CHOICES, Diagnose, load, scalar
from rlvitals.types import Profile


@pytest.fixture
def near(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run = tmp_path / "project" / "runs" / "one"
    run.mkdir(parents=True)
    return run


def toml(folder, text):
    (folder / "rlvitals.toml").write_text(text)


def test_defaults(near):
    found = load(near)
    assert found.diagnose == settings.Diagnose("warning", (), (), "")
    assert (found.metrics, found.settings) == ({}, {})


def test_each_layer_overrules_the_one_below(near):
    toml(near.parent, '[diagnose]\nfail_on = "note"\nonly = ["a"]\nprofile = "grpo"')
    environ = {"RLVITALS_DIAGNOSE_FAIL_ON": "error", "RLVITALS_DIAGNOSE_ONLY": "b, c"}
    flags = {"diagnose": {"fail_on": "never"}}
    assert load(near).diagnose.fail_on == "note"
    assert load(near, environ=environ).diagnose.fail_on == "error"
    found = load(near, flags, environ).diagnose
    assert (found.fail_on, found.only, found.profile) == ("never", ("b", "c"), "grpo")


def test_free_sections_merge_key_by_key(near):
    toml(near, '[settings]\ntarget_kl = 0.02\nclip = 0.1\n[metrics]\n"my/score" = "outcome/return"')
    environ = {"RLVITALS_SETTINGS": "clip=0.3,norm=true", "RLVITALS_METRICS": "a=value/loss"}
    found = load(near, {"settings": {"norm": False}}, environ)
    assert found.settings == {"target_kl": 0.02, "clip": 0.3, "norm": False}
    assert found.metrics == {"my/score": "outcome/return", "a": "value/loss"}


def test_the_nearest_file_is_taken_then_the_working_folders(near, tmp_path):
    toml(tmp_path / "elsewhere", '[diagnose]\nfail_on = "note"')
    assert load(near).diagnose.fail_on == "note"
    toml(tmp_path / "project", '[diagnose]\nfail_on = "error"')
    assert load(near).diagnose.fail_on == "error"
    toml(near, '[diagnose]\nfail_on = "never"')
    assert load(near).diagnose.fail_on == "never"
    assert load(near / "progress.csv").diagnose.fail_on == "never"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[diagnos]\n", "did you mean diagnose?"),
        ('[diagnose]\nfail_onn = "note"', "did you mean fail_on?"),
        ('[diagnose]\nfail_on = "wraning"', "did you mean warning?"),
        ("[diagnose]\nfail_on = 3", ""),
        ('[diagnose]\nonly = "a"', '["one", "two"]'),
        ("[metrics]\na.b = 'outcome/return'", 'quote a name with dots: "a.x"'),
        ("[metrics]\na = 3", "rlvitals metrics"),
        ("[settings]\nx = [1]", ""),
        ("[settings]\nx = nan", "a finite number"),
        ("not toml", ""),
        (
            "fail_on = 'note'",
            "one of diagnose, recording, monitoring, plot, metrics, settings, thresholds, muted",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(near, text, hint):
    toml(near, text)
    with pytest.raises(UsageError) as error:
        load(near)
    assert error.value.hint == hint
    assert "rlvitals.toml" in error.value.where


def test_a_file_that_is_not_text(near):
    (near / "rlvitals.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load(near)


def test_a_misspelt_variable_is_named(near):
    with pytest.raises(UsageError) as error:
        load(near, environ={"RLVITALS_DIAGNOSE_FAILON": "note"})
    assert error.value.hint.startswith("did you mean DIAGNOSE_FAIL_ON")


def test_other_variables_with_our_prefix_are_left_alone(near):
    assert load(near, environ={"RLVITALS_REQUIRE_BROWSER": "1"}) == load(near)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("False", False), ("5", 5), ("1e-4", 1e-4), ("-0.5", -0.5), ("ppo", "ppo")],
)
def test_scalars_have_the_type_they_look_like(text, value):
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_choices_are_those_of_the_nouns():
    assert tuple(Profile) == PROFILE_CHOICES
    levels = Diagnose.__dataclass_fields__["fail_on"].metadata["choices"]
    assert levels == (*(severity.name.lower() for severity in Severity), "never")


def test_every_option_says_what_it_does():
    for option in settings.options("diagnose"):
        assert option.doc
        assert option.flag == f"--{option.key.replace('_', '-')}"
        assert option.variable == f"RLVITALS_DIAGNOSE_{option.key.upper()}"
