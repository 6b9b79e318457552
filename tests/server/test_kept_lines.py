"""What the index keeps of a judgement is shown by the code that made it, and by no other."""

import os
import shutil

import pytest
from served import record
from waiting import HANG_SECONDS

from rlvitals import settings
from rlvitals.server.fleet import Fleet
from rlvitals.storage import judging_code


@pytest.fixture
def copied_code(tmp_path, monkeypatch):
    """A package of which a file may be changed; what runs is not."""
    package = tmp_path / "package"
    for name in judging_code.JUDGING_FOLDERS:
        shutil.copytree(judging_code.PACKAGE / name, package / name)
    monkeypatch.setattr(judging_code, "PACKAGE", package)
    judging_code.version.cache_clear()
    yield package
    judging_code.version.cache_clear()


def test_a_line_and_its_traits_are_kept_until_the_code_changes(tmp_path, copied_code):
    root = tmp_path / "runs"
    record(root / "one", collapse=40)
    fleet = Fleet(root, settings.load(tmp_path))
    fleet._look()
    fleet._judge("one")
    line, traits = fleet.rows["one"], fleet._traits["one"]
    assert line.verdict != "pending"
    assert traits
    fleet._index.__exit__(None, None, None)
    assert shown_at_start(root, tmp_path) == (line.verdict, traits)
    rule = next((copied_code / "rules").rglob("kl_spike.py"))
    os.utime(rule, ns=(1, 1))
    judging_code.version.cache_clear()  # another process
    assert shown_at_start(root, tmp_path) == ("pending", None)


def shown_at_start(root, folder):
    """Return the verdict and the traits that a server shows before it has judged anything."""
    fleet = Fleet(root, settings.load(folder))
    fleet._thread.run = lambda: None  # nothing is looked at or judged
    fleet.start()
    fleet._thread.join(HANG_SECONDS)
    shown = fleet.rows["one"].verdict, fleet._traits.get("one")
    fleet.stop()
    return shown
