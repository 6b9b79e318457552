"""A small tanh network as one autograd operation: small updates are dominated by call overhead.

Products stay torch's (they keep to its threads); the hyperbolic tangent is numpy's, which takes a
tenth of the time; the gradient is written out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Mlp(nn.Sequential):
    """Linear layers with an activation between them: [..., features] to [..., out]."""

    @property
    def is_tanh(self) -> bool:
        """True if all activations are tanh."""
        return all(isinstance(layer, nn.Linear | nn.Tanh) for layer in self)

    def forward(self, rows: Tensor) -> Tensor:
        """Return what the last layer gives."""
        if rows.device.type != "cpu" or not self.is_tanh:
            return super().forward(rows)  # type: ignore[no-any-return, unused-ignore]
        flat = rows.reshape(-1, rows.shape[-1])
        linear = [layer for layer in self if isinstance(layer, nn.Linear)]
        parameters = [parameter for layer in linear for parameter in (layer.weight, layer.bias)]
        output: Tensor = _Tanh.apply(flat, *parameters)
        return output.view(*rows.shape[:-1], -1)


class _Tanh(torch.autograd.Function):
    """Linear layers with tanh between them; parameters are weight and bias of each in turn."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ANN401 - torch's
        """Return [n, out] for rows [n, features]."""
        inputs = [rows]
        weights, biases = parameters[::2], parameters[1::2]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            hidden = torch.addmm(bias, inputs[-1], weight.t())
            values = hidden.numpy()
            np.tanh(values, out=values)
            inputs.append(hidden)
        ctx.save_for_backward(*inputs, *weights)
        return torch.addmm(biases[-1], inputs[-1], weights[-1].t())

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - torch's
        """Return the slopes of the rows, where they are asked for, and of each parameter."""
        saved: Sequence[Tensor] = ctx.saved_tensors
        depth = len(saved) // 2
        gradients: list[Tensor | None] = []
        for i in range(depth - 1, -1, -1):
            hidden, weight = saved[i], saved[depth + i]
            gradients = [grad_output.t() @ hidden, grad_output.sum(0), *gradients]
            if i:
                grad_output = torch.ops.aten.tanh_backward(grad_output @ weight, hidden)
        return (grad_output @ saved[depth] if ctx.needs_input_grad[0] else None, *gradients)
