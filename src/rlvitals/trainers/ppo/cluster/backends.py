"""Which code runs the replicas on: compiled loops where numba is installed, arrays elsewhere."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import rlvitals
from rlvitals.trainers.ppo.cluster import arrays
from rlvitals.trainers.ppo.cluster.replicas import Costs, Finished, Floats, Replicas

Advance = Callable[[Replicas, Costs, Floats, Floats], Finished]
INSTALL = "pip install 'rlvitals[train]'"


@cache
def chosen_backend(backend: str) -> str:
    """Return `numba` or `numpy` for what is asked, and say once where the slow one stands in.

    Raises VitalsError where numba is asked for and not installed.
    """
    if backend == "numpy" or find_spec("numba"):
        return "numpy" if backend == "numpy" else "numba"
    if backend == "numba":
        raise rlvitals.VitalsError("numba is not installed", where="backend", hint=INSTALL)
    line = "the cluster runs on numpy, at half the speed that it has with numba: %s"
    logging.getLogger("rlvitals").warning(line, INSTALL)
    return "numpy"


@cache
def advance_of(backend: str) -> Advance:
    """Return the function that runs replicas on; compiled when it is first called."""
    if backend == "numpy":
        return arrays.advance
    loops = import_module("rlvitals.trainers.ppo.cluster.loops")
    advance: Advance = loops.advance
    return advance
