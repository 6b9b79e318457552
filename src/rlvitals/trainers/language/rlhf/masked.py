"""Means, variances and advantages over the tokens of responses: [b, t] with a 0/1 mask."""

import torch
from torch import Tensor


def mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over a mask's tokens; 0 where it has none."""
    return (values * mask).sum() / mask.sum().clamp(min=1)


def variance(values: Tensor, mask: Tensor) -> Tensor:
    """Return the variance over a mask's tokens, divided by n - 1; 0 for one token."""
    count = mask.sum()
    return ((values - mean(values, mask)) ** 2 * mask).sum() / (count - 1).clamp(min=1)


def whiten(values: Tensor, mask: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """Return values less their centre, over the root of their spread; 0 outside of the mask."""
    return (values - centre) * torch.rsqrt(spread + 1e-8) * mask


def kl(logprobs: Tensor, reference: Tensor, estimator: str) -> Tensor:
    """Estimate the KL to the reference at each token that the policy drew: k1, or k3 (>= 0).

    Schulman 2020, "Approximating KL divergence".
    """
    lacks = reference - logprobs
    return -lacks if estimator == "k1" else torch.expm1(lacks) - lacks


def estimate_advantages(
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float
) -> Tensor:
    """Return generalised advantage estimates [b, t] (Schulman et al. 2016, equation 16).

    A response ends with its last token: nothing is expected after it, also where it was cut off,
    since its score is added there.
    """
    advantages = torch.zeros_like(values)
    last_gae = torch.zeros_like(values[:, 0])
    beyond = torch.zeros_like(values[:, 0])  # the value of where the token leads
    for t in range(values.shape[1] - 1, -1, -1):
        delta = rewards[:, t] + gamma * beyond - values[:, t]
        last_gae = (delta + gamma * lam * last_gae) * mask[:, t]
        beyond = values[:, t] * mask[:, t]
        advantages[:, t] = last_gae
    return advantages


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy [...] of the softmax of logits [..., n], in nats."""
    logs = torch.log_softmax(logits, -1)
    # A token that cannot be drawn has a log-probability of -inf, and no part in the entropy.
    return -(logs.exp() * logs.clamp(min=torch.finfo(logs.dtype).min)).sum(-1)
