"""What the page on backing up and moving shows runs as it stands."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from moving_runs import moved, whole

from rlvitals.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up-and-move.md"
TEXT = PAGE.read_text().partition("## Back up and restore\n")[2]
(CODE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = re.findall(r"^\$ rlvitals (.*)$", TEXT, flags=re.MULTILINE)


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE, "page", "exec"), {})  # noqa: S102 - our own page
    assert "✓ Backup complete" in capsys.readouterr().err
    run = moved("runs/walk")
    assert run.items() <= moved("backups/walk").items()
    for command in COMMANDS:
        words = [word.replace("/mnt/", f"{tmp_path}/mnt/") for word in shlex.split(command)]
        if words[0] in {"restore", "unbundle"}:
            Path("runs/walk").rename(f"runs/before-{words[0]}")
        if not any("://" in word for word in words):
            assert main(words) == 0, command
    assert moved("runs/walk") == run
    assert whole("runs/walk") == [50, 100]


def test_what_other_programs_pack_is_the_same_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE, "page", "exec"), {})  # noqa: S102 - our own page
    for line in SHELL.splitlines():
        if shutil.which(line.split()[0]) is None:
            continue  # `zip` is not everywhere: Python's own is tested beside
        (tmp_path / "runs" / "elsewhere").mkdir()
        subprocess.run(line, shell=True, cwd=tmp_path / "runs", check=True, capture_output=True)  # noqa: S602 - the page's
        assert moved("runs/elsewhere/walk") == moved("runs/walk")
        shutil.rmtree(tmp_path / "runs" / "elsewhere")
