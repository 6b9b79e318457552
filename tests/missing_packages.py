"""Packages that are not installed, for a test."""

import sys

from fsspec.registry import _registry as file_systems


def hide(monkeypatch, package):
    """Make an import of a package fail, also where a test before this one has used it."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for scheme, kind in [*file_systems.items()]:
        if kind.__module__.split(".")[0] == package:
            monkeypatch.delitem(file_systems, scheme)
