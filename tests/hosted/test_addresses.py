"""What a person pastes, and where a copy of it lies."""

from pathlib import Path

import pytest
from missing_packages import hide

import rlvitals
from rlvitals.hosted import address, fetch
from rlvitals.hosted.address import Source


@pytest.mark.parametrize(
    ("text", "kind", "location"),
    [
        ("wandb:me/maze/abc", Source.WANDB, "me/maze/abc"),
        ("wandb:me/maze", Source.WANDB, "me/maze"),
        ("https://wandb.ai/me/maze/runs/abc?nw=nwuser#x", Source.WANDB, "me/maze/abc"),
        ("https://wandb.ai/me/maze/runs/abc/workspace", Source.WANDB, "me/maze/abc"),
        ("https://wandb.ai/me/maze", Source.WANDB, "me/maze"),
        ("wandb:me/maze/groups/lr 1", Source.WANDB, "me/maze/groups/lr 1"),
        (
            "https://wandb.ai/me/maze/groups/lr%201/workspace?nw=x",
            Source.WANDB,
            "me/maze/groups/lr 1",
        ),
        (
            "http://host:5000/#/experiments/3/runs/ab",
            Source.MLFLOW,
            "http://host:5000/#/experiments/3/runs/ab",
        ),
        ("mlflow:http://host:5000", Source.MLFLOW, "http://host:5000"),
        ("mlflow:localhost:5000", Source.MLFLOW, "http://localhost:5000"),
        (
            "mlflow:http://host:5000/#/experiments/3/runs/ab",
            Source.MLFLOW,
            "http://host:5000/#/experiments/3/runs/ab",
        ),
        ("hf:me/model", Source.FILES, "hf://me/model"),
        ("https://huggingface.co/me/model/tree/main", Source.FILES, "hf://me/model"),
        ("https://huggingface.co/datasets/me/logs", Source.FILES, "hf://datasets/me/logs"),
        ("ssh://me@host:22/runs/a", Source.FILES, "sftp://me@host:22/runs/a"),
        ("s3://bucket/runs", Source.FILES, "s3://bucket/runs"),
    ],
)
def test_an_address_is_understood_though_a_path_has_swallowed_a_slash(text, kind, location):
    assert address.parse(Path(text)) == address.parse(text)
    assert address.parse(text) == address.Address(kind, location)


@pytest.mark.parametrize(
    "text", ["runs", "runs/wandb", "wandb", "wandb:", "C:/runs", "a:b", "./s3"]
)
def test_a_local_path_is_none(text):
    assert address.parse(text) is None


def test_each_address_has_a_folder_of_its_own_without_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = ("s3://a/runs/x", "s3://b/runs/x", "wandb:me/p/x", "ssh://u:geheim@host/x")
    folders = [fetch.cache_folder(address.parse(text)) for text in texts]
    assert len(set(folders)) == len(texts)
    assert {folder.name for folder in folders} == {"x"}
    assert all(folder.is_relative_to(tmp_path / "rlvitals") for folder in folders)
    assert not any("geheim" in str(folder) for folder in folders)


@pytest.mark.parametrize(
    ("path", "module", "command"),
    [
        ("wandb:me/p/x", "wandb", "pip install wandb"),
        ("mlflow:http://h", "mlflow", "pip install mlflow-skinny"),
        ("s3://bucket/x", "fsspec", 'pip install "rlvitals[remote]"'),
        ("gs://bucket/x", "gcsfs", "pip install gcsfs"),
    ],
)
def test_a_client_that_is_missing_is_named_with_its_command(
    call, monkeypatch, path, module, command
):
    hide(monkeypatch, module)
    code, out, error = call("diagnose", path)
    assert (code, out) == (3, "")
    assert command in error


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("hf:me/nothing", "  try: hf auth login"),
        ("s3://bucket/x", "  try: aws configure"),
        ("ssh://127.0.0.1:9/runs", "  try: ssh 127.0.0.1"),
    ],
)
def test_an_address_that_cannot_be_read_says_what_gives_access(call, monkeypatch, path, hint):
    """Nothing answers at the closed port that each client is sent to."""
    for name, value in (
        ("HF_ENDPOINT", "http://127.0.0.1:9"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ):
        monkeypatch.setenv(name, value)
    code, _, error = call("diagnose", path)
    assert code == 3
    assert any(line.startswith(hint) for line in error.splitlines())


def test_the_url_of_a_run_is_its_folder(call, tmp_path):
    run = rlvitals.start(tmp_path / "a run")
    run.log({"return": 1.0}, step=1)
    run.finish()
    assert "%20" in run.url
    assert address.to_path(Path(run.url)) == run.folder
    assert address.to_path("file:x") == Path("file:x")
    assert rlvitals.diagnose(run.url).trace.name == "a run"
    for words in (("status", run.url), ("export", run.url, "out.csv")):
        code, out, error = call(*words)
        assert (code, error) == (0, ""), out


@pytest.mark.parametrize(
    "text", ["http://host:5000", "comet:me/p", "trackio:p", "wandb:", "gitlab://host/x"]
)
@pytest.mark.parametrize("command", [("diagnose",), ("checkpoints",), ("watch", "--once")])
def test_an_address_of_another_kind_is_no_missing_file(call, tmp_path, command, text):
    (tmp_path / "wandb").mkdir()
    code, _, error = call(*command, text)
    assert code == 3
    assert f"no runs are read from this address here\n  at:  {text}\n" in error
    hint = "mlflow:URL for" if "http" in text else "wandb:entity/project/run, mlflow:http://host"
    assert f"try: {hint}" in error


@pytest.mark.parametrize("text", ["wandb:me/p/x", "s3://bucket/x"])
@pytest.mark.parametrize("command", ["checkpoints", "verify", "bundle"])
def test_what_needs_a_folder_names_the_verbs_that_read_addresses(call, command, text):
    code, _, error = call(command, text)
    assert code == 3
    assert "try: a folder; rlvitals diagnose and rlvitals export read addresses" in error


@pytest.mark.parametrize("verb", ["follow", "watch"])
def test_a_bucket_is_watched_and_a_tracking_server_is_not(call, monkeypatch, verb):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "try: aws configure" in call(verb, "s3://bucket/x", "--once")[2]
    code, _, error = call(verb, "wandb:me/p/x", "--once")
    assert code == 2
    assert "rlvitals triage" in error


@pytest.mark.parametrize(
    "text", ["wandb:me/p", "mlflow:http://h", "ssh://127.0.0.1:9/runs", "hf:me/p", "s3://bucket/x"]
)
def test_runs_lists_buckets_and_names_the_verb_for_others(call, monkeypatch, text):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    code, _, error = call("runs", text)
    assert code == (3 if text.startswith("s3:") else 2)
    assert "Traceback" not in error
    assert ("aws configure" if code == 3 else f"rlvitals triage {text.split(':')[0]}:") in error
