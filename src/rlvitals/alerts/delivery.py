"""Define a message, and the error of a message that was not delivered."""

from collections.abc import Mapping

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """A message as each channel gets it: texts without secrets, and the same as data."""

    title: str  # one line
    text: str
    data: Mapping[str, object]  # what a webhook and a command get


class DeliveryError(Exception):
    """A message was not delivered. The text names no address: an address may be a secret."""

    def __init__(self, reason: str, *, lasting: bool = True, wait: float = 0.0) -> None:
        """Set the reason; `lasting`: a retry fails too; `wait`: seconds until one may succeed."""
        super().__init__(reason)
        self.lasting, self.wait = lasting, wait
