"""Choose the code that advances the replicas: compiled loops with numba, else arrays."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import rlvitals
from rlvitals.trainers.ppo.cluster import arrays
from rlvitals.trainers.ppo.cluster.replicas import Costs, Finished, Floats, Replicas

Advance = Callable[[Replicas, Costs, Floats, Floats], Finished]
INSTALL_COMMAND = "pip install 'rlvitals[train]'"


@cache
def resolve_backend(backend: str) -> str:
    """Return `numba` or `numpy`; warn once if numpy replaces a missing numba.

    Raises VitalsError where numba is asked for and not installed.
    """
    if backend == "numpy" or find_spec("numba"):
        return "numpy" if backend == "numpy" else "numba"
    if backend == "numba":
        raise rlvitals.VitalsError("numba is not installed", where="backend", hint=INSTALL_COMMAND)
    line = "the cluster runs on numpy, at half the speed that it has with numba: %s"
    logging.getLogger("rlvitals").warning(line, INSTALL_COMMAND)
    return "numpy"


@cache
def advance_of(backend: str) -> Advance:
    """Return the function that runs replicas on; compiled when it is first called."""
    if backend == "numpy":
        return arrays.advance
    loops = import_module("rlvitals.trainers.ppo.cluster.loops")
    advance: Advance = loops.advance
    return advance
