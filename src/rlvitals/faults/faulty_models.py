"""Faults in a model of Stable-Baselines3 during training."""

from collections.abc import Callable, Iterator
from typing import Any

Change = Callable[[Any], None]


def learning_rate(factor: float) -> Change:
    """Multiply the learning rate."""

    def change(model: Any) -> None:
        base_schedule = model.lr_schedule
        model.lr_schedule = lambda remaining: factor * base_schedule(remaining)

    return change


def attribute(**values: float | None) -> Change:
    """Set attributes of the algorithm: gamma, ent_coef, vf_coef, n_epochs, target_kl, tau..."""

    def change(model: Any) -> None:
        for name, value in values.items():
            setattr(model, name, value)
            if name == "gamma" and hasattr(model, "rollout_buffer"):
                model.rollout_buffer.gamma = value

    return change


def schedule(**values: float) -> Change:
    """Set what the algorithm takes as a schedule: clip_range, exploration_schedule."""

    def change(model: Any) -> None:
        for name, value in values.items():
            setattr(model, name, lambda _, value=value: value)

    return change


def fixed_temperature(value: float) -> Change:
    """Fix SAC's entropy coefficient."""

    def change(model: Any) -> None:
        import torch

        model.ent_coef_optimizer = model.log_ent_coef = None
        model.ent_coef_tensor = torch.tensor(float(value))

    return change


def nan_weight(model: Any) -> None:
    """Make one weight not a number."""
    import torch

    with torch.no_grad():
        for net in _trained_networks(model):
            next(net.parameters())[0, 0] = float("nan")


def _trained_networks(model: Any) -> Iterator[Any]:
    policy = model.policy
    for name in ("mlp_extractor", "q_net", "actor"):
        if hasattr(policy, name):
            yield getattr(policy, name)


def reset_weights(model: Any) -> None:
    """Reinitialise all weights, as after a resume without a checkpoint."""
    for module in model.policy.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()


def frozen_policy(model: Any) -> None:
    """Freeze the policy's weights."""
    policy = model.policy
    nets: list[Any] = [policy.actor] if hasattr(policy, "actor") else []
    if hasattr(policy, "mlp_extractor"):
        nets = [policy.mlp_extractor.policy_net, policy.action_net]
    for net in nets:
        net.requires_grad_(requires_grad=False)
    if hasattr(policy, "log_std"):
        policy.log_std.requires_grad_(requires_grad=False)


def frozen_critic(model: Any) -> None:
    """Freeze the critic's weights."""
    for net in (model.policy.mlp_extractor.value_net, model.policy.value_net):
        net.requires_grad_(requires_grad=False)


def flipped_advantages(model: Any) -> None:
    """Train against the advantages: the sign in the loss is wrong."""
    buffer = model.rollout_buffer
    compute = buffer.compute_returns_and_advantage

    def compute_and_flip(*args: Any, **kwargs: Any) -> None:
        compute(*args, **kwargs)
        buffer.advantages *= -1.0

    buffer.compute_returns_and_advantage = compute_and_flip


def wide_policy(model: Any) -> None:
    """Widen the Gaussian policy to a standard deviation of e^2.5 = 12 and keep it there."""
    model.policy.log_std.data.fill_(2.5)
    model.policy.log_std.requires_grad_(requires_grad=False)
