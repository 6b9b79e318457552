"""Settings that no report may show."""

import json

import pytest

from rlvitals import sources
from rlvitals.folders import secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "x") for name in ("api_key", "hubToken", "HF_TOKEN", "wandb/apiKey")),
        *((name, "x") for name in ("db/password", "client_secret", "db.password")),
        ("password", 1234),
        ("url", "https://me:word@host/"),
    ],
)
def test_secrets_are_left_out(name, value):
    assert secrets.without({"lr": 0.1, name: value}) == {"lr": 0.1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 5),
        ("tokenizer", "gpt2"),
        ("pad_token", "<pad>"),
        ("eos_token", "<|im_end|>"),
        ("token", 7),
        ("keys", "obs"),
        ("url", "https://a/b"),
        ("use_password", True),
    ],
)
def test_other_settings_are_kept(name, value):
    assert secrets.without({name: value}) == {name: value}


def test_whichever_file_of_a_run_says_them(tmp_path):
    row = {"training_iteration": 1, "timesteps_total": 10, "episode_reward_mean": 1.5}
    row["config"] = {"lr": 0.1, "hub_token": "x"}
    (tmp_path / "result.json").write_text(json.dumps(row) + "\n")
    (tmp_path / "params.json").write_text(json.dumps({"gamma": 0.9, "api_key": "x"}))
    (run,) = sources.find(tmp_path)
    said = {key for log in sources.read(run) for key in log.settings}
    assert said == {"config/lr", "gamma"}
