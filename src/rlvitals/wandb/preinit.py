"""`wandb.config` and `wandb.summary` before `wandb.init()`."""

from typing import Any, NoReturn

from rlvitals.errors import UsageError


class BeforeInit:
    """A name that is there for `hasattr` and `import *`, and of no use before `init()`."""

    def __init__(self, name: str) -> None:
        """Name it."""
        self.__dict__["_name"] = name

    def _refuse(self, name: object) -> NoReturn:
        raise UsageError(
            f"no run has begun: {self.__dict__['_name']} has no {name!r} yet",
            hint="call wandb.init() or rlvitals.start() first",
        )

    def __getattr__(self, name: str) -> Any:
        """Raise UsageError; AttributeError for the names that Python itself looks for."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(name)

    def __setattr__(self, name: str, value: object) -> None:
        """Raise UsageError."""
        del value
        self._refuse(name)

    def __getitem__(self, key: object) -> Any:
        """Raise UsageError."""
        self._refuse(key)

    def __setitem__(self, key: object, value: object) -> None:
        """Raise UsageError."""
        del value
        self._refuse(key)


config, summary = BeforeInit("wandb.config"), BeforeInit("wandb.summary")
