"""Names of `wandb` that need a server: each refuses by its name when it is called."""

from typing import NoReturn

from rlvitals.wandb.errors import not_here


class Api:
    """`wandb.Api`: reads runs from a server."""

    def __init__(self, *_: object, **__: object) -> None:
        """Raise UsageError."""
        raise not_here("Api")


class Credentials:
    """`wandb.api`: scripts ask whether somebody is logged in."""

    api_key = "offline"  # not empty: nobody needs to log in


class Refusal:
    """A function that raises UsageError with its name."""

    def __init__(self, name: str) -> None:
        """Name it."""
        self.name = name

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise UsageError."""
        raise not_here(self.name)


api = Credentials()
agent, controller, sweep = Refusal("agent"), Refusal("controller"), Refusal("sweep")
restore, attach = Refusal("restore"), Refusal("attach")
use_artifact, use_model = Refusal("use_artifact"), Refusal("use_model")
link_model = Refusal("link_model")
