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

    Shapes: G groups of N samples, B samples of at most T tokens. Arguments from `group_advantages`
    on are for language models.

    Parameters
    ----------
    *checks : Check or iterable of Check
        Results of other checks, to add to the report.
    env : gymnasium.Env, optional
        An environment for Gymnasium's `check_env`. It is not closed.
    observations : array_like, optional
        Observations [n, ...]: they must be finite and vary.
    returns : array_like, optional
        Returns of the first episodes of each environment, [n_envs, ...]: no two rows may be equal.
    ratio : array_like, optional
        pi_new(a|s) / pi_old(a|s) of the first minibatch before the first gradient step, of any
        shape, not clipped: it must be 1.
    advantages : array_like, optional
        Advantages of any shape: they must be finite, and not all equal.
    normalised_advantages : array_like, optional
        Advantages of any shape, as normalised: their mean must be 0.
    weights : tuple of two mappings, optional
        Trained arrays by name, before and after the first update: each must change.
    group_advantages : tuple, optional
        Advantages [G * N] as passed to the loss, the prompt of each sample [G * N], and N: each
        group must have one prompt, and advantages of mean 0.
    reference : tuple of three array_like, optional
        Log-probabilities of the policy and of the reference, [B, T], and the mask of the tokens in
        the loss, [B, T]: the KL divergence must be 0.
    loss_weight : tuple of three array_like, optional
        The loss's derivative by each log-probability [B, T], whether the policy generated the token
        [B, T], and whether the tokens of a sample must have a weight [B].
    sampler : tuple of two mappings, optional
        Single weights that the update changed, by name, in the trainer and in the sampler: they
        must be equal.
    samples : sequence of sequence of str, optional
        Prompts and answers of each process: no two processes may have the same.
    known_answers : sequence of Scored, optional
        Rewards of known right and wrong answers (`sanity_checks.language.Scored`): the right one
        must be higher.

    Returns
    -------
    Preflight
        The report. A check that raises an exception counts as not made.
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
