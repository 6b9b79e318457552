"""A bar for a person at a terminal, and not a byte anywhere else."""

import io
import sys

from rlvitals.views.progress import MANY, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_many_are_judged(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress(range(MANY), MANY)) == list(range(MANY))
    assert "judging" in sys.stderr.getvalue()


def test_a_few_runs_need_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress(range(MANY - 1), MANY - 1)) == list(range(MANY - 1))
    assert sys.stderr.getvalue() == ""


def test_a_file_gets_nothing(capsys):
    assert list(progress(range(MANY), MANY)) == list(range(MANY))
    assert capsys.readouterr() == ("", "")
