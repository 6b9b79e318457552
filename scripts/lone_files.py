"""Load single files of a checkout: their packages, and what is not installed, are stubs."""

import importlib
import importlib.util
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class Stub(type):
    """A class that has every attribute, and stands in types, as a base and as a decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(name, (Anything,), {})

    def __or__(cls, _: object) -> Any:
        return cls

    __ror__ = __getitem__ = __or__


class Anything(metaclass=Stub):
    """An object that can be called, entered, indexed and asked for anything."""

    def __new__(cls, *args: Any, **_: Any) -> Any:
        is_decorator = cls.__init__ is object.__init__ and len(args) == 1 and callable(args[0])
        return args[0] if is_decorator else object.__new__(cls)

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else Anything()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Timer(Anything):
    """A timer that took a second."""

    duration = 1.0


class LoneFiles(MetaPathFinder, Loader):
    """Serves some modules from a checkout's commit, and stubs for all else of their packages."""

    def __init__(self, checkout: Path, framework: "Framework") -> None:
        self.checkout, self.framework = checkout, framework
        packages = {name.partition(".")[0] for name in framework.files}
        self.stubs = packages | {name for name in framework.stubs if not _is_installed(name)}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return a spec for a module of the framework, or of a package that is a stub."""
        mine = name.partition(".")[0] in self.stubs
        return ModuleSpec(name, self, is_package=True) if mine else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the file from the commit; a stub has every attribute."""
        path = self.framework.files.get(module.__name__)
        if path is None:
            module.__dict__.update(self.framework.values.get(module.__name__, {}))
            module.__getattr__ = partial(self._attribute, module)  # type: ignore[method-assign]
            return
        source = read(self.checkout, self.framework.commit, path)
        module.__package__ = module.__name__.rpartition(".")[0]
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - the point of it

    def _attribute(self, module: ModuleType, name: str) -> Any:
        """Return a module inside a stub where its names have values; else anything."""
        inner = f"{module.__name__}.{name}"
        if inner in self.framework.values:
            return importlib.import_module(inner)
        return getattr(Anything, name)


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def read(checkout: Path, commit: str, path: str) -> str:
    """Return a file of a commit."""
    command = ["git", "-C", str(checkout), "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - commands of our own


@dataclass(frozen=True)
class Framework:
    """Where a framework logs, and how its trainer calls that."""

    repository: str
    commit: str
    files: dict[str, str]  # module -> path
    drive: Callable[..., None]  # gets the modules of `files`
    key: str  # under which the reward is recorded
    stubs: tuple[str, ...] = ()  # packages that are stubs where they are not installed
    values: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # module of a stub -> names that need a value
    first: int = 0  # the first step
    also: str = ""  # another framework's checkout whose files are loaded too
