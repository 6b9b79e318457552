"""The report's section of rollouts: what proves a finding, escaped and cut."""

import json

import pytest

from rlvitals import cli
from rlvitals.rollouts.sample import Sample, ToolCall, Turn
from rlvitals.views.report import rollout_section
from rlvitals.views.report.page import Proof

EVIL = "</pre><script>alert(1)</script>"


def test_texts_are_escaped_and_cut():
    calls = (ToolCall("look", EVIL, failed=True),)
    turns = (Turn("assistant", "x" * 900, calls), Turn("assistant", "beyond"))
    sample = Sample(prompt=EVIL + "p" * 500, turns=turns, step=7, reward=0.5, task=EVIL)
    text = str(rollout_section.rollouts([Proof("judge-outage", ((3, sample),))]).inner)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "x" * 799 + "…" in text
    assert "x" * 800 not in text
    assert "beyond" not in text
    assert "sample 3 · step 7" in text


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Rollouts without a log, of which a third fails from the middle on and is scored 0."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "run" / "trajectory"
    folder.mkdir(parents=True)
    for step in range(40):
        rows = [
            {
                "sample_index": n,
                "group_index": n // 3,
                "status": "aborted" if step >= 20 and n % 3 == 0 else "completed",
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": EVIL},
                ],
                "reward": 0.0 if step >= 20 and n % 3 == 0 else 1.0,
            }
            for n in range(12)
        ]  # fmt: skip
        (folder / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "run"


@pytest.mark.parametrize(("flags", "shown"), [((), 2), (("-v",), 8)])
def test_a_report_of_rollouts_alone_shows_what_proves_a_finding(
    run, tmp_path, capsys, flags, shown
):
    page = tmp_path / "report.html"
    assert cli.main(["report", str(run), "-o", str(page), *flags]) == 0
    section = page.read_text().partition("<h4>failures-scored</h4>")[2].partition("<h4>")[0]
    assert section.partition("</section>")[0].count('class="rollout"') == shown
    assert "ended by aborted" in section
    assert EVIL not in page.read_text()
    capsys.readouterr()
    assert cli.main(["samples", str(run), "--finding", "failures-scored", "--json"]) == 0
    samples = json.loads(capsys.readouterr().out)["samples"]
    assert {s["error"] for s in samples} == {"aborted"}
    assert min(s["step"] for s in samples) >= 20
