"""Weights of the samples in each mode: which are positive, which are used, and how much.

Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning": positive
samples alone (PSR), negative ones alone (NSR), or both with the positive ones weighted by lambda
(W-REINFORCE). No group is centred or scaled here: with GRPO's normalisation the wrong answers of a
group would be pushed up for being less wrong than the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch

from rlvitals.trainers.language.config import SignalConfig

PSR, NSR, W_REINFORCE = "psr", "nsr", "w-reinforce"
# How the metrics of a mode begin.
METRIC_PREFIXES = MappingProxyType({PSR: "psr", NSR: "nsr", W_REINFORCE: "w_reinforce"})


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """What `n` samples teach. Tensors [n]; a sample without a reward is neither of the two.

    `advantages` is 0 for what is not learned from. `filtered` is the reward as the mode sees it:
    0 where a sample is left out, and below 0 for a negative one.
    """

    positive: torch.Tensor  # bool
    negative: torch.Tensor  # bool
    advantages: torch.Tensor
    filtered: torch.Tensor
    compared: torch.Tensor  # the reward that was compared with the threshold; NaN: none
    positives: int  # how many
    negatives: int
    mean: float  # of `filtered`; NaN where there is no sample

    @property
    def is_learned(self) -> torch.Tensor:
        """Which samples are learned from: bool [n]."""
        return self.advantages != 0


def weights(mode: str, lambda_psr: float) -> tuple[float, float]:
    """Return how much a positive and a negative sample count in a mode."""
    return {PSR: (1.0, 0.0), NSR: (0.0, 1.0), W_REINFORCE: (lambda_psr, 1.0)}[mode]


def signal(mode: str, compared: torch.Tensor, config: SignalConfig) -> Signal:
    """Sort samples by the reward `compared` [n] with the threshold: that much is positive."""
    up, down = weights(mode, config.lambda_psr)
    has_reward = ~torch.isnan(compared)
    positive = has_reward & (compared >= config.reward_threshold)
    negative = has_reward & ~positive
    distance = (compared - config.reward_threshold).abs()
    zero = torch.zeros_like(compared)
    filtered = torch.where(positive, up * compared, torch.where(negative, -down * distance, zero))
    return Signal(
        positive,
        negative,
        up * positive.to(compared.dtype) - down * negative.to(compared.dtype),
        filtered,
        compared,
        int(positive.sum()),
        int(negative.sum()),
        float(filtered.mean()),
    )


def total(rewards: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sum of rewards [n, functions]: [n], NaN without a reward."""
    summed = (rewards * weights).nansum(dim=1)
    return torch.where(torch.isnan(rewards).all(dim=1), torch.nan, summed)


def metrics(mode: str, signal: Signal) -> Mapping[str, float]:
    """Return a batch's metrics under the guide's names; NaN without any reward."""
    positive, negative = signal.positives, signal.negatives
    scored, nan = positive + negative, float("nan")
    values = {
        "avg_reward": signal.mean,
        "mean_reward": float(signal.compared.nanmean()) if scored else nan,
    }
    if mode != NSR:
        values["positive_samples"] = float(positive)
    if mode == PSR:
        values["positive_ratio"] = positive / scored if scored else nan
    if mode != PSR:
        values["negative_samples"] = float(negative)
    if mode == NSR:
        values["negative_ratio"] = negative / scored if scored else nan
    if mode == W_REINFORCE:
        values["pos_neg_ratio"] = positive / negative if negative else nan
    return {f"{METRIC_PREFIXES[mode]}/{name}": value for name, value in values.items()}
