"""What the page on recording shows runs as it stands, and records."""

import re
from pathlib import Path

import pytest
from held import notes

import rlvitals

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "record-a-training.md"
BLOCKS = re.findall(r"## (.*?)\n.*?```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize(("title", "code"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_what_is_shown_runs_and_records(title, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, title, "exec"), {})  # noqa: S102 - our own page
    if "preflight(" in code:
        assert capsys.readouterr().out.startswith("preflight: ready (2 passed, 0 failed)")
        return
    (folder,) = (tmp_path / "runs").iterdir()
    found = rlvitals.trace(folder)
    assert "outcome/return" in found
    assert [one for one in notes(folder) if "not recorded" in one] == []
    assert rlvitals.diagnose(folder).verdict.word != "failed"


def test_every_section_is_there():
    assert len(BLOCKS) == 5
