"""What the index keeps of a judgement is shown by the code that made it, and by no other."""

import os
import shutil
from pathlib import Path

from served import record
from waiting import HANG_SECONDS

import rlvitals
from rlvitals import settings
from rlvitals.server import judging_code
from rlvitals.server.fleet import Fleet


def test_a_line_and_its_traits_are_kept_until_the_code_changes(tmp_path, monkeypatch):
    root = tmp_path / "runs"
    record(root / "one", collapse=40)
    fleet = Fleet([root], settings.load(tmp_path))
    fleet._look()
    fleet._judge("one")
    line, traits = fleet.rows["one"], fleet._traits["one"]
    assert line.verdict != "pending"
    assert traits
    fleet.folders[0].close()
    assert shown_at_start(root, tmp_path) == (line.verdict, traits)
    monkeypatch.setattr(judging_code, "version", lambda: "others")
    assert shown_at_start(root, tmp_path) == ("pending", None)


def test_a_changed_file_is_other_code(tmp_path):
    """A copy of the rules stands for a checkout, in which one file is changed."""
    shutil.copytree(Path(rlvitals.__file__).parent / "rules", tmp_path / "rules")
    first = judging_code.version(tmp_path)
    judging_code.version.cache_clear()
    assert judging_code.version(tmp_path) == first
    rule = next((tmp_path / "rules").rglob("kl_spike.py"))
    os.utime(rule, ns=(1, 1))
    judging_code.version.cache_clear()
    assert judging_code.version(tmp_path) == first
    rule.write_text(rule.read_text() + "\n")
    judging_code.version.cache_clear()
    assert judging_code.version(tmp_path) != first


def shown_at_start(root, folder):
    """Return the verdict and the traits that a server shows before it has judged anything."""
    fleet = Fleet([root], settings.load(folder))
    fleet._thread.run = lambda: None  # nothing is looked at or judged
    fleet.start()
    fleet._thread.join(HANG_SECONDS)
    shown = fleet.rows["one"].verdict, fleet._traits.get("one")
    fleet.stop()
    return shown
