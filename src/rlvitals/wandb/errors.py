"""The exceptions of `wandb.errors`, and the refusal of what needs W&B's servers."""

from rlvitals.errors import UsageError, VitalsError

__all__ = [
    "AuthenticationError",
    "CommError",
    "ConfigError",
    "Error",
    "ServerResponseError",
    "UsageError",
    "not_here",
]

Error = VitalsError


class CommError(VitalsError):
    """A server that does not answer: never raised here, where nothing is sent."""


class AuthenticationError(CommError):
    """A login that is refused: never raised here."""


class ConfigError(VitalsError):
    """`wandb.sdk.lib.config_util.ConfigError`: never raised here, where a config may change."""


class ServerResponseError(CommError):
    """`wandb.sdk.mailbox.mailbox_handle.ServerResponseError`: never raised here."""


def not_here(name: str) -> UsageError:
    """Return the error of a name that works with W&B's servers only."""
    return UsageError(
        f"wandb.{name} needs a server of Weights & Biases; this module records into folders",
        where="rlvitals.wandb",
        hint="import wandb itself there; rlvitals.trace(folder) reads what was recorded",
    )
