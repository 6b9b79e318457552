"""The code of the page on checkpoints runs as it stands, twice: the second time goes on."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "save-and-resume.md"
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_the_page_runs_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, again = {}, {}
    exec(compile(CODE, "page", "exec"), first)  # noqa: S102 - our own page
    assert "this is a fresh start" in capsys.readouterr().err
    exec(compile(CODE, "page", "exec"), again)  # noqa: S102 - our own page
    assert "resumed at step 100 from checkpoint-100: bit-exact" in capsys.readouterr().err
    assert again["state"]["weights"].tolist() == first["state"]["weights"].tolist()
    assert sorted(path.name for path in (tmp_path / "runs" / "walk").glob("checkpoint-*")) == [
        "checkpoint-100",
        "checkpoint-50",
    ]
