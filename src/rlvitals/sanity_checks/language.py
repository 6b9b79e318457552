"""Checks of the first update of a language model trained on its own samples.

Pure: values in, checks out. Shapes: G groups of N samples, B samples of at most T tokens.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Outcome, Passed, run_check
from rlvitals.sanity_checks.numbers import first_index, machine_epsilon, rounding_error, to_floats
from rlvitals.startup.fast_dataclass import dataclass

MIN_COMPARED = 2  # samples, ranks: one alone can be compared with nothing
MAX_TEXT_LENGTH = 40  # characters of a text that is shown


def check_group_advantages(
    advantages: ArrayLike, groups: Sequence[str], size: int, *, variable: str = "advantages"
) -> Check:
    """Check that each group of `size` neighbours has one prompt, and advantages of mean 0.

    `advantages` [G * N] as passed to the loss; `groups` [G * N] is the prompt of each sample.
    """

    def outcome() -> Outcome:
        values = to_floats(advantages).reshape(-1)
        if size < MIN_COMPARED or not len(values) or len(values) % size:
            return CouldNotCheck(f"{len(values)} samples make no groups of {size}")
        if (wrong := ~np.isfinite(values)).any():
            return Failed(f"{variable}{first_index(wrong)}", f"{values[wrong][0]}", "not a number")
        for i in range(0, len(groups), size):
            if len(prompts := set(groups[i : i + size])) > 1:
                reason = f"samples {i} to {i + size - 1} are judged as answers to one prompt"
                return Failed(f"prompts of group {i // size}", f"{len(prompts)} of them", reason)
        if not values.any():
            return CouldNotCheck("every advantage is 0: each group's samples were paid alike")
        return _check_group_means(values.reshape(-1, size), rounding_error(advantages), variable)

    return run_check("group-advantages-centred", "advantages have mean 0 in every group", outcome)


def _check_group_means(values: NDArray[np.float64], digits: float, variable: str) -> Outcome:
    means = values.mean(axis=1)
    scale = np.abs(values).max()
    worst = int(np.argmax(np.abs(means)))
    if abs(means[worst]) <= digits * scale:
        return Passed()
    share = f"{np.mean(np.abs(means) > digits * scale):.0%} of {len(means)} groups are off 0"
    reason = f"a group's own mean was not taken away ({share})"
    return Failed(f"mean of {variable} in group {worst}", f"{means[worst]:.6g}", reason)


def check_kl_to_reference(
    logps: ArrayLike, reference: ArrayLike, mask: ArrayLike, *, variable: str = "kl"
) -> Check:
    """Check that the policy equals the reference: k3 of their log-probabilities [B, T] is 0."""

    def outcome() -> Outcome:
        in_loss = to_floats(mask) > 0
        log_ratio = (to_floats(reference) - to_floats(logps))[in_loss]
        if not log_ratio.size:
            return CouldNotCheck("no token is in the loss")
        k3 = float(np.mean(np.exp(log_ratio) - log_ratio - 1))
        # Half the digits of a log-probability are a difference of sqrt(eps): squared, eps.
        if k3 <= machine_epsilon(logps):
            return Passed()
        reason = "before any update the policy is not the reference that it is held to"
        return Failed(f"{variable} (k3, mean over tokens)", f"{k3:.6g}", reason)

    return run_check(
        "kl-to-reference-is-zero", "the KL to the reference is 0 before the first update", outcome
    )


def check_loss_mask(
    weight: ArrayLike, generated: ArrayLike, due: ArrayLike, *, variable: str = "loss weight"
) -> Check:
    """Check that the loss weighs what the policy generated, and nothing else.

    `weight` [B, T]: the loss's derivative by each token's log-probability. `generated` [B, T]:
    whether the policy drew that token. `due` [B]: whether each drawn token of a sample must have
    a weight: False if the sample's advantage is 0.
    """

    def outcome() -> Outcome:
        trained, drawn = to_floats(weight) != 0, to_floats(generated) > 0
        if trained.shape != drawn.shape:
            reason = f"the loss has {trained.shape} log-probabilities for {drawn.shape} tokens"
            return Failed(variable, str(trained.shape), reason)
        if (wrong := trained & ~drawn).any():
            value = to_floats(weight)[wrong][0]
            reason = f"a token that the policy did not write is trained ({int(wrong.sum())} are)"
            return Failed(f"{variable}{first_index(wrong)}", f"{value:.6g}", reason)
        if (omitted := drawn & ~trained & (to_floats(due) > 0)[:, None]).any():
            count = f"{int(omitted.sum())} of {int(drawn.sum())} are"
            reason = f"a token that the policy wrote is left out of the loss ({count})"
            return Failed(f"{variable}{first_index(omitted)}", "0", reason)
        if not trained.any():
            return CouldNotCheck("the loss weighs no token: every advantage is 0")
        return Passed()

    return run_check(
        "loss-covers-generated", "the loss covers the tokens that were generated alone", outcome
    )


@dataclass(frozen=True, slots=True)
class WeightChange:
    """One weight of a tensor: its index, and its values before and after the update."""

    tensor: str
    index: int  # into the flattened tensor
    before: float
    after: float
    dtype: str  # "float32"


def check_weight_changes(weights: Sequence[WeightChange], learning_rate: float) -> Check:
    """Check that an update changed the weight with the largest gradient of each tensor.

    A type of 16 bits cannot represent a small step next to a large weight: for such types one
    changed tensor is enough, whose weight was not 0.
    """

    def outcome() -> Outcome:
        if not weights:
            return CouldNotCheck("no weight has had a gradient yet")
        for weight in weights:
            if not np.isfinite(weight.after):
                return Failed(
                    _weight_name(weight), f"{weight.after}", "not a number after the update"
                )
        unmoved = [weight for weight in weights if weight.before == weight.after]
        coarse = [weight for weight in unmoved if "16" in weight.dtype]
        rate = f"a learning rate of {learning_rate:.3g}"
        if not any(weight.before and weight.before != weight.after for weight in weights):
            reason = f"no weight of {len(weights)} tensors moved at {rate}"
            if coarse:
                reason += f": the step is lost in the rounding of {coarse[0].dtype}"
            return Failed(f"change of {_weight_name(unmoved[0])}", "0", reason)
        if exact := [weight for weight in unmoved if "16" not in weight.dtype]:
            reason = f"it has a gradient and did not move at {rate}: is it in the optimiser?"
            count = f" ({len(exact)} of {len(weights)} tensors)"
            return Failed(f"change of {_weight_name(exact[0])}", "0", reason + count)
        return Passed()

    return run_check("weights-moved", "the first update moved the weights", outcome)


def check_sampler_weights(
    trainer: Mapping[str, float], sampler: Mapping[str, float] | None, *, why_not: str = ""
) -> Check:
    """Check that the sampler uses the weights of the update.

    Both contain single weights ("lm_head.weight[12]") that the update changed. `why_not`: why the
    sampler's are unknown.
    """

    def outcome() -> Outcome:
        if sampler is None:
            return CouldNotCheck(why_not or "the sampler's weights are out of sight")
        shared = [name for name in trainer if name in sampler]
        if not shared:
            return CouldNotCheck("the sampler's weights have other names than the trainer's")
        stale = [name for name in shared if trainer[name] != sampler[name]]
        if not stale:
            return Passed()
        name = stale[0]
        reason = (
            f"after the update the trainer has {trainer[name]:.9g}: the sampler draws with other"
            f" weights ({len(stale)} of {len(shared)} compared)"
        )
        return Failed(f"the sampler's {name}", f"{sampler[name]:.9g}", reason)

    return run_check("sampler-has-weights", "the sampler draws with the updated weights", outcome)


def check_ranks(samples: Sequence[Sequence[str]]) -> Check:
    """Check that no two processes drew the same samples: `samples[rank]` are prompt and answer."""

    def outcome() -> Outcome:
        if len(samples) < MIN_COMPARED:
            return CouldNotCheck("there is one process")
        if len({text for texts in samples for text in texts}) == 1:
            return CouldNotCheck("every sample of every process is the same text")
        ranks: dict[tuple[str, ...], int] = {}
        for rank, texts in enumerate(samples):
            first_rank = ranks.setdefault(tuple(texts), rank)
            if first_rank != rank:
                reason = (
                    f"the same as process {first_rank}'s: one seed twice, or one part of the data"
                )
                return Failed(f"samples of process {rank}", _truncate(texts[0]), reason)
        return Passed()

    return run_check("ranks-differ", "the processes draw different samples", outcome)


@dataclass(frozen=True, slots=True)
class Scored:
    """Rewards of a known right and a known wrong answer, in total and by part."""

    prompt: str
    right: float
    wrong: float
    parts: Mapping[str, tuple[float, float]]  # right, wrong


def check_reward_order(scored: Sequence[Scored], *, why_not: str = "") -> Check:
    """Check that each known right answer has a higher reward than the wrong one."""

    def outcome() -> Outcome:
        if not scored:
            return CouldNotCheck(why_not or "no examples were given: examples=[...]")
        for example in scored:
            if np.isnan([example.right, example.wrong]).any():
                return Failed(
                    f"reward of {_truncate(example.prompt)!r}", "none", "nothing scores it"
                )
            if not example.right > example.wrong:
                terms = [
                    f"{name} {r:.6g}, {w:.6g}" for name, (r, w) in example.parts.items() if r <= w
                ]
                reason = (
                    f"the wrong answer gets {example.wrong:.6g} (right, wrong: {'; '.join(terms)})"
                )
                variable = f"reward of the right answer to {_truncate(example.prompt)!r}"
                return Failed(variable, f"{example.right:.6g}", reason)
        return Passed()

    return run_check("right-beats-wrong", "a right answer is paid more than a wrong one", outcome)


def check_logprobs(differences: Sequence[float]) -> Outcome:
    """Judge a sampler by the log-probabilities it reports, if its weights are not accessible.

    `differences`: mean |sampler's - trainer's| before the weights first changed and after. The
    first is the sampler's own rounding; a stale sampler differs by much more. In between it is
    unknown.
    """
    unknown = "the sampler's log-probabilities do not tell which weights it has"
    if len(differences) < MIN_COMPARED:
        return CouldNotCheck(unknown)
    before, after = differences[:MIN_COMPARED]
    # Two drawn batches differ in their mean rounding by less than a factor of two.
    if after <= max(2 * before, rounding_error(np.float32(0))):
        return Passed()
    if after > 10 * before:
        reason = f"it was {before:.3g} before the update: the sampler draws with old weights"
        return Failed("|sampler's - trainer's log-probability|", f"{after:.3g}", reason)
    return CouldNotCheck(unknown)


def _weight_name(weight: WeightChange) -> str:
    return f"{weight.tensor}[{weight.index}]"


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}..."
