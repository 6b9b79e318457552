"""Sample actions cheaply: a rollout calls a small network thousands of times."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rlvitals.trainers.ppo.fused_mlp import Mlp
from rlvitals.trainers.ppo.networks import MASKED_LOGIT, Policy

Float32Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
HALF_LOG_2PI = np.float32(0.9189385332046727)


def forward(module: nn.Module, rows: Float32Array) -> Float32Array:
    """Return what `module` gives for rows [n, features].

    Plain layers are computed in numpy on the weights' own memory: a call of torch costs more than
    such a small product. Anything else goes through torch. Both agree to float32 rounding.
    """
    if isinstance(module, Mlp) and module.is_tanh:
        for layer in module:
            if isinstance(layer, nn.Linear):
                rows = rows @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
            else:
                rows = np.tanh(rows)
        return rows
    with torch.inference_mode():
        out: Float32Array = module(torch.from_numpy(rows)).numpy()
    return out


def draw(
    policy: Policy,
    rows: Float32Array,
    temperature: float,
    rng: np.random.Generator,
    masks: Bools | None = None,
) -> tuple[NDArray[Any], Float32Array]:
    """Draw an action for each row [n, features] and return it with its log-probability [n].

    Discrete actions that are False in `masks`, [n, actions], have probability 0.
    """
    out = forward(policy.actor, rows)
    if policy.log_std is not None:
        log_std = policy.log_std.detach().numpy() + np.float32(np.log(temperature))
        noise = rng.standard_normal(out.shape, np.float32)
        actions = out + np.exp(log_std) * noise
        return actions, -(0.5 * noise * noise + log_std + HALF_LOG_2PI).sum(1)
    log_probs = log_softmax(out, temperature, masks)
    return choose(log_probs, rng)


def log_softmax(
    logits: Float32Array, temperature: float, masks: Bools | None = None
) -> Float32Array:
    """Return log-probabilities [n, actions] of logits at a temperature; of 0 where masked."""
    scaled = logits / np.float32(temperature)
    if masks is not None:
        scaled = np.where(masks, scaled, np.float32(MASKED_LOGIT))
    scaled -= scaled.max(1, keepdims=True)
    log_probs: Float32Array = scaled - np.log(np.exp(scaled).sum(1, keepdims=True))
    return log_probs


def choose(
    log_probs: Float32Array, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Float32Array]:
    """Draw from log-probabilities [n, actions] by their cumulated shares."""
    shares = np.cumsum(np.exp(log_probs), 1)
    dice = rng.random((len(shares), 1)) * shares[:, -1:]  # the shares sum to 1 but for rounding
    actions = (shares <= dice).sum(1)
    return actions, log_probs[np.arange(len(actions)), actions]


def best(policy: Policy, rows: Float32Array, masks: Bools | None = None) -> NDArray[Any]:
    """Return the likeliest action for each row, for evaluation; none that is False in `masks`."""
    out = forward(policy.actor, rows)
    if policy.log_std is not None:
        return out
    if masks is not None:
        out = np.where(masks, out, np.float32(MASKED_LOGIT))
    likeliest: NDArray[np.int64] = out.argmax(1)
    return likeliest
