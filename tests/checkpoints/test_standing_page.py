"""The code of the page on where a run stands runs as it stands, and so do its questions."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rlvitals.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "see-where-a-run-stands.md"
TEXT = PAGE.read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
QUESTIONS = re.findall(r"^\$ jq (.+)$", TEXT, flags=re.MULTILINE)


def test_the_page_s_code_keeps_a_progress_file_that_can_be_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE, "page", "exec"), {})  # noqa: S102 - our own page
    said = json.loads(Path("runs/my_run/training_progress.json").read_text())
    assert (said["status"], said["step"]) == ("completed", 500)
    assert QUESTIONS
    for asked in QUESTIONS:
        keys = re.findall(r"\.?\b(status|step|eta_seconds|latest_checkpoint|chunks)\b", asked)
        assert keys
        assert "runs/my_run/training_progress.json" in asked


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE, "page", "exec"), {})  # noqa: S102 - our own page
    told = subprocess.run(
        ["sh", "-c", f"jq {QUESTIONS[0]}"], capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout)["step"] == 500


def test_every_command_of_the_page_is_one(capsys):
    for command in re.findall(r"^\$ rlvitals (\w+)", TEXT, flags=re.MULTILINE):
        assert main([command, "--help"]) == 0
    capsys.readouterr()
