"""Settings that no report may show."""

import json

import numpy as np
import pytest

from rlvitals.readers.discovery import hide_secrets, sources
from rlvitals.storage import import_log
from rlvitals.types import Ending, Log, Series, Table, Text


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
    assert hide_secrets.without({"lr": 0.1, name: value}) == {"lr": 0.1}


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
    assert hide_secrets.without({name: value}) == {name: value}


def test_whichever_file_of_a_run_says_them(tmp_path):
    row = {"training_iteration": 1, "timesteps_total": 10, "episode_reward_mean": 1.5}
    row["config"] = {"lr": 0.1, "hub_token": "x"}
    (tmp_path / "result.json").write_text(json.dumps(row) + "\n")
    (tmp_path / "params.json").write_text(json.dumps({"gamma": 0.9, "api_key": "x"}))
    (run,) = sources.find(tmp_path)
    said = {key for log in sources.read(run) for key in log.settings}
    assert said == {"config/lr", "gamma"}


def test_an_imported_run_holds_none(tmp_path):
    secret = "q7Xb01234Kd9wTzR4"  # noqa: S105 - drawn for this test
    now = np.array([1], np.int64)
    log = Log(
        "odd",
        {"loss": Series(now, now.astype(float), np.ones(1))},
        settings={"lr": 0.1, "hub_token/from": secret},
        notes=(f"token={secret}",),
        texts={"prompt": [Text(1, 0.0, f"password: {secret} canary")]},
        tables={"t": Table(now, {f"api_key={secret}": [f"Authorization: Bearer {secret}"]})},
        ending=Ending(None, f"ValueError: https://me:{secret}@host", reason=f"pw={secret}"),
    )
    assert secret not in repr(hide_secrets.clean(log).ending)
    assert hide_secrets.clean(log).settings == {"lr": 0.1}
    import_log.write([log], tmp_path / "run", "name")
    data = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"canary" in data
    assert secret.encode() not in data
