"""The checks of a TRL trainer's first updates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rlvitals.integrations.trl_hooks import ROW_KEY, Loss, Tap, draws_samples
from rlvitals.sanity_checks import language, updates
from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, run_check

RATIO_TITLE = "the probability ratio is 1 before the first gradient step"
LOGPS_TITLE = "the loss has the log-probabilities of the generated tokens"
KL_TITLE = "the KL to the reference is 0 before the first update"
COVERS_TITLE = "the loss covers the tokens that were generated alone"
SAMPLER_TITLE = "the sampler draws with the updated weights"
RIGHT_TITLE = "a right answer is paid more than a wrong one"

Facts = Sequence[tuple[str, str, Callable[[], Check]]]


def run_checks(tap: Tap, resumed: int, moved: Check, scored: Check | None) -> list[Check]:
    """Run all checks; names and order are equal on every process."""
    if not draws_samples(tap.trainer):
        missing = f"{type(tap.trainer).__name__} does not train on samples of its own"
    elif tap.first is None or not tap.losses:
        problems = f": {'; '.join(tap.problems)}" if tap.problems else ""
        missing = f"training ended before its first update was seen{problems}"
    else:
        missing = ""
    makers: Facts = (
        ("ratio-is-one", RATIO_TITLE, lambda: ratio(tap)),
        ("logps-of-tokens", LOGPS_TITLE, lambda: logps(tap)),
        ("group-advantages-centred", "advantages have mean 0 in every group", lambda: groups(tap)),
        ("kl-to-reference-is-zero", KL_TITLE, lambda: kl(tap, resumed)),
        ("loss-covers-generated", COVERS_TITLE, lambda: covers(tap)),
        ("sampler-has-weights", SAMPLER_TITLE, lambda: sampler(tap)),
        ("ranks-differ", "the processes draw different samples", lambda: ranks(tap)),
    )
    checks = [_run_check(name, says, make, missing) for name, says, make in makers]
    not_scored = Check(
        "right-beats-wrong", RIGHT_TITLE, CouldNotCheck(missing or "training did not begin")
    )
    return [*checks, moved, scored or not_scored]


def _run_check(name: str, says: str, make: Callable[[], Check], missing: str) -> Check:
    if missing:
        return Check(name, says, CouldNotCheck(missing))
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - a preflight reports and never ends a training
        return Check(name, says, CouldNotCheck(f"{type(error).__name__}: {error}"))


def ratio(tap: Tap) -> Check:
    """Compare the loss's log-probabilities with those of the sampling policy."""
    losses = [loss for loss in tap.losses if loss.logps is not None]
    if not losses:
        return Check(
            "ratio-is-one", RATIO_TITLE, CouldNotCheck("the loss computes no log-probabilities")
        )
    if "old_per_token_logps" in losses[0].inputs:
        pairs = [(loss, loss.inputs["old_per_token_logps"]) for loss in losses]
        log_ratios = torch.cat(
            [_mask(loss, loss.logps - reference, tap) for loss, reference in pairs]
        )
    elif "old_logps" in losses[0].inputs:  # RLOO: of whole sequences
        log_ratios = torch.cat([_lengthwise(loss, loss.inputs["old_logps"]) for loss in losses])
    else:
        problem = "TRL does not compute it here: it takes it to be 1 (see logps-of-tokens)"
        return Check("ratio-is-one", RATIO_TITLE, CouldNotCheck(problem))
    return updates.check_ratio(_cast(log_ratios.exp(), tap), note=_dropout(tap))


def _lengthwise(loss: Loss, old: torch.Tensor) -> torch.Tensor:
    """Return a sequence's log-ratio per token: rounding adds up over its length."""
    mask = loss.inputs["completion_mask"]
    new = (torch.as_tensor(loss.logps) * mask).sum(dim=1)
    return (new - old) / mask.sum(dim=1).clamp(min=1)


def _mask(loss: Loss, values: torch.Tensor, tap: Tap) -> torch.Tensor:
    """Return the values of the tokens in the loss; for 16-bit types their mean by sequence.

    The rounding of 16 bits is of the size of a token's log-probability; that of the mean is not.
    """
    mask = loss.inputs["completion_mask"][:, : values.shape[1]]
    if _dtype(tap).itemsize == 2:  # bytes
        return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return values[mask > 0]


def _dtype(tap: Tap) -> torch.dtype:
    """Return the dtype of the policy's computation."""
    args = tap.trainer.args
    if args.bf16:
        return torch.bfloat16
    dtype: torch.dtype = next(tap.trainer.model.parameters()).dtype
    return torch.float16 if args.fp16 else dtype


def _cast(values: torch.Tensor, tap: Tap) -> torch.Tensor:
    """Return values in the dtype of their computation, which determines the tolerance."""
    return values.to(_dtype(tap))


def _dropout(tap: Tap) -> str:
    layers = (m for m in tap.trainer.model.modules() if isinstance(m, torch.nn.Dropout))
    largest = max((layer.p for layer in layers), default=0.0)
    return f"; dropout of {largest:g} is on in the loss: disable_dropout=True" if largest else ""


def logps(tap: Tap) -> Check:
    """Compare the loss's log-probabilities with those of a plain forward pass of the policy."""
    loss = tap.losses[0]
    if loss.logps is None or loss.plain_logps is None:
        problem = (
            "; ".join(tap.problems) or "a plain forward pass of this model needs more than text"
        )
        return Check("logps-of-tokens", LOGPS_TITLE, CouldNotCheck(problem))
    rows, tokens = loss.plain_logps.shape
    mask = loss.inputs["completion_mask"][:rows, :tokens] > 0
    masked_loss = Loss({"completion_mask": mask}, None)
    log_ratios = _mask(masked_loss, loss.logps[:rows, :tokens] - loss.plain_logps, tap)
    check = updates.check_ratio(
        _cast(log_ratios.exp(), tap), variable="exp(logp in the loss - logp)", note=_dropout(tap)
    )
    outcome = check.outcome
    if isinstance(outcome, Failed):
        text = outcome.why.replace(
            "the log-probabilities of the rollout and of the update are not of one policy",
            "the loss has other log-probabilities than the policy alone gives these tokens",
        )
        outcome = Failed(outcome.variable, outcome.value, text)
    return Check("logps-of-tokens", LOGPS_TITLE, outcome)


def groups(tap: Tap) -> Check:
    """Check the advantages of all processes, as the loss receives them."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    shared = tap.first.shared
    advantages = torch.tensor([a for samples in shared for a in samples.advantages])
    prompts = [prompt for samples in shared for prompt in samples.prompts]
    return language.check_group_advantages(advantages, prompts, int(tap.trainer.num_generations))


def kl(tap: Tap, resumed: int) -> Check:
    """Check the KL of the untrained policy to its reference, if there is one."""
    name = "kl-to-reference-is-zero"
    if not tap.trainer.beta:
        return Check(name, KL_TITLE, CouldNotCheck("beta is 0: there is no reference model"))
    if resumed:
        problem = f"training goes on at step {resumed}: the policy has moved before"
        return Check(name, KL_TITLE, CouldNotCheck(problem))
    pairs = [
        (loss, loss.inputs["ref_per_token_logps"])
        for loss in tap.losses
        if loss.logps is not None and "ref_per_token_logps" in loss.inputs
    ]
    if not pairs:
        problem = f"{type(tap.trainer).__name__} does not hand the reference to its loss"
        return Check(name, KL_TITLE, CouldNotCheck(problem))
    log_ratios = torch.cat([_mask(loss, reference - loss.logps, tap) for loss, reference in pairs])
    zero = _cast(torch.zeros_like(log_ratios), tap)
    return language.check_kl_to_reference(zero, log_ratios, torch.ones_like(log_ratios))


def covers(tap: Tap) -> Check:
    """Check which tokens of the first update have a gradient of the loss."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    first = tap.first.local
    weights, drawn, must_train = [], [], []
    for loss in tap.losses:
        if loss.weight is None or ROW_KEY not in loss.inputs:
            problem = "the loss's gradient by its log-probabilities was not seen"
            return Check("loss-covers-generated", COVERS_TITLE, CouldNotCheck(problem))
        rows = loss.inputs[ROW_KEY]
        if loss.weight.shape != first.drawn[rows].shape:
            return language.check_loss_mask(loss.weight, first.drawn[rows], torch.ones(len(rows)))
        weights.append(loss.weight)
        drawn.append(first.drawn[rows] & ~first.exempt[rows, None])
        must_train.append(_select_trained(loss, tap))
    return language.check_loss_mask(torch.cat(weights), torch.cat(drawn), torch.cat(must_train))


def _select_trained(loss: Loss, tap: Tap) -> torch.Tensor:
    """Return which samples [B] must have a gradient at every token."""
    advantages = loss.inputs["advantages"]
    is_trained = (advantages if advantages.ndim == 1 else advantages.abs().sum(dim=1)) != 0
    old = loss.inputs.get("old_per_token_logps")
    if old is not None and loss.logps is not None:  # a clipped token has no derivative
        clipped = ((loss.logps - old).exp() - 1).abs() >= float(tap.trainer.epsilon_low)
        is_trained &= ~(clipped & (loss.inputs["completion_mask"] > 0)).any(dim=1)
    # Options of GRPO that exclude tokens from the loss.
    quantile, threshold = (
        getattr(tap.trainer, name, None)
        for name in ("top_entropy_quantile", "off_policy_mask_threshold")
    )
    thinned = (quantile is not None and quantile < 1) or threshold is not None
    return torch.zeros_like(is_trained) if thinned else is_trained


def sampler(tap: Tap) -> Check:
    """Compare updated weights of the trainer with those of the sampling model."""
    problem = "training ended before samples were drawn with the updated weights"
    if tap.second is None:
        return language.check_sampler_weights({}, None, why_not=problem)
    weights = tap.second.local.weights
    if weights is None:
        judge = language.check_logprobs
        return run_check("sampler-has-weights", SAMPLER_TITLE, lambda: judge(tap.differences))
    return language.check_sampler_weights(tap.moved, weights)


def ranks(tap: Tap) -> Check:
    """Compare the samples of the processes."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    pairs = [zip(samples.prompts, samples.answers, strict=True) for samples in tap.first.shared]
    return language.check_ranks(
        [[prompt + answer for prompt, answer in answers_by_prompt] for answers_by_prompt in pairs]
    )


def right_beats_wrong(trainer: Any, examples: Sequence[Mapping[str, Any]]) -> Check:
    """Score known answers with the trainer's reward functions, on all processes together."""
    if not examples:
        return language.check_reward_order(())
    if getattr(trainer, "environment_factories", None) is not None:
        return language.check_reward_order((), why_not="the rewards need an environment's state")
    try:
        return language.check_reward_order(_scores(trainer, examples))
    except Exception as error:  # noqa: BLE001 - a reward function of the user's, on our examples
        problem = f"{type(error).__name__}: {error}"
        return Check(
            "right-beats-wrong", RIGHT_TITLE, Failed("reward functions", "no reward", problem)
        )


def _scores(trainer: Any, examples: Sequence[Mapping[str, Any]]) -> list[language.Scored]:
    inputs, prompts, completions, ids = [], [], [], []
    for example in examples:
        for side in ("right", "wrong"):
            inputs.append({k: v for k, v in example.items() if k not in {"right", "wrong"}})
            prompts.append(example["prompt"])
            ids.append(trainer.processing_class(text=example[side])["input_ids"])
            message = [{"role": "assistant", "content": example[side]}]
            completions.append(example[side] if isinstance(example["prompt"], str) else message)
    rewards = trainer._calculate_rewards(inputs, prompts, completions, ids)  # noqa: SLF001 - TRL's
    for pending in ("_pending_extra_logs", "_pending_metrics"):
        getattr(trainer, pending, {}).clear()  # what the functions logged is not of a batch
    rewards_by_function = rewards[: len(inputs)].cpu()  # each process has asked the same
    totals = (rewards_by_function * trainer.reward_weights.cpu()).nansum(dim=1)
    totals[rewards_by_function.isnan().all(dim=1)] = torch.nan
    names = trainer.reward_func_names
    return [
        language.Scored(
            str(example["prompt"]),
            totals[2 * i].item(),
            totals[2 * i + 1].item(),
            {
                name: (
                    rewards_by_function[2 * i, n].item(),
                    rewards_by_function[2 * i + 1, n].item(),
                )
                for n, name in enumerate(names)
            },
        )
        for i, example in enumerate(examples)
    ]
