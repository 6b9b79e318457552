"""Git and package lists take a moment, at each of hundreds of starts: off where no test asks."""

import pytest

FACTS = {"test_facts", "test_lifecycle", "test_presence"}


@pytest.fixture(autouse=True)
def no_facts(request, monkeypatch):
    if request.module.__name__.rpartition(".")[2] not in FACTS:
        monkeypatch.setenv("RLVITALS_RECORDING_FACTS", "false")
