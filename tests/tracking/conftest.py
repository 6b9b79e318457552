"""Git and package lists take a moment, at each of hundreds of starts: off where no test asks."""

import pytest

from rlvitals.tracking import fastlog

FACTS = {"test_facts", "test_lifecycle", "test_presence"}
WAYS = ("compiled", "python")


@pytest.fixture(autouse=True)
def no_facts(request, monkeypatch):
    if request.module.__name__.rpartition(".")[2] not in FACTS:
        monkeypatch.setenv("RLVITALS_RECORDING_FACTS", "false")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Log by compiled code, then by the method in Python, in this process and those it starts."""
    if request.param == "compiled" and fastlog.load_shortcut() is None:
        pytest.skip(fastlog.NOT_BUILT)
    monkeypatch.setenv(fastlog.COMPILED_VARIABLE, "off" if request.param == "python" else "on")
    return request.param
