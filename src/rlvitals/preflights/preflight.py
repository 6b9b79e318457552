"""`rlvitals.preflight(...)`: hand in what the first update has, and read what does not hold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from numpy.typing import ArrayLike

from rlvitals.preflights import environments, language, updates
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
    group_advantages: tuple[ArrayLike, Sequence[str], int] | None = None,
    reference: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    loss_weight: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    sampler: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
    samples: Sequence[Sequence[str]] | None = None,
    known_answers: Sequence[language.Scored] | None = None,
) -> Preflight:
    """Check what must hold at the first update, of what is handed in; nothing else is judged.

    `env`: a Gymnasium environment, closed by nobody here; `observations` [n, ...] of a rollout;
    `returns` of the first episodes, one row an environment; `ratio` of the first minibatch;
    `advantages` as estimated, `normalised_advantages` after whitening; `weights` before and after
    the update, by name. Of a language model: `group_advantages` with their prompts and the group's
    size; `reference`: log-probabilities of policy and reference, and the mask of the loss;
    `loss_weight`: the loss's derivative by each log-probability, which tokens were generated, and
    which samples have an advantage; `sampler`: single weights by name, of the trainer and of the
    sampler, after the update; `samples` of each process; `known_answers`: what the reward pays for
    a right and a wrong one. `checks` are made elsewhere: they join the report.
    """
    samples_made = (
        None if group_advantages is None else language.group_advantages(*group_advantages),
        None if reference is None else language.kl_to_reference(*reference),
        None if loss_weight is None else language.loss_covers_generated(*loss_weight),
        None if sampler is None else language.sampler_has_weights(*sampler),
        None if samples is None else language.ranks_differ(samples),
        None if known_answers is None else language.rewards_rank(known_answers),
    )
    return Preflight(
        joined(
            *checks,
            () if env is None else environments.environment(env),
            () if observations is None else environments.observations(observations),
            () if returns is None else (environments.returns_differ(returns),),
            _updates(ratio, advantages, normalised_advantages),
            () if weights is None else (updates.weights_moved(*weights),),
            (check for check in samples_made if check is not None),
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
