"""`--mirror` of the commands that run a training: what is recorded is uploaded meanwhile."""

import os
import subprocess
import sys

import pytest

from rlvitals.bucket import run_index
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.cli import main
from rlvitals.trainers.ppo import command as ppo

TWO_RUNS = """
import wandb
for rows in (10, 20):
    wandb.init(project="control", config={"lr": 1e-3})
    for step in range(rows):
        wandb.log({"reward": float(step)})
    wandb.finish()
"""


def test_two_runs_of_a_program_are_uploaded_to_urls_of_their_own(cloud, tmp_path):
    (tmp_path / "train.py").write_text(TWO_RUNS)
    words = ["run", "--instead", "-o", "rec", "--mirror", f"{cloud}/walk", "--"]
    subprocess.run(
        [sys.executable, "-m", "rlvitals", *words, sys.executable, "train.py"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    entries = run_index.read(ObjectStore(cloud))
    assert {name: entry["step"] for name, entry in entries.items()} == {"walk": 9, "walk-2": 19}
    assert len(run_index.search(entries, "lr<1e-2", "newest", None)) == 2


def test_a_training_is_told_where_to_upload_to(monkeypatch):
    monkeypatch.setenv("RLVITALS_RECORDING_MIRROR", "")  # and as before afterwards
    urls = []
    monkeypatch.setattr(
        ppo, "train", lambda *_: urls.append(os.environ["RLVITALS_RECORDING_MIRROR"])
    )
    assert main(["train", "ppo", "--mirror", "s3://bucket/runs/walk"]) == 0
    assert urls == ["s3://bucket/runs/walk"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-o", "s3://bucket/runs/walk", "--", "true"],
        ["run", "--mirror", "bucket/runs/walk", "--", "true"],
        ["train", "ppo", "--output-dir", "s3://bucket/runs/walk"],
        ["train", "rlhf", "--mirror", "bucket/runs/walk"],
    ],
)
def test_a_url_is_no_folder_and_a_folder_no_url(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "s3://bucket/runs/" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
