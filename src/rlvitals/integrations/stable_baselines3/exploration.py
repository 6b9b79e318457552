"""How an off-policy algorithm explores: what Stable-Baselines3 does not log of it.

Epsilon-greedy exploration is left to epsilon, which it does log: its entropy says nothing more.

No number is drawn from a generator that training draws from.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class Exploration:
    """Evaluates the policy on its newest states."""

    def __init__(self, model: OffPolicyAlgorithm) -> None:
        """Evaluate the policy of `model`."""
        self.model = model
        self.noise = torch.Generator().manual_seed(0)  # ours alone

    def numbers(self, observations: Mapping[str, Any]) -> dict[str, float]:
        """Return entropy, noise std and mean value, if the algorithm has them."""
        model, values = self.model, {}
        sigma = getattr(model.action_noise, "_sigma", None)
        if sigma is not None:
            values["rollout/noise_std"] = float(np.mean(sigma))
        with torch.no_grad():
            if hasattr(model, "q_net"):
                q = model.q_net(self._states(observations))
                values["rollout/q_mean"] = q.max(dim=-1).values.mean().item()
            elif hasattr(getattr(model, "actor", None), "get_action_dist_params"):
                values |= self._squashed_numbers(observations)
        return values

    def _states(self, observations: Mapping[str, Any]) -> Any:
        # The standard error of their mean is 6 % of the standard deviation.
        last = {key: x.reshape(-1, *x.shape[2:])[-256:] for key, x in observations.items()}
        return self.model.policy.obs_to_tensor(last.get("", last))[0]

    def _squashed_numbers(self, observations: Mapping[str, Any]) -> dict[str, float]:
        """Estimate the entropy of tanh(Gaussian), which has no closed form, by sampling."""
        actor: Any = self.model.actor
        if getattr(self.model, "use_sde", False):
            return {}  # its width depends on features that only a rollout has
        mean, log_std, _ = actor.get_action_dist_params(self._states(observations))
        noise = torch.randn(mean.shape, generator=self.noise).to(mean)
        squashed = torch.tanh(mean + log_std.exp() * noise)
        density = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        # The 1e-6 of stable_baselines3/common/distributions.py.
        density = density - torch.log(1 - squashed**2 + 1e-6)
        return {
            "rollout/entropy": -density.sum(dim=1).mean().item(),
            "rollout/policy_std": log_std.exp().mean().item(),
        }
