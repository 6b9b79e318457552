"""How many cases a random or exhaustive test tries: few in `make test`, all in `make soak`."""

import os

FULL = os.environ.get("RLVITALS_TEST_EFFORT") == "full"


def cases(few, every):
    """Return how many of the cases to try."""
    return every if FULL else few
