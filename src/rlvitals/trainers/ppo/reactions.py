"""What training answers to a spike of the gradient's norm."""

from typing import Protocol


class SpikeReaction(Protocol):
    """Adjusts the learning rate and the minibatch after each update."""

    @property
    def lr_factor(self) -> float:
        """What the scheduled learning rate is multiplied by."""

    @property
    def minibatch_size(self) -> int:
        """The rows of a minibatch."""

    def after(self, norm: float) -> dict[str, float]:
        """Take in the norm of an update before clipping; returns what is to be logged."""
