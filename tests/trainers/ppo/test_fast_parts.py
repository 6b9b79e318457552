"""What is written out for speed gives what torch's own parts give."""

import numpy as np
import pytest
import torch
from torch import nn

from rlvitals.trainers.ppo import networks, sample_actions
from rlvitals.trainers.ppo.flat_params import FlatAdam


def plain(module):
    return nn.Sequential(*module)


@pytest.mark.parametrize("shape", [(7, 5), (6, 3, 5)])
def test_a_tanh_network_has_torchs_values_and_gradients(shape):
    torch.manual_seed(0)
    net = networks.mlp((5, 16, 8, 2), 1.0)
    rows = torch.randn(shape, requires_grad=True)
    places = [rows, *net.parameters()]
    mine, theirs = net(rows), plain(net)(rows)
    assert mine.shape == theirs.shape == (*shape[:-1], 2)
    assert torch.allclose(mine, theirs, atol=1e-6)
    weights = torch.randn_like(mine)
    ours = torch.autograd.grad((mine * weights).sum(), places)
    for one, other in zip(ours, torch.autograd.grad((theirs * weights).sum(), places), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
        assert other.abs().max() > 0


def test_other_activations_go_through_torch():
    net = networks.mlp((5, 8, 2), 1.0, "relu")
    rows = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    with torch.no_grad():
        known = plain(net)(torch.from_numpy(rows))
    assert np.array_equal(sample_actions.forward(net, rows), known.numpy())


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_adam_over_one_vector_is_adam(limit):
    torch.manual_seed(0)
    mine, theirs = networks.mlp((5, 8, 2), 1.0), networks.mlp((5, 8, 2), 1.0)
    theirs.load_state_dict(mine.state_dict())
    flat = FlatAdam(mine, 1e-3)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2, eps=1e-5)
    for _ in range(5):
        rows = torch.randn(16, 5)
        norm = flat.backward(mine(rows).pow(2).mean())
        assert flat.step(1e-2, limit)
        adam.zero_grad()
        theirs(rows).pow(2).mean().backward()
        known = nn.utils.clip_grad_norm_(theirs.parameters(), limit or torch.inf)
        assert norm == pytest.approx(float(known), rel=1e-4)
        adam.step()
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_gradient_that_is_not_finite_is_not_followed():
    net = networks.mlp((5, 8, 2), 1.0)
    before = [one.clone() for one in net.parameters()]
    flat = FlatAdam(net, 1e-3)
    flat.backward(net(torch.full((1, 5), torch.inf)).sum())
    assert not flat.step(1e-3, 0.5)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
