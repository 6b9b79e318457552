"""The code of the page on checkpoints runs as it stands, twice: the second time goes on."""

import os
import re
from pathlib import Path

import pytest
from killing import together

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "save-and-resume.md"
ALONE, SHARDS, BOTH = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def ran(code):
    names = {}
    exec(compile(code, "page", "exec"), names)  # noqa: S102 - our own page
    return names


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "beside"])
def test_the_page_runs_and_goes_on(tmp_path, monkeypatch, capsys, background):
    monkeypatch.chdir(tmp_path)
    code = ALONE.replace("every=50,", "every=50, background=True,") if background else ALONE
    assert ("background=True" in code) == background
    first = ran(code)
    assert "this is a fresh start" in capsys.readouterr().err
    again = ran(code)
    said = capsys.readouterr().err
    assert again["state"]["weights"].tolist() == first["state"]["weights"].tolist()
    if background:  # so fast a program may be through before its first write is
        assert "resumed at step " in said
        return
    assert "resumed at step 100 from checkpoint-100: bit-exact" in said
    assert sorted(path.name for path in (tmp_path / "runs" / "walk").glob("checkpoint-*")) == [
        "checkpoint-100",
        "checkpoint-50",
    ]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_the_page_s_shards_are_sealed_and_loaded(tmp_path, monkeypatch, capsys):
    import torch

    monkeypatch.chdir(tmp_path)
    first = ran(SHARDS)
    again = ran(SHARDS)
    assert "resumed at step 10 from checkpoint-10" in capsys.readouterr().err
    assert torch.equal(first["model"].weight, again["model"].weight)


def run_both(say, rank, folder):
    os.chdir(folder)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
    os.environ["MASTER_PORT"] = (folder / "port").read_text()
    say(ran(BOTH)["state"]["weights"].tolist())


@pytest.mark.soak
def test_the_page_s_two_processes_go_on(tmp_path):
    import socket

    said = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            (tmp_path / "port").write_text(str(free.getsockname()[1]))
        said.append(together(run_both, tmp_path))
    assert said[0] == said[1]
    assert said[0][0] != said[0][1]
    assert {path.name for path in (tmp_path / "runs" / "both").glob("checkpoint-*")} == {
        "checkpoint-10", "checkpoint-5",
    }  # fmt: skip
