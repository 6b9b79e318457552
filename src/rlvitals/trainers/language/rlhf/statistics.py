"""Metrics of an update under the names of two generations of TRL's PPO.

Sums over tokens are sums over a response, then a mean over responses; means over tokens count no
padding. What the minibatches saw is averaged over them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlvitals.trainers.language.rlhf import masked
from rlvitals.trainers.language.rlhf.batch import Batch, Pass

Numbers = dict[str, float]

EXPLAINED_VARIANCE_KEY = "ppo/val/var_explained"

# One number under two names: as TRL from 0.12 on calls it, and as TRL before it did.
OLD_NAMES = {
    "objective/scores": "ppo/mean_scores",
    "policy/approxkl_avg": "ppo/policy/approxkl",
    "policy/clipfrac_avg": "ppo/policy/clipfrac",
    "policy/entropy_avg": "ppo/policy/entropy",
    "loss/policy_avg": "ppo/loss/policy",
    "loss/value_avg": "ppo/loss/value",
    "val/clipfrac_avg": "ppo/val/clipfrac",
    "lr": "ppo/learning_rate",
}


@dataclass(frozen=True, slots=True)
class Rates:
    """The coefficients that an update was made with."""

    lr: float
    kl_coef: float
    cliprange: float
    cliprange_value: float
    vf_coef: float


def numbers(batch: Batch, passes: Sequence[Pass], rates: Rates) -> Numbers:
    """Return all numbers of an update, by the names of both generations."""
    minibatches = [minibatch(batch.rows(item.rows), item, rates) for item in passes]
    metrics = objective(batch, rates) | lengths(batch) | {"lr": rates.lr}
    for name in minibatches[0] if minibatches else ():
        metrics[name] = float(torch.tensor([item[name] for item in minibatches]).mean())
    if metrics.get(EXPLAINED_VARIANCE_KEY) != metrics.get(
        EXPLAINED_VARIANCE_KEY
    ):  # returns that do not vary explain nothing
        del metrics[EXPLAINED_VARIANCE_KEY]
    return metrics | {old: metrics[new] for new, old in OLD_NAMES.items() if new in metrics}


def objective(batch: Batch, rates: Rates) -> Numbers:
    """Return the objective and its parts."""
    kl, mask = (batch.kl * batch.mask).sum(1), batch.mask
    price = -rates.kl_coef * float(kl.mean())
    return scores(batch, price) | {
        "objective/kl": float(kl.mean()),
        "objective/kl_coef": rates.kl_coef,
        "objective/entropy": -float((batch.logprobs * mask).sum(1).mean()),
        "objective/non_score_reward": price,
        "ppo/mean_non_score_reward": float(masked.mean(-rates.kl_coef * batch.kl, mask)),
        "val/num_eos_tokens": float(batch.finished.sum()),
    }


def scores(batch: Batch, non_score_reward: float) -> Numbers:
    """Return what responses were worth: of those that have a score, nothing where none has."""
    raw_scores, penalised = (
        column[torch.isfinite(column)] for column in (batch.raw_scores, batch.scores)
    )
    unknown = {"rewards/total/none_share": 1.0 - len(raw_scores) / len(batch.raw_scores)}
    if not len(raw_scores):
        return unknown
    return unknown | {
        "objective/scores": float(penalised.mean()),
        "objective/rlhf_reward": float(penalised.mean()) + non_score_reward,
        "ppo/std_scores": _std(penalised),
        "env/reward_mean": float(raw_scores.mean()),
        "env/reward_std": _std(raw_scores),
    }


def lengths(batch: Batch) -> Numbers:
    """Return how long prompts and responses are, and how many responses were cut off."""
    queries, responses = batch.query_lengths.float(), batch.mask.sum(1)
    return {
        "tokens/queries_len_mean": float(queries.mean()),
        "tokens/queries_len_std": _std(queries),
        "tokens/responses_len_mean": float(responses.mean()),
        "tokens/responses_len_std": _std(responses),
        "tokens/truncated_share": 1.0 - float(batch.finished.float().mean()),
    }


def minibatch(batch: Batch, output: Pass, rates: Rates) -> Numbers:
    """Return what one minibatch saw, before the policy was changed by it."""
    mask = batch.learned_mask
    log_ratio = (output.logprobs - batch.logprobs) * mask
    ratio = log_ratio.exp()
    plain, clipped = policy_losses(ratio, batch.advantages, rates.cliprange)
    free, near = value_losses(output.values, batch, rates.cliprange_value)
    policy = masked.mean(torch.max(plain, clipped), mask)
    value = 0.5 * masked.mean(torch.max(free, near), mask)
    error = masked.mean((output.values - batch.returns) ** 2, mask)
    spread = masked.variance(batch.returns, mask)
    values = {
        "policy/approxkl_avg": 0.5 * masked.mean(log_ratio**2, mask),
        "ppo/policy/policykl": -masked.mean(log_ratio, mask),
        "policy/clipfrac_avg": masked.mean((clipped > plain).float(), mask),
        "policy/entropy_avg": masked.mean(output.entropy, mask),
        "val/ratio": masked.mean(ratio, mask),
        "val/ratio_var": masked.variance(ratio, mask),
        "ppo/policy/advantages_mean": masked.mean(batch.advantages, mask),
        "loss/policy_avg": policy,
        "loss/value_avg": value,
        "ppo/loss/total": policy + rates.vf_coef * value,
        "val/clipfrac_avg": masked.mean((near > free).float(), mask),
        "ppo/val/vpred": masked.mean(output.values, mask),
        "ppo/val/error": error,
        "ppo/val/mean": masked.mean(batch.values, mask),
        "ppo/val/var": masked.variance(batch.values, mask),
        "ppo/returns/mean": masked.mean(batch.returns, mask),
        "ppo/returns/var": spread,
        # By the squared error, not the residual's variance: it may lie far below 0.
        EXPLAINED_VARIANCE_KEY: torch.where(spread > 0, 1.0 - error / spread, torch.nan),
    }
    return {name: float(value) for name, value in values.items()}


def policy_losses(ratio: Tensor, advantages: Tensor, cliprange: float) -> tuple[Tensor, Tensor]:
    """Return the loss of each token, and that of the clipped ratio."""
    return -advantages * ratio, -advantages * ratio.clamp(1.0 - cliprange, 1.0 + cliprange)


def value_losses(values: Tensor, batch: Batch, reach: float) -> tuple[Tensor, Tensor]:
    """Return the squared error of each value, and of the clipped value."""
    near = batch.values + (values - batch.values).clamp(-reach, reach)
    return (values - batch.returns) ** 2, (near - batch.returns) ** 2


def distributions(batch: Batch, last: Pass | None) -> Mapping[str, Tensor]:
    """Return the histograms to log: flat tensors that are not empty."""
    real = batch.mask.bool()
    histograms = {
        "env/reward_dist": batch.raw_scores[torch.isfinite(batch.raw_scores)],
        "objective/kl_dist": (batch.kl * batch.mask).sum(1),
        "objective/logprobs": batch.logprobs[real],
        "objective/ref_logprobs": batch.reference[real],
        "ppo/policy/advantages": batch.advantages[batch.learned_mask.bool()],
        "tokens/queries_dist": batch.query_lengths,
        "tokens/responses_dist": batch.mask.sum(1),
    }
    if last is not None:
        drawn, mask = batch.rows(last.rows), batch.learned_mask[last.rows].bool()
        histograms["ppo/policy/ratio"] = (last.logprobs - drawn.logprobs).exp()[mask]
    return {name: values for name, values in histograms.items() if values.numel()}


def _std(values: Tensor) -> float:
    """Return the deviation, divided by n - 1; 0 for one value."""
    return float(values.std()) if len(values) > 1 else 0.0
