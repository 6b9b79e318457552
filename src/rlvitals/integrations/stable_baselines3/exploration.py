"""How an off-policy algorithm explores: what Stable-Baselines3 does not log of it.

No number is drawn from a generator that training draws from.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

MOST = 256  # states: the standard error of a mean over them is 6 % of the spread
EPS = 1e-6  # stable_baselines3/common/distributions.py, SquashedDiagGaussianDistribution


class Exploration:
    """Asks the policy about states it has just seen."""

    def __init__(self, model: OffPolicyAlgorithm) -> None:
        """Ask the policy of `model`."""
        self.model = model
        self.noise = torch.Generator().manual_seed(0)  # ours alone

    def numbers(self, observations: Mapping[str, Any]) -> dict[str, float]:
        """Return entropy, width of the noise and mean value where the algorithm has them."""
        model, found = self.model, {}
        sigma = getattr(model.action_noise, "_sigma", None)
        if sigma is not None:
            found["rollout/noise_std"] = float(np.mean(sigma))
        if isinstance(model.action_space, spaces.Discrete) and hasattr(model, "exploration_rate"):
            entropy = _epsilon_greedy(model.exploration_rate, int(model.action_space.n))
            found["rollout/exploration_entropy"] = entropy
        with torch.no_grad():
            if hasattr(model, "q_net"):
                q = model.q_net(self._states(observations))
                found["rollout/q_mean"] = q.max(dim=-1).values.mean().item()
            elif hasattr(getattr(model, "actor", None), "get_action_dist_params"):
                found |= self._squashed(observations)
        return found

    def _states(self, observations: Mapping[str, Any]) -> Any:
        last = {key: x.reshape(-1, *x.shape[2:])[-MOST:] for key, x in observations.items()}
        if isinstance(self.model.observation_space, spaces.Dict):
            last = {key.partition("'")[2].rpartition("'")[0]: x for key, x in last.items()}
            return self.model.policy.obs_to_tensor(last)[0]
        return self.model.policy.obs_to_tensor(last["observations"])[0]

    def _squashed(self, observations: Mapping[str, Any]) -> dict[str, float]:
        """Estimate the entropy of tanh(Gaussian), which has no closed form, by sampling."""
        actor: Any = self.model.actor
        if getattr(self.model, "use_sde", False):
            return {}  # its width depends on features that only a rollout has
        mean, log_std, _ = actor.get_action_dist_params(self._states(observations))
        noise = torch.randn(mean.shape, generator=self.noise).to(mean)
        squashed = torch.tanh(mean + log_std.exp() * noise)
        density = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        density = density - torch.log(1 - squashed**2 + EPS)
        return {
            "rollout/entropy": -density.sum(dim=1).mean().item(),
            "rollout/policy_std": log_std.exp().mean().item(),
        }


def _epsilon_greedy(epsilon: float, actions: int) -> float:
    """Return the entropy in nats of taking a uniform action with probability epsilon."""
    other = epsilon / actions
    shares = np.array([1 - epsilon + other, *[other] * (actions - 1)])
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())
