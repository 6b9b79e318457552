"""How many cases a random or exhaustive test tries: few in `make test`, all in `make soak`."""

import os

import pytest
from _pytest.mark import ParameterSet

FULL = os.environ.get("RLVITALS_TEST_EFFORT") == "full"


def cases(few, every):
    """Return how many of the cases to try."""
    return every if FULL else few


def sampled(parameters, step):
    """Return a test's parameters, all but each `step`-th marked as soak.

    A parameter of several arguments is to be a `pytest.param`.
    """
    return [one if i % step == 0 else _soaked(one) for i, one in enumerate(parameters)]


def _soaked(parameter):
    if not isinstance(parameter, ParameterSet):
        return pytest.param(parameter, marks=pytest.mark.soak)
    marks = [*parameter.marks, pytest.mark.soak]
    return pytest.param(*parameter.values, marks=marks, id=parameter.id)
