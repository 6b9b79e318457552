"""`rlvitals.preflight(...)`: hand in what the first update has, and read what does not hold."""

from collections.abc import Iterable, Iterator, Mapping

from numpy.typing import ArrayLike

from rlvitals.preflights import environments, updates
from rlvitals.preflights.check import Check, Preflight, joined

Weights = Mapping[str, ArrayLike]


def preflight(  # noqa: PLR0913 - one argument for each fact that a loop may have
    *checks: Check | Iterable[Check],
    env: object = None,
    observations: ArrayLike | None = None,
    returns: ArrayLike | None = None,
    ratio: ArrayLike | None = None,
    advantages: ArrayLike | None = None,
    normalised_advantages: ArrayLike | None = None,
    weights: tuple[Weights, Weights] | None = None,
) -> Preflight:
    """Check what must hold at the first update, of what is handed in; nothing else is judged.

    `env`: a Gymnasium environment, closed by nobody here; `observations` [n, ...] of a rollout;
    `returns` of the first episodes, one row an environment; `ratio` of the first minibatch;
    `advantages` as estimated, `normalised_advantages` after whitening; `weights` before and after
    the update, by name. `checks` are made elsewhere: they join the report.
    """
    return Preflight(
        joined(
            *checks,
            () if env is None else environments.environment(env),
            () if observations is None else environments.observations(observations),
            () if returns is None else (environments.returns_differ(returns),),
            _updates(ratio, advantages, normalised_advantages),
            () if weights is None else (updates.weights_moved(*weights),),
        )
    )


def _updates(
    ratio: ArrayLike | None, advantages: ArrayLike | None, normalised: ArrayLike | None
) -> Iterator[Check]:
    if ratio is not None:
        yield updates.ratio_is_one(ratio)
    if advantages is not None:
        yield updates.advantages_finite(advantages)
    if normalised is not None:
        yield updates.advantages_centred(normalised)
