"""Coefficients of the KL penalty: fixed, or adapted to a target KL."""

from dataclasses import dataclass

MAX_KL_ERROR = 0.2  # an error counts this much at most, as in Ziegler et al. 2019, section 2.2


@dataclass(slots=True)
class Fixed:
    """A fixed coefficient."""

    value: float

    def update(self, kl: float, responses: int) -> None:
        """Leave it as it is."""


@dataclass(slots=True)
class Adaptive:
    """A coefficient that rises while a response's KL is above the target, and falls below it."""

    value: float
    target: float  # nats of a response
    horizon: int  # responses

    def update(self, kl: float, responses: int) -> None:
        """Answer to the KL that so many responses had; a KL that is no number moves nothing."""
        error = min(max(kl / self.target - 1.0, -MAX_KL_ERROR), MAX_KL_ERROR)
        if error == error:  # noqa: PLR0124 - not NaN
            self.value *= 1.0 + error * responses / self.horizon


Controller = Fixed | Adaptive
