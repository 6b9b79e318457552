"""The program, called in this process, with a cache of its own."""

import pytest

from rlvitals.cli import main


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys):
    """Run the program in this process: exit code, stdout, stderr."""

    def run(*argv):
        capsys.readouterr()  # what a client has printed
        code = main([str(a) for a in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
