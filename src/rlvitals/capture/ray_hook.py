"""The hook that Ray calls with the environment of its workers: they record as their driver does."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

RAY_VARIABLE = "RAY_RUNTIME_ENV_HOOK"  # Ray: the dotted name of a function
NEXT_VARIABLE = "_RLVITALS_CAPTURE_RAY_HOOK"  # the hook that was set first


def install() -> None:
    """Set the hook for `ray.init` in this process; one that is set already is called first."""
    earlier, ours = os.environ.get(RAY_VARIABLE, ""), f"{__name__}.{add.__name__}"
    if earlier != ours:
        os.environ[RAY_VARIABLE] = ours
        if earlier:
            os.environ[NEXT_VARIABLE] = earlier


def add(runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the environment with our variables; those that the program sets stay."""
    environment = dict(runtime_env or {})
    if name := os.environ.get(NEXT_VARIABLE):
        module, _, function = name.rpartition(".")
        environment = getattr(importlib.import_module(module), function)(environment)
    variables = dict(environment.get("env_vars") or {})
    ours = {
        name: os.environ[name]
        for name in (
            "PYTHONPATH",
            "_RLVITALS_CAPTURE",
            "_RLVITALS_CAPTURE_FOLDER",
            "_RLVITALS_CAPTURE_CLAIMS",
        )
        if name in os.environ
    }
    if "PYTHONPATH" in variables and "PYTHONPATH" in ours:
        folder = ours["PYTHONPATH"].split(os.pathsep)[0]
        ours["PYTHONPATH"] = os.pathsep.join((folder, variables["PYTHONPATH"]))
    environment["env_vars"] = {**variables, **ours}
    return environment
