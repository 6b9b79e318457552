"""Load what each file of a package defines when it is first asked for."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def load_members_on_use(
    package: str, attribute: str, files: Sequence[str], member: str
) -> Callable[[str], tuple[Any, ...]]:
    """Return the `__getattr__` of a package whose `attribute` is the `member` of all its `files`.

    It raises AttributeError for every other name.
    """

    def load(name: str) -> tuple[Any, ...]:
        if name != attribute:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        members = tuple(getattr(import_module(f"{package}.{file}"), member) for file in files)
        setattr(sys.modules[package], attribute, members)
        return members

    return load
