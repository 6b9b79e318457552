"""A bar for a person at a terminal, and not a byte anywhere else."""

import io
import sys

from rlvitals.views.progress import MIN_PROGRESS_RUNS, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_many_are_judged(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    runs = range(MIN_PROGRESS_RUNS)
    assert list(progress(runs, len(runs))) == list(runs)
    assert "judging" in sys.stderr.getvalue()


def test_a_few_runs_need_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    runs = range(MIN_PROGRESS_RUNS - 1)
    assert list(progress(runs, len(runs))) == list(runs)
    assert sys.stderr.getvalue() == ""


def test_a_file_gets_nothing(capsys):
    runs = range(MIN_PROGRESS_RUNS)
    assert list(progress(runs, len(runs))) == list(runs)
    assert capsys.readouterr() == ("", "")
