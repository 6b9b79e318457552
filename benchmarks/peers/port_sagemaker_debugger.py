"""A port of Amazon SageMaker Debugger's built-in rules, from their documentation.

"List of Debugger built-in rules" in the Amazon SageMaker developer guide, with the default
parameters it documents. The rules run as a service and are no open code. Of the 20 those are here
that need nothing but scalars. A row of the log is a step at which tensors were saved.

The collection "losses" holds what the optimiser minimises: `train/loss` (PPO, DQN), the critic's
loss (SAC, TD3), for A2C the sum of its three parts under its coefficients. The other losses that
are logged are looked at for values that are no number or zero or do not change. The rules have
one outcome, "issues found": a warning.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from peers.exchange import WARNING, Alarm, Given, Tool, answer, first

NUM_STEPS = 10  # LossNotDecreasing
VANISHING = 1e-7  # VanishingGradient
UNCHANGED_STEPS, RTOL, ATOL = 3, 1e-5, 1e-8  # UnchangedTensor
STALLED_SECONDS = 1800  # StalledTrainingRule
NOT_MAPPED = (
    "Overfit, Overtraining: want a validation loss, and these runs have none",
    "TensorVariance: has no threshold by default",
    "WeightUpdateRatio, PoorWeightInitialization, DeadRelu, SaturatedActivation: not logged",
    # It is never below the mean of their absolute values.
    "VanishingGradient reads the norm of the gradients, where that is logged",
)


def not_decreasing(losses: Sequence[float], num_steps: int = NUM_STEPS) -> list[int]:
    """Return the rows whose loss is not below that of `num_steps` rows before, every `num_steps`.

    No percentage is set by default: any decrease will do.
    """
    checked = range(num_steps, len(losses), num_steps)
    return [index for index in checked if not losses[index] < losses[index - num_steps]]


def exploding(values: Sequence[float]) -> list[int]:
    """Return the rows that are infinite or no number."""
    return [index for index, value in enumerate(values) if not np.isfinite(value)]


def vanishing(norms: Sequence[float]) -> list[int]:
    """Return the rows whose gradient is smaller than 1e-7."""
    return [index for index, norm in enumerate(norms) if norm < VANISHING]


def all_zero(values: Sequence[float]) -> list[int]:
    """Return the rows at which all of a tensor is zero: a scalar has one value."""
    return [index for index, value in enumerate(values) if value == 0]


def unchanged(values: Sequence[float], num_steps: int = UNCHANGED_STEPS) -> list[int]:
    """Return the rows at which the last three values are close to each other, by allclose."""
    windows = range(num_steps, len(values) + 1)
    return [
        index - 1
        for index in windows
        if all(
            np.allclose(values[i], values[i + 1], rtol=RTOL, atol=ATOL)
            for i in range(index - num_steps, index - 1)
        )
    ]


def stalled(seconds: Sequence[float]) -> list[int]:
    """Return the rows that came more than 1,800 s after the one before."""
    return [index + 1 for index, gap in enumerate(np.diff(seconds)) if gap > STALLED_SECONDS]


def minimised(run: Given) -> list[tuple[int, float]]:
    """Return what the optimiser minimises, as (step, loss)."""
    policy = run.column("train/policy_loss")
    if run.algorithm != "a2c" or not policy:
        pairs = zip(run.steps, run.rows, strict=True)
        losses = [(step, first(row, "train/loss", "train/critic_loss")) for step, row in pairs]
        return [(step, loss) for step, loss in losses if loss is not None]
    value, entropy = (run.column(f"train/{key}_loss") for key in ("value", "entropy"))
    of_value = float(run.settings.get("vf_coef", 0.5))  # Stable-Baselines3's defaults
    of_entropy = float(run.settings.get("ent_coef", 0.0))
    return [
        (step, policy_loss + of_value * two + of_entropy * three)
        for (step, policy_loss), (_, two), (_, three) in zip(policy, value, entropy, strict=True)
    ]


def ask(run: Given) -> list[Alarm]:
    """Run each rule over the rows."""
    return [Alarm(name, WARNING, step) for name, step in _found(run)]


def _found(run: Given) -> Iterator[tuple[str, int]]:
    keys = dict.fromkeys(key for row in run.rows for key in row)
    losses = [run.column(key) for key in keys if key.startswith("train/") and "loss" in key]
    trained = [run.column(key) for key in keys if key.startswith("train/")]
    norms = run.column("train/grad_norm")
    rules = (
        ("LossNotDecreasing", not_decreasing, [minimised(run)]),
        ("ExplodingTensor", exploding, trained),
        ("VanishingGradient", vanishing, [norms]),
        ("AllZero", all_zero, [*losses, norms]),
        ("UnchangedTensor", unchanged, losses),
        ("StalledTrainingRule", stalled, [run.column("time/time_elapsed")]),
    )
    for name, rule, columns in rules:
        for pairs in columns:
            indices = rule([value for _, value in pairs])
            yield from ((name, pairs[index][0]) for index in indices)


if __name__ == "__main__":
    place = "docs.aws.amazon.com/sagemaker/latest/dg/debugger-built-in-rules.html"
    answer(Tool("SageMaker Debugger (port)", "2024", "formulas", place, NOT_MAPPED), ask)
