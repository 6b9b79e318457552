"""Adam on all parameters of a policy as one vector: one call steps a single tensor."""

from math import inf, isfinite

import torch
from torch import Tensor, nn


class FlatAdam:
    """Adam over a module's parameters, which become views into one vector."""

    def __init__(self, module: nn.Module, lr: float) -> None:
        """Lay the parameters out one after the other."""
        self.parameters = list(module.parameters())
        self.vector = nn.Parameter(
            torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        )
        self.gradient = self.vector.grad = torch.zeros_like(self.vector)
        views = self.vector.detach().split([parameter.numel() for parameter in self.parameters])
        for parameter, view in zip(self.parameters, views, strict=True):
            parameter.data = view.view_as(parameter)
        self.norm = 0.0
        self.adam = torch.optim.Adam([self.vector], lr=lr, eps=1e-5, fused=True)

    def backward(self, loss: Tensor) -> float:
        """Compute the gradient of a loss; return its norm."""
        gradients = torch.autograd.grad(loss, self.parameters)
        torch.cat([gradient.reshape(-1) for gradient in gradients], out=self.gradient)
        self.norm = float(self.gradient.norm())
        return self.norm

    def step(self, lr: float, limit: float) -> bool:
        """Go down the gradient, cut to the norm `limit` (0: not); nowhere if it is not finite."""
        if not isfinite(self.norm):
            return False
        if self.norm > (limit or inf):
            self.gradient.mul_(limit / self.norm)
        self.adam.param_groups[0]["lr"] = lr
        self.adam.step()
        return True
