"""What each test of the trainer leaves as it was."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks are fastest with one thread; a training sets its own number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
