"""`wandb.Settings`."""

from typing import Any


class Settings:
    """`wandb.Settings(...)`: kept to be read, of no effect here."""

    def __init__(self, **settings: Any) -> None:
        """Keep any settings."""
        self.__dict__.update(settings)
