"""`rlvitals.preflight(...)`: check the values of the first update."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from numpy.typing import ArrayLike

from rlvitals.sanity_checks import environments, language, updates
from rlvitals.sanity_checks.check import Check, Preflight, join_checks

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
    group_advantages: tuple[ArrayLike, Sequence[str], int] | None = None,
    reference: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    loss_weight: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    sampler: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
    samples: Sequence[Sequence[str]] | None = None,
    known_answers: Sequence[language.Scored] | None = None,
) -> Preflight:
    """Check the given values of the first update; arguments that are not given are not checked.

    `returns`: returns of each environment's first episode. `weights`: arrays by name, before and
    after the update. `group_advantages` and the later arguments are for language models, as
    described at the checks in `sanity_checks.language`. `checks`: results to add to the report.
    Environments are not closed.
    """
    return Preflight(
        join_checks(
            *checks,
            () if env is None else environments.check_environment(env),
            () if observations is None else environments.check_observations(observations),
            () if returns is None else (environments.check_returns(returns),),
            _updates(ratio, advantages, normalised_advantages),
            () if weights is None else (updates.check_weights(*weights),),
            () if group_advantages is None else language.check_group_advantages(*group_advantages),
            () if reference is None else language.check_kl_to_reference(*reference),
            () if loss_weight is None else language.check_loss_mask(*loss_weight),
            () if sampler is None else language.check_sampler_weights(*sampler),
            () if samples is None else language.check_ranks(samples),
            () if known_answers is None else language.check_reward_order(known_answers),
        )
    )


def _updates(
    ratio: ArrayLike | None, advantages: ArrayLike | None, normalised: ArrayLike | None
) -> Iterator[Check]:
    if ratio is not None:
        yield updates.check_ratio(ratio)
    if advantages is not None:
        yield updates.check_advantages(advantages)
    if normalised is not None:
        yield updates.check_normalised_advantages(normalised)
