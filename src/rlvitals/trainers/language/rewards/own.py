"""A person's own reward function, by the name `module:function` or `folder/file.py:function`."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any

from rlvitals import UsageError, nearest


def imported(name: str) -> Callable[..., Any]:
    """Import a function, which TRL's signature is asked of. Raises UsageError where it cannot be.

    A module is looked for in the working folder too.
    """
    source, _, function = name.rpartition(":")
    module = _file(Path(source), name) if source.endswith(".py") else _module(source, name)
    found = getattr(module, function, None)
    if not callable(found) or not hasattr(found, "__name__"):
        named = (one for one, value in vars(module).items() if callable(value))
        raise UsageError(
            f"{source} has no function {function}", where=name, hint=nearest(function, named)
        )
    if iscoroutinefunction(found):
        raise UsageError(f"{function} is asynchronous", where=name, hint="def, not async def")
    return found  # type: ignore[no-any-return]


def _module(source: str, name: str) -> ModuleType:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return import_module(source)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"there is no module {error.name}", where=name, hint="folder/file.py:function"
        ) from error
    finally:
        sys.path.remove(here)


def _file(path: Path, name: str) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", where=name, hint="folder/file.py:function")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - it ends in .py
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
