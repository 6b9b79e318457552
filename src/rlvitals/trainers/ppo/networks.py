"""Policy and value networks: an MLP for any observation, and a scorer shared by replicas."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rlvitals.trainers.ppo.fused_mlp import Mlp

MASKED_LOGIT = -1e8  # a logit whose probability is exactly 0 in float32
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


def mlp(sizes: Sequence[int], gain: float, activation: str = "tanh") -> Mlp:
    """Build Linear layers of `sizes`, orthogonal with gain sqrt(2), the last with `gain`."""
    layers: list[nn.Module] = []
    for i, (width_in, width_out) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        linear = nn.Linear(width_in, width_out)
        nn.init.orthogonal_(linear.weight, gain if last else 2**0.5)
        nn.init.zeros_(linear.bias)
        layers += [linear] if last else [linear, ACTIVATIONS[activation]()]
    return Mlp(*layers)


class Actor(Protocol):
    """A function from observations [n, features] to the parameters of a distribution."""

    def __call__(self, observations: Tensor) -> Tensor:
        """Return logits [n, actions], or means [n, dimensions]."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of an observation: per-replica features first, then global ones."""

    replicas: int
    features: int  # per replica
    shared: int  # global features


class ReplicaScorer(nn.Module):
    """Score each replica by the same network: f(its features, their mean, the global features).

    Permuting the replicas permutes the logits, so what is learned of one holds for all.
    """

    def __init__(self, layout: Layout, hidden: Sequence[int], activation: str) -> None:
        """Build the scorer for a layout."""
        super().__init__()
        self.layout = layout
        width = 2 * layout.features + layout.shared
        self.score = mlp((width, *hidden, 1), 0.01, activation)

    def forward(self, observations: Tensor) -> Tensor:
        """Return logits [n, replicas]."""
        layout = self.layout
        replica_features = observations[:, : layout.replicas * layout.features].view(
            -1, layout.replicas, layout.features
        )
        mean = replica_features.mean(1, keepdim=True).expand_as(replica_features)
        shared = observations[:, None, layout.replicas * layout.features :].expand(
            -1, layout.replicas, -1
        )
        scores: Tensor = self.score(torch.cat([replica_features, mean, shared], -1))
        return scores[..., 0]


class Policy(nn.Module):
    """An actor and a critic of their own weights, and the distribution between them.

    `dimensions` is 0 for discrete actions (the actor gives logits); else the actor gives the means
    of a Gaussian whose log-deviation is a parameter of its own for each dimension.
    """

    def __init__(self, actor: nn.Module, critic: nn.Module, dimensions: int = 0) -> None:
        """Put an actor and a critic together."""
        super().__init__()
        self.actor, self.critic, self.dimensions = actor, critic, dimensions
        self.log_std = nn.Parameter(torch.zeros(dimensions)) if dimensions else None

    def value(self, observations: Tensor) -> Tensor:
        """Return the value [n] of each observation."""
        values: Tensor = self.critic(observations)
        return values[..., 0]

    def distribution(
        self, observations: Tensor, temperature: Tensor, masks: Tensor | None = None
    ) -> "Categorical | Gaussian":
        """Return what actions are drawn from; `temperature` [n, 1] widens it where above 1.

        Discrete actions that are False in `masks`, [n, actions], have probability 0.
        """
        out: Tensor = self.actor(observations)
        if self.log_std is None:
            return Categorical(torch.log_softmax(mask_logits(out / temperature, masks), -1))
        return Gaussian(out, self.log_std + torch.log(temperature))


def mask_logits(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Return logits [n, actions] that give probability 0 where `masks` is False."""
    return logits if masks is None else logits.masked_fill(~masks, MASKED_LOGIT)


@dataclass(frozen=True, slots=True)
class Categorical:
    """Discrete actions by their log-probabilities [n, actions]."""

    log_probs: Tensor

    def rows(self, index: Tensor) -> "Categorical":
        """Return the distributions at `index`."""
        return Categorical(self.log_probs[index])

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return log pi(a) [n] of actions int64 [n]."""
        return -nn.functional.nll_loss(self.log_probs, actions, reduction="none")

    def entropy(self) -> Tensor:
        """Return the entropy [n] in nats."""
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def kl(self, other: "Categorical") -> Tensor:
        """Return KL(self || other) [n] in nats, over all actions."""
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Continuous actions with independent dimensions: means and log-deviations [n, d]."""

    mean: Tensor
    log_std: Tensor

    def rows(self, index: Tensor) -> "Gaussian":
        """Return the distributions at `index`."""
        return Gaussian(self.mean[index], self.log_std[index])

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return log pi(a) [n] of actions [n, d]."""
        z = (actions - self.mean) * torch.exp(-self.log_std)
        return -(0.5 * z * z + self.log_std + 0.9189385332046727).sum(-1)  # log(2 pi) / 2

    def entropy(self) -> Tensor:
        """Return the differential entropy [n] in nats."""
        return (self.log_std + 1.4189385332046727).sum(-1)  # (1 + log(2 pi)) / 2

    def kl(self, other: "Gaussian") -> Tensor:
        """Return KL(self || other) [n] in nats."""
        ratio = torch.exp(2 * (self.log_std - other.log_std))
        shift = (self.mean - other.mean) * torch.exp(-other.log_std)
        return 0.5 * (ratio + shift * shift - 1 + 2 * (other.log_std - self.log_std)).sum(-1)


def build(  # noqa: PLR0913 - what a network is made of
    features: int,
    actions: int,
    *,
    continuous: bool = False,
    hidden: Sequence[int] = (64, 64),
    activation: str = "tanh",
    layout: Layout | None = None,
) -> Policy:
    """Build a policy for observations of `features` and `actions` choices or dimensions."""
    actor: nn.Module
    if layout is None:
        actor = mlp((features, *hidden, actions), 0.01, activation)
    else:
        actor = ReplicaScorer(layout, hidden, activation)
    critic = mlp((features, *hidden, 1), 1.0, activation)
    return Policy(actor, critic, actions if continuous else 0)


def parameters_of(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return each parameter's name and shape: what must fit for weights to be loaded."""
    state: dict[str, Any] = module.state_dict()
    return {name: tuple(value.shape) for name, value in state.items()}
