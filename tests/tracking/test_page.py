"""The page that tells how to record a run does what it says."""

import re
from pathlib import Path

from recording_checks import happened, points

import rlvitals

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "record-a-run.md"


def test_the_page_s_code_runs_in_its_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"rlvitals": rlvitals}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(code, names)  # noqa: S102 - the page's own code
    found = points("runs/maze")
    assert len(found["train/loss"]) == 2000
    assert found["rollout/return"][-1] == (999, 999 * 0.1)
    assert found["win_rate_ema"][0] == (2000, 1.0)
    assert found["observed/exact/none_share"][0][1] == 0.5
    assert [end.facts["status"] for end in happened("runs/maze", "finish")] == ["finished"] * 3
