"""Import a custom reward function, `module:function` or `folder/file.py:function`."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any

from rlvitals import UsageError
from rlvitals.lab import nearest


def import_function(name: str) -> Callable[..., Any]:
    """Import a function, which TRL's signature is asked of. Raises UsageError where it cannot be.

    A module is looked for in the working folder too.
    """
    source, _, function = name.rpartition(":")
    if not source:
        raise UsageError("no module is named", where=name, hint="folder/file.py:function")
    module = _file(Path(source), name) if source.endswith(".py") else _module(source, name)
    reward_function = getattr(module, function, None)
    if not callable(reward_function) or not hasattr(reward_function, "__name__"):
        names = (attribute for attribute, value in vars(module).items() if callable(value))
        raise UsageError(
            f"{source} has no function {function}", where=name, hint=nearest(function, names)
        )
    if iscoroutinefunction(reward_function):
        raise UsageError(f"{function} is asynchronous", where=name, hint="def, not async def")
    return reward_function  # type: ignore[no-any-return]


def _module(source: str, name: str) -> ModuleType:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        with _explain_import_errors(source, name):
            return import_module(source)
    finally:
        sys.path.remove(folder)


def _file(path: Path, name: str) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", where=name, hint="folder/file.py:function")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - it ends in .py
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    with _explain_import_errors(str(path), name):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _explain_import_errors(source: str, name: str) -> Iterator[None]:
    """Raise UsageError with the file and line of a failed import."""
    try:
        yield
    except ModuleNotFoundError as error:
        location = f"{name} ({_line(error)})" if _line(error) else name
        raise UsageError(
            f"there is no module {error.name}", where=location, hint="folder/file.py:function"
        ) from error
    except (Exception, SystemExit) as error:  # a person's code may raise anything
        message, location = f"{type(error).__name__}: {getattr(error, 'msg', error)}", _line(error)
        raise UsageError(
            f"{source} cannot be imported: {message}", where=location or name, hint="mend that line"
        ) from error


def _line(error: BaseException) -> str:
    """Return where a person's code failed: "rewards.py, line 3"; empty where none of it ran.

    An exit is where it was called: others hook into it, as W&B does.
    """
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [
        frame
        for frame in frames
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    if isinstance(error, SystemExit):
        user_frames = [
            frame for frame in user_frames if "site-packages" not in frame.filename
        ] or user_frames
    return f"{user_frames[-1].filename}, line {user_frames[-1].lineno}" if user_frames else ""
