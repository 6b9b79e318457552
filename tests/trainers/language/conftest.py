"""One tiny model for all trainings of a session."""

import sys
from pathlib import Path

import pytest
import trained

from rlvitals.trainers.language import models

sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a tiny model as it is before a small training."""
    base = tmp_path_factory.mktemp("tiny") / "base"
    found = trained.config("unused")
    models.load(found.model, seed=found.training.seed, base=base)
    return base


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Fetch nothing, and tell nobody."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("WANDB_MODE", "offline")
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()  # it keeps what it was told first in a process
