"""What leaving the reference costs: one price for good, or one that holds the KL at a target."""

from dataclasses import dataclass

STEP = 0.2  # an error counts this much at most, as in Ziegler et al. 2019, section 2.2


@dataclass(slots=True)
class Fixed:
    """One price."""

    value: float

    def update(self, kl: float, responses: int) -> None:
        """Leave it as it is."""


@dataclass(slots=True)
class Adaptive:
    """A price that rises while the KL of a response is above its target, and falls below it."""

    value: float
    target: float  # nats of a response
    horizon: int  # responses

    def update(self, kl: float, responses: int) -> None:
        """Answer to the KL that so many responses had; a KL that is no number moves nothing."""
        error = min(max(kl / self.target - 1.0, -STEP), STEP)
        if error == error:  # noqa: PLR0124 - not NaN
            self.value *= 1.0 + error * responses / self.horizon


Controller = Fixed | Adaptive
