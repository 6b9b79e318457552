"""No secret reaches the disk, and nothing else is taken out."""

import json
import shlex

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from secret_shapes import (
    ALNUM,
    AROUND,
    AROUND_A_LOT,
    GROUPS,
    KEPT,
    KEPT_SETTINGS,
    SAID,
    SECRET,
    TOKENS,
)

from rlvitals.storage import redact
from rlvitals.storage.redact import REDACTED
from rlvitals.storage.redact_patterns import SECRET_KINDS


@pytest.mark.parametrize("title", TOKENS)
@pytest.mark.parametrize("around", ["{}", "x = '{}'", "--say {} --more", "see {}, it is"])
def test_a_token_is_taken_out_wherever_it_stands(title, around):
    token = TOKENS[title]
    said = redact.text(around.format(token))
    if title == "cut key":  # where a key without an end ends nobody can say
        assert token not in said
        assert said.startswith(around.format(REDACTED)[:10])
    else:
        assert said == around.format(REDACTED)


def test_tokens_of_every_kind_in_the_list_are_tried():
    every = "\n".join([*TOKENS.values(), *(line.format(SAID) for line in AROUND)])
    tried = {kind.title for kind in SECRET_KINDS if kind.pattern.search(every)}
    assert len(TOKENS) >= 25
    # These are known by their prefix alone.
    assert {kind.title for kind in SECRET_KINDS} - tried <= {
        "age key",
        "RunPod key",
        "Discord token",
        "Teams webhook",
        "Sentry token",
        "Atlassian token",
        "1Password token",
        "Alibaba key",
        "Pulumi token",
    }


@pytest.mark.parametrize("line", AROUND)
def test_what_has_no_form_is_told_by_where_it_stands(line):
    said = redact.text(line.format(SAID))
    assert SAID not in said
    assert REDACTED in said
    assert line.startswith(said.split(REDACTED)[0].replace("{", "{{")[:6])


@pytest.mark.parametrize("line", AROUND_A_LOT)
def test_prose_and_weak_names_hide_what_looks_drawn_by_lot(line):
    assert redact.text(line.format(SECRET)) == line.format(REDACTED)


@pytest.mark.parametrize("title", GROUPS)
def test_a_group_of_settings_is_clean_however_it_nests_a_secret(title):
    clean = redact.mapping(GROUPS[title])
    assert SECRET not in repr(clean)
    assert REDACTED in repr(clean)


def test_ordinary_settings_stay():
    assert redact.mapping(KEPT_SETTINGS) == KEPT_SETTINGS


def test_what_has_no_word_in_json_is_read_as_its_text():
    class Shown:
        def __str__(self):
            return f"Client(api_key='{SAID}')"

    class Broken:
        def __str__(self):
            raise RuntimeError(SAID)

    kept = redact.mapping({"a": Shown(), "b": Broken(), "c": np.array([f"token={SAID}"])})
    assert SAID not in repr(kept)
    assert kept["b"] == "<Broken>"
    assert redact.mapping({"n": np.arange(3), "x": np.float64(0.5)}) == {"n": [0, 1, 2], "x": 0.5}


@pytest.mark.parametrize("line", KEPT)
def test_what_is_no_secret_stays(line):
    assert redact.text(line) == line


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", "--api-key", SAID],
        ["train.py", f"--token={SAID}"],
        ["x", "--password", "1234"],
        ["x", f"password={SAID}"],
        ["x", f"wandb.api_key={SAID}"],
        ["x", f"hub.token={SAID}"],
        ["x", "--db-url", f"postgres://u:{SAID}@h/d"],
        ["x", "--hf_token", f"-{SAID}"],
    ],
)
def test_a_command_line_is_read_word_by_word(words):
    kept = redact.command(words)
    assert SAID not in shlex.join(kept)
    assert "1234" not in shlex.join(kept)
    assert len(kept) == len(words)
    assert kept[0] == words[0]


def test_an_ordinary_command_line_stays():
    words = ("train.py", "--seed", "3", "--max-tokens", "512", "lr=3e-4", "--name", "a b", "--flag")
    assert redact.command(words) == words


def test_settings_are_gone_through_to_the_bottom():
    given_settings = {
        "lr": 3e-4,
        "hub": {"token": SAID, "user": "me", "deep": [{"api_key": SAID}, (TOKENS["GitHub"], 5)]},
        "secrets": {"mine": SAID, "number": 12345},
        "password": 1234,
        "api_keys": [SAID, SAID],
        "url": f"https://me:{SAID}@host/x",
        "max_tokens": 512,
        "pad_token": "<pad>",
        "use_auth_token": True,
        "token": None,
        "cmd": b"--token " + SAID.encode(),
    }
    kept = redact.mapping(given_settings)
    written = json.dumps(kept)
    assert SAID not in written
    assert "12345" not in written
    assert TOKENS["GitHub"] not in written
    assert kept["hub"]["user"] == "me"
    assert kept["hub"]["deep"][1] == (REDACTED, 5)
    assert kept["url"] == f"https://me:{REDACTED}@host/x"
    same = ("lr", "max_tokens", "pad_token", "use_auth_token", "token")
    assert {k: kept[k] for k in same} == {k: given_settings[k] for k in same}
    assert given_settings["hub"]["token"] == SAID  # the caller's own is as it was


def test_settings_without_end_come_back():
    settings = {}
    settings["self"] = settings
    assert REDACTED in json.dumps(redact.mapping(settings))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet=ALNUM + " =:-\"'/@.,\n\\{}[]&?", max_size=200))
def test_twice_is_once(said):
    once = redact.text(said)
    assert redact.text(once) == once


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(AROUND), st.text(alphabet=ALNUM + "!#%^*+~.", min_size=8, max_size=40))
def test_whatever_a_password_holds(line, drawn_part):
    secret = f"q7Z{drawn_part}9wK"  # neither a number nor a word
    assert secret not in redact.text(line.format(secret))


def test_a_long_text_without_spaces_takes_no_time():
    for said in ("a" * 300_000, "key" * 100_000, "a=" * 100_000, "x/" * 100_000, "-" * 200_000):
        assert redact.text(said) == said


def test_a_home_is_nobody_s(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    redact._home_paths.cache_clear()
    said = f"{tmp_path}/me/data {tmp_path}/member/x --out={tmp_path}/me"
    assert redact.hide_home(said) == f"~/data {tmp_path}/member/x --out=~"
    redact._home_paths.cache_clear()
