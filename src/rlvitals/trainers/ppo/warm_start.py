"""Warm start a policy: clone a scheduler's decisions, or load weights."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rlvitals import UsageError
from rlvitals.trainers.ppo.config import WarmStartConfig
from rlvitals.trainers.ppo.demonstrations import Demos
from rlvitals.trainers.ppo.networks import parameters_of
from rlvitals.trainers.ppo.ppo import PPO

PRETRAINED_FILE = "pretrained_actor.safetensors"
MOMENTS_PREFIX = "observe."  # before the names of the normaliser's numbers


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of an actor with demonstrations."""

    loss: float  # cross-entropy, nats a decision
    accuracy: float  # share of decisions that the likeliest action hits


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutDecisions:
    """Demonstrations that are held out from cloning, to measure agreement."""

    observations: NDArray[np.float32]  # [n, features], not normalised
    actions: Tensor  # int64 [n]

    @property
    def blind(self) -> Agreement:
        """The agreement of the best policy that ignores the state."""
        shares = torch.bincount(self.actions).double() / len(self.actions)
        return Agreement(float(torch.special.entr(shares).sum()), float(shares.max()))

    def agreement(self, ppo: PPO) -> Agreement:
        """Compare the policy as it is now, at temperature 1."""
        with torch.inference_mode():
            obs = torch.from_numpy(ppo.normalise_obs(self.observations, learn=False))
            logits = ppo.policy.actor(obs)
            loss = float(nn.functional.cross_entropy(logits, self.actions))
            return Agreement(loss, float((logits.argmax(1) == self.actions).float().mean()))


@dataclass(frozen=True, slots=True)
class CloningEpoch:
    """Agreement after an epoch of behaviour cloning, on held-out decisions."""

    epoch: int
    untrained: Agreement  # before the first epoch
    current: Agreement
    blind: Agreement
    held_out: HeldOutDecisions

    def verdict(self, updated: Agreement | None = None) -> str:
        """Return a sentence on the warm start's agreement with the demonstrations.

        `later`: the agreement after the first update, which then decides.
        """
        last = updated or self.current
        # 0.05 of the cross-entropy of a policy that is blind to the state: a clone that does not
        # get so much below it has learned the shares of the actions alone.
        took = last.loss < (1 - 0.05) * self.blind.loss
        stages = (self.untrained, self.current, *([updated] if updated else []))
        hits = " -> ".join(f"{stage.accuracy:.1%}" for stage in stages)
        losses = " -> ".join(f"{stage.loss:.3f}" for stage in stages)
        when = "untrained, cloned, after the first update" if updated else "untrained, cloned"
        return (
            f"the warm start {'took' if took else 'did NOT take'}: agreement with the "
            f"demonstrations {hits} (always the commonest action: {self.blind.accuracy:.1%}), "
            f"cross-entropy {losses} nats (blind to the state: {self.blind.loss:.3f}); {when}"
        )


def clone(ppo: PPO, demos: Demos, config: WarmStartConfig) -> Iterator[CloningEpoch]:
    """Teach the actor to decide as in the demonstrations (their likelihood), epoch by epoch.

    The normaliser learns their states first. Each scheduler weighs the same, however many
    decisions it gave. Raises UsageError where the states do not fit.
    """
    if demos.observations.shape[1] != ppo.envs.features:
        raise UsageError(
            f"the demonstrations' states have {demos.observations.shape[1]} numbers, "
            f"the environment's {ppo.envs.features}",
            hint="collect them with the same cluster settings: rlvitals demos -o demos.npz",
        )
    rows = ppo.normalise_obs(demos.observations, learn=True)
    obs, actions = torch.from_numpy(rows), torch.from_numpy(demos.actions)
    weights = torch.from_numpy(_weights(demos))
    order = torch.from_numpy(ppo.rng.permutation(len(demos)))
    held_out_count = max(int(config.bc_holdout * len(demos)), 1)
    held_out_rows, train_rows = order[:held_out_count], order[held_out_count:]
    held_out = HeldOutDecisions(demos.observations[held_out_rows.numpy()], actions[held_out_rows])
    untrained, blind = held_out.agreement(ppo), held_out.blind
    optimizer = torch.optim.Adam(ppo.policy.actor.parameters(), lr=config.bc_learning_rate)
    for epoch in range(config.bc_epochs):
        for index in torch.split(
            train_rows[torch.from_numpy(ppo.rng.permutation(len(train_rows)))], config.bc_batch_size
        ):
            noise = ppo.rng.normal(0.0, config.bc_noise, (len(index), rows.shape[1]))
            noisy = obs[index] + torch.from_numpy(noise.astype(np.float32))
            losses = nn.functional.cross_entropy(
                ppo.policy.actor(noisy), actions[index], reduction="none"
            )
            optimizer.zero_grad()
            (losses * weights[index]).mean().backward()
            nn.utils.clip_grad_norm_(ppo.policy.actor.parameters(), 1.0)
            optimizer.step()
        yield CloningEpoch(epoch + 1, untrained, held_out.agreement(ppo), blind, held_out)


def _weights(demos: Demos) -> NDArray[np.float32]:
    """Return a weight for each decision: schedulers weigh alike, the mean is 1."""
    counts = np.bincount(demos.policies, minlength=len(demos.names))
    share = len(demos) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return share[demos.policies].astype(np.float32)


def save(ppo: PPO, file: Path) -> None:
    """Write the actor and what its inputs are normalised by."""
    tensors = {name: value.contiguous() for name, value in ppo.policy.actor.state_dict().items()}
    moments = ppo.normalise_obs.moments
    tensors |= {
        f"{MOMENTS_PREFIX}mean": torch.from_numpy(moments.mean.copy()),
        f"{MOMENTS_PREFIX}var": torch.from_numpy(moments.var.copy()),
        f"{MOMENTS_PREFIX}count": torch.tensor(moments.count, dtype=torch.float64),
    }
    temporary = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        save_file(tensors, temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def load(ppo: PPO, file: Path) -> None:
    """Take an actor's weights, and what its inputs are normalised by, from a file of `save`.

    Raises UsageError for a file that is none, and says which weights do not fit: never does a run
    begin afresh in silence.
    """
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"the weights cannot be read: {error}", where=str(file)) from None
    weights = {
        name: value for name, value in tensors.items() if not name.startswith(MOMENTS_PREFIX)
    }
    file_shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    model_shapes = dict(parameters_of(ppo.policy.actor))
    if (
        f"{MOMENTS_PREFIX}mean" in tensors
    ):  # a scorer of replicas fits any number of them, its inputs do not
        model_shapes |= {
            f"{MOMENTS_PREFIX}{name}": (ppo.envs.features,) for name in ("mean", "var")
        }
        model_shapes[f"{MOMENTS_PREFIX}count"] = ()
    misfit = difference(file_shapes, model_shapes)
    if misfit:
        raise UsageError(
            f"the weights do not fit: {misfit}",
            where=str(file),
            hint="use the network and cluster settings that they were trained with",
        )
    ppo.policy.actor.load_state_dict(weights)
    if f"{MOMENTS_PREFIX}mean" in tensors:
        moments = ppo.normalise_obs.moments
        moments.mean = tensors[f"{MOMENTS_PREFIX}mean"].numpy()
        moments.var = tensors[f"{MOMENTS_PREFIX}var"].numpy()
        moments.count = float(tensors[f"{MOMENTS_PREFIX}count"])


def difference(
    file_shapes: Mapping[str, tuple[int, ...]], model_shapes: Mapping[str, tuple[int, ...]]
) -> str:
    """Return where the shapes of two sets of weights differ; empty if they do not."""
    differences = [
        f"{name} is {_shape(file_shapes.get(name))} there and {_shape(model_shapes.get(name))} here"
        for name in sorted({*file_shapes, *model_shapes})
        if file_shapes.get(name) != model_shapes.get(name)
    ]
    return "; ".join(differences)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else "x".join(map(str, shape)) or "one number"
