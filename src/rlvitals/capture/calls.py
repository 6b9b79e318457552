"""Follow the calls of a function: first the function itself, then what records them."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

_inside = threading.local()  # `depth`: calls of followed functions that are under way
_failures: set[str] = set()


def follow(owner: Any, name: str, record: Callable[..., object]) -> None:
    """Call `record(result, *args, **kwargs)` after each call of `owner.name`.

    A call made by another followed call is that library's own and is not recorded again. Nothing
    that `record` raises reaches the program.
    """
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "rlvitals_follows"):
        return

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "depth", 0):
            return original(*args, **kwargs)
        _inside.depth = 1
        try:
            result = original(*args, **kwargs)
            try:
                record(result, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - recording never ends a training
                _report(name, error)
        finally:
            _inside.depth = 0
        return result

    call.rlvitals_follows = True  # type: ignore[attr-defined]
    setattr(owner, name, call)


def _report(name: str, error: Exception) -> None:
    """Write what failed, once for each function and kind of error."""
    text = f"{name}: {type(error).__name__}"
    if text not in _failures:
        _failures.add(text)
        with suppress(Exception):  # a closed stderr, an error without a text
            sys.stderr.write(f"rlvitals: a call is not recorded: {text}: {error}\n")
