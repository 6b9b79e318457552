"""From what was seen of a TRL trainer's first updates to the checks of a preflight."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rlvitals.integrations.trl_hooks import ROW, Loss, Tap, draws_samples
from rlvitals.sanity_checks import language, updates
from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Outcome, run_check

RATIO = "the probability ratio is 1 before the first gradient step"
LOGPS = "the loss has the log-probabilities of the generated tokens"
KL = "the KL to the reference is 0 before the first update"
COVERS = "the loss covers the tokens that were generated alone"
GROUPS = "advantages have mean 0 in every group"
RANKS = "the processes draw different samples"
SAMPLER = "the sampler draws with the updated weights"
RIGHT = "a right answer is paid more than a wrong one"
# Options of GRPO that leave tokens out of the loss on purpose.
THINNING = ("top_entropy_quantile", "off_policy_mask_threshold")

Facts = Sequence[tuple[str, str, Callable[[], Check]]]


def every(tap: Tap, resumed: int, moved: Check, scored: Check | None) -> list[Check]:
    """Make each check of what was seen; the same names in the same order on every process."""
    missing = _missing(tap)
    parts: Facts = (
        ("ratio-is-one", RATIO, lambda: ratio(tap)),
        ("logps-of-tokens", LOGPS, lambda: logps(tap)),
        ("group-advantages-centred", GROUPS, lambda: groups(tap)),
        ("kl-to-reference-is-zero", KL, lambda: kl(tap, resumed)),
        ("loss-covers-generated", COVERS, lambda: covers(tap)),
        ("sampler-has-weights", SAMPLER, lambda: sampler(tap)),
        ("ranks-differ", RANKS, lambda: ranks(tap)),
    )
    made = [_made(name, says, make, missing) for name, says, make in parts]
    unscored = Check("right-beats-wrong", RIGHT, CouldNotCheck(missing or "training did not begin"))
    return [*made, moved, scored or unscored]


def _missing(tap: Tap) -> str:
    """Say why nothing of the samples can be checked; "" where it can."""
    if not draws_samples(tap.trainer):
        return f"{type(tap.trainer).__name__} does not train on samples of its own"
    if tap.first is None or not tap.losses:
        problems = f": {'; '.join(tap.problems)}" if tap.problems else ""
        return f"training ended before its first update was seen{problems}"
    return ""


def _made(name: str, says: str, make: Callable[[], Check], missing: str) -> Check:
    if missing:
        return Check(name, says, CouldNotCheck(missing))
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - a preflight reports and never ends a training
        return Check(name, says, CouldNotCheck(f"{type(error).__name__}: {error}"))


def ratio(tap: Tap) -> Check:
    """Compare the loss's log-probabilities with those of the policy that drew the samples."""
    looked = [loss for loss in tap.losses if loss.logps is not None]
    if not looked:
        return Check("ratio-is-one", RATIO, CouldNotCheck("the loss computes no log-probabilities"))
    if "old_per_token_logps" in looked[0].inputs:
        pairs = [(loss, loss.inputs["old_per_token_logps"]) for loss in looked]
        off = torch.cat([_masked(one, one.logps - old, tap) for one, old in pairs])
    elif "old_logps" in looked[0].inputs:  # RLOO: of whole sequences
        off = torch.cat([_lengthwise(one, one.inputs["old_logps"]) for one in looked])
    else:
        why = "TRL does not compute it here: it takes it to be 1 (see logps-of-tokens)"
        return Check("ratio-is-one", RATIO, CouldNotCheck(why))
    return updates.check_ratio(_as_computed(off.exp(), tap), note=_dropout(tap))


def _lengthwise(loss: Loss, old: torch.Tensor) -> torch.Tensor:
    """Return a sequence's log-ratio per token: rounding adds up over its length."""
    mask = loss.inputs["completion_mask"]
    new = (torch.as_tensor(loss.logps) * mask).sum(dim=1)
    return (new - old) / mask.sum(dim=1).clamp(min=1)


def _masked(loss: Loss, values: torch.Tensor, tap: Tap) -> torch.Tensor:
    """Return values of the tokens in the loss: of types of 16 bits, their mean by sequence.

    Their rounding is of the size of a token's log-probability; its mean is not.
    """
    mask = loss.inputs["completion_mask"][:, : values.shape[1]]
    if _dtype(tap).itemsize == 2:  # noqa: PLR2004 - bytes
        return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return values[mask > 0]


def _dtype(tap: Tap) -> torch.dtype:
    """Return the type that the policy computes in."""
    args = tap.trainer.args
    if args.bf16:
        return torch.bfloat16
    found: torch.dtype = next(tap.trainer.model.parameters()).dtype
    return torch.float16 if args.fp16 else found


def _as_computed(values: torch.Tensor, tap: Tap) -> torch.Tensor:
    """Return values in the type they were computed in: it says how far rounding reaches."""
    return values.to(_dtype(tap))


def _dropout(tap: Tap) -> str:
    layers = (m for m in tap.trainer.model.modules() if isinstance(m, torch.nn.Dropout))
    on = max((layer.p for layer in layers), default=0.0)
    return f"; dropout of {on:g} is on in the loss: disable_dropout=True" if on else ""


def logps(tap: Tap) -> Check:
    """Compare the loss's log-probabilities with those of a plain forward pass of the policy."""
    loss = tap.losses[0]
    if loss.logps is None or loss.alone is None:
        why = "; ".join(tap.problems) or "a plain forward pass of this model needs more than text"
        return Check("logps-of-tokens", LOGPS, CouldNotCheck(why))
    rows, tokens = loss.alone.shape
    mask = loss.inputs["completion_mask"][:rows, :tokens] > 0
    kept = Loss({"completion_mask": mask}, None)
    off = _masked(kept, loss.logps[:rows, :tokens] - loss.alone, tap)
    found = updates.check_ratio(
        _as_computed(off.exp(), tap), variable="exp(logp in the loss - logp)", note=_dropout(tap)
    )
    return Check("logps-of-tokens", LOGPS, _reworded(found.outcome))


def _reworded(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Failed):
        return outcome
    why = outcome.why.replace(
        "the log-probabilities of the rollout and of the update are not of one policy",
        "the loss has other log-probabilities than the policy alone gives these tokens",
    )
    return Failed(outcome.variable, outcome.value, why)


def groups(tap: Tap) -> Check:
    """Check the advantages of every process's samples, as the loss gets them."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    shared = tap.first.shared
    advantages = torch.tensor([a for part in shared for a in part.advantages])
    prompts = [prompt for part in shared for prompt in part.prompts]
    return language.check_group_advantages(advantages, prompts, int(tap.trainer.num_generations))


def kl(tap: Tap, resumed: int) -> Check:
    """Check the policy against its reference, where there is one and it has not trained yet."""
    name = "kl-to-reference-is-zero"
    if not tap.trainer.beta:
        return Check(name, KL, CouldNotCheck("beta is 0: there is no reference model"))
    if resumed:
        why = f"training goes on at step {resumed}: the policy has moved before"
        return Check(name, KL, CouldNotCheck(why))
    pairs = [
        (loss, loss.inputs["ref_per_token_logps"])
        for loss in tap.losses
        if loss.logps is not None and "ref_per_token_logps" in loss.inputs
    ]
    if not pairs:
        why = f"{type(tap.trainer).__name__} does not hand the reference to its loss"
        return Check(name, KL, CouldNotCheck(why))
    off = torch.cat([_masked(loss, reference - loss.logps, tap) for loss, reference in pairs])
    zero = _as_computed(torch.zeros_like(off), tap)
    return language.check_kl_to_reference(zero, off, torch.ones_like(off))


def covers(tap: Tap) -> Check:
    """Check which tokens of the first update the loss has a derivative by."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    first = tap.first.local
    weights, drawn, due = [], [], []
    for loss in tap.losses:
        if loss.weight is None or ROW not in loss.inputs:
            why = "the loss's gradient by its log-probabilities was not seen"
            return Check("loss-covers-generated", COVERS, CouldNotCheck(why))
        rows = loss.inputs[ROW]
        if loss.weight.shape != first.drawn[rows].shape:
            return language.check_loss_mask(loss.weight, first.drawn[rows], torch.ones(len(rows)))
        weights.append(loss.weight)
        drawn.append(first.drawn[rows] & ~first.exempt[rows, None])
        due.append(_due(loss, tap))
    return language.check_loss_mask(torch.cat(weights), torch.cat(drawn), torch.cat(due))


def _due(loss: Loss, tap: Tap) -> torch.Tensor:
    """Return which samples [B] must train all of their tokens."""
    advantages = loss.inputs["advantages"]
    moves = (advantages if advantages.ndim == 1 else advantages.abs().sum(dim=1)) != 0
    old = loss.inputs.get("old_per_token_logps")
    if old is not None and loss.logps is not None:  # a clipped token has no derivative
        clipped = ((loss.logps - old).exp() - 1).abs() >= float(tap.trainer.epsilon_low)
        moves &= ~(clipped & (loss.inputs["completion_mask"] > 0)).any(dim=1)
    quantile, threshold = (getattr(tap.trainer, name, None) for name in THINNING)
    thinned = (quantile is not None and quantile < 1) or threshold is not None
    return torch.zeros_like(moves) if thinned else moves


def sampler(tap: Tap) -> Check:
    """Compare weights that the update moved: the trainer's, and those of the model that drew."""
    why = "training ended before samples were drawn with the updated weights"
    if tap.second is None:
        return language.check_sampler_weights({}, None, why_not=why)
    drew = tap.second.local.weights
    if drew is None:
        judge = language.check_logprobs
        return run_check("sampler-has-weights", SAMPLER, lambda: judge(tap.differences))
    return language.check_sampler_weights(tap.moved, drew)


def ranks(tap: Tap) -> Check:
    """Compare the samples of the processes."""
    assert tap.first is not None  # noqa: S101 - `_missing` has seen to it
    pairs = [zip(part.prompts, part.answers, strict=True) for part in tap.first.shared]
    return language.check_ranks([[prompt + answer for prompt, answer in own] for own in pairs])


def right_beats_wrong(trainer: Any, examples: Sequence[Mapping[str, Any]]) -> Check:
    """Ask the trainer's own reward functions about known answers; all processes ask together."""
    if not examples:
        return language.check_reward_order(())
    if getattr(trainer, "environment_factories", None) is not None:
        return language.check_reward_order((), why_not="the rewards need an environment's state")
    try:
        return language.check_reward_order(_scores(trainer, examples))
    except Exception as error:  # noqa: BLE001 - a reward function of the user's, on our examples
        said = f"{type(error).__name__}: {error}"
        return Check("right-beats-wrong", RIGHT, Failed("reward functions", "no reward", said))


def _scores(trainer: Any, examples: Sequence[Mapping[str, Any]]) -> list[language.Scored]:
    inputs, prompts, completions, ids = [], [], [], []
    for example in examples:
        for side in ("right", "wrong"):
            inputs.append({k: v for k, v in example.items() if k not in {"right", "wrong"}})
            prompts.append(example["prompt"])
            ids.append(trainer.processing_class(text=example[side])["input_ids"])
            said = [{"role": "assistant", "content": example[side]}]
            completions.append(example[side] if isinstance(example["prompt"], str) else said)
    rewards = trainer._calculate_rewards(inputs, prompts, completions, ids)  # noqa: SLF001 - TRL's
    for pending in ("_pending_extra_logs", "_pending_metrics"):
        getattr(trainer, pending, {}).clear()  # what the functions logged is not of a batch
    parts = rewards[: len(inputs)].cpu()  # each process has asked the same
    totals = (parts * trainer.reward_weights.cpu()).nansum(dim=1)
    totals[parts.isnan().all(dim=1)] = torch.nan
    names = trainer.reward_func_names
    return [
        language.Scored(
            str(example["prompt"]),
            totals[2 * i].item(),
            totals[2 * i + 1].item(),
            {
                name: (parts[2 * i, n].item(), parts[2 * i + 1, n].item())
                for n, name in enumerate(names)
            },
        )
        for i, example in enumerate(examples)
    ]
