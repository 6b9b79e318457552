"""What the page on recording shows runs as it stands, and records."""

import re
from pathlib import Path

import pytest
from held import notes

import rlvitals

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "record-a-training.md"
OTHER_PAGE = PAGE.with_name("record-anything.md")
ELSEWHERE = {"Lightning", "accelerate", "RLlib and Ray Tune"}  # in test_how_to_language.py
BLOCKS = [
    (title, code)
    for title, code in re.findall(
        r"## (.*?)\n.*?```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL
    )
    if title not in ELSEWHERE
]


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
    assert set(re.findall(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)) >= ELSEWHERE


def test_the_page_on_other_trackers_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", OTHER_PAGE.read_text(), flags=re.DOTALL)
    exec(compile(code, OTHER_PAGE.name, "exec"), {})  # noqa: S102 - our own page
    (folder,) = (tmp_path / "runs").iterdir()
    assert list(rlvitals.read(folder)[0].series["eval/return"].steps) == [500]
