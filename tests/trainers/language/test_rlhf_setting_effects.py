"""Which number each setting of an RLHF update moves, and which way.

Each row: the smaller value, the larger one, the number, the sign of its change, settings beside.
"""

from dataclasses import replace
from functools import partial

import pytest
import rlhf_parts
import torch

from rlvitals.trainers import schema
from rlvitals.trainers.language.rlhf import factory
from rlvitals.trainers.language.rlhf.config import Config, RLHFConfig

UP, DOWN = 1, -1
# Shown by whole trainings in test_every_language_setting.py: what they are has no more and less.
ELSEWHERE = {"output_dir", "seed", "reward_model", "bf16", "threads"}


def uneven(completions, **_):
    return [len(set(one)) / 4 for one in completions]


def made(said):
    return rlhf_parts.page(uneven, **{"total_episodes": 48, "num_ppo_epochs": 2, **said})


def rewarded(said):
    """The batch of responses whose every token left the reference by 1, each with a score of 2."""
    ppo = made(said)
    drawn, _, _ = ppo.collect_rollout()
    logprobs, values, _ = ppo._read(drawn)
    ppo._read = lambda _: (logprobs, torch.zeros_like(values), logprobs - 1.0)
    ppo.counters.steps = 1  # so that nothing is expected but by the values above
    return ppo.reward(
        replace(drawn, finished=torch.zeros_like(drawn.finished)), torch.full((8,), 2.0)
    )


def first_return(said):
    return float(rewarded(said).returns[:, 0].mean())


def spread_of_rewards(said):
    """The deviation of what tokens are paid; with gamma 0 that is the return of each."""
    batch = rewarded({**said, "gamma": 0.0})
    return float(batch.returns[batch.mask.bool()].std())


def loss(said, *, ratio=1.0, value=0.0):
    """The loss of tokens with an advantage of 1 whose ratio and value moved."""
    ppo = made(said)
    _, batch, _ = ppo.collect_rollout()
    rows = replace(batch, advantages=batch.mask, returns=batch.values + 1.0)
    moved = batch.logprobs + torch.tensor(ratio).log()
    return float(ppo.loss(rows, moved, batch.values + value))


def distance(part, said):
    """How far an update moves the language model, or the weights of the value head."""
    ppo = made(said)
    weights = ppo.learning[:-2] if part == "model" else [ppo.policy.value_head.weight]
    before = torch.cat([one.detach().clone().flatten() for one in weights])
    ppo.iterate()
    return float((torch.cat([one.detach().flatten() for one in weights]) - before).norm())


def followed(said):
    """The norm of the gradient that a step follows, after it was clipped."""
    ppo = made(said)
    norms = []

    def step():
        norms.append(float(torch.cat([one.grad.flatten() for one in ppo.learning]).norm()))

    ppo.optimizer.step = step
    ppo.iterate()
    return norms[0]


def optimizer_steps(said):
    ppo = made(said)
    ppo.iterate()
    return ppo.counters.steps


def forward_passes(said):
    ppo = made(said)
    drawn, batch, _ = ppo.collect_rollout()
    calls = []
    forward = ppo.model.forward
    ppo.model.forward = lambda *rows: calls.append(rows) or forward(*rows)
    ppo.update(drawn, batch)
    return len(calls)


def responses(said):
    return len(made(said).collect_rollout()[1].mask)


def longest(said):
    return made(said).collect_rollout()[1].mask.shape[1]


def updates(said):
    return made(said).updates


def surprise(said):
    """How unlikely the drawn tokens are: the entropy of what they are drawn from, estimated."""
    batch = made({**said, "batch_size": 64}).collect_rollout()[1]
    return -float(batch.logprobs[batch.mask.bool()].mean())


def last_rate(said):
    ppo = made(said)
    ppo.counters.updates = 3
    return ppo.schedule


def price(said):
    """The price after an update whose KL was 10 nats a response."""
    controller = factory.controller(RLHFConfig(**said))
    controller.update(10.0, 64)
    return controller.value


ADAPTIVE = {"kl_controller": "adaptive"}
FREE = {"kl_coef": 0.0}
FAST = {"lr": 1e-2, "num_ppo_epochs": 4}
EFFECTS = {
    "total_episodes": (24, 48, updates, UP, {}),
    "batch_size": (8, 16, responses, UP, {}),
    "num_ppo_epochs": (1, 3, optimizer_steps, UP, {}),
    "num_mini_batches": (1, 2, optimizer_steps, UP, {}),
    "forward_batch_size": (3, 8, forward_passes, DOWN, {}),
    "lr": (1e-4, 1e-2, partial(distance, "model"), UP, {}),
    "value_lr": (0.01, 0.1, partial(distance, "head"), UP, {}),
    "lr_schedule": ("linear", "constant", last_rate, UP, {}),
    "max_grad_norm": (1e-3, 1e-2, followed, UP, {}),
    "response_length": (2, 4, longest, UP, {}),
    "temperature": (0.3, 1.0, surprise, UP, {}),
    "missing_eos_penalty": (0.0, 1.0, first_return, DOWN, {}),
    "kl_coef": (0.05, 1.0, first_return, DOWN, {}),
    "kl_controller": ("fixed", "adaptive", price, UP, {}),
    "kl_target": (5.0, 20.0, price, DOWN, ADAPTIVE),
    "kl_horizon": (100, 1000, price, DOWN, ADAPTIVE),
    "kl_estimator": ("k1", "k3", first_return, UP, {}),  # 1 and exp(-1) a token
    "gamma": (0.5, 1.0, first_return, UP, FREE),
    "lam": (0.5, 1.0, first_return, UP, FREE),
    "whiten_rewards": (False, True, spread_of_rewards, UP, {}),
    "cliprange": (0.05, 0.5, partial(loss, ratio=2.0), DOWN, {}),
    "cliprange_value": (0.05, 0.5, partial(loss, value=0.9), DOWN, {}),
    "vf_coef": (0.1, 1.0, loss, UP, {}),
    "target_kl": (1e-9, 10.0, optimizer_steps, UP, FAST),
    "ratio_threshold": (1e-6, 10.0, optimizer_steps, UP, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", EFFECTS)
def test_a_setting_moves_its_number_its_way(name):
    smaller, larger, number, sign, beside = EFFECTS[name]
    before, after = (number({**beside, name: value}) for value in (smaller, larger))
    assert sign * (after - before) > 1e-6 * max(abs(before), abs(after)), (before, after)


def test_every_setting_of_rlhf_has_its_number():
    names = {key.path[1] for key in schema.keys(Config) if key.path[0] == "rlhf"}
    assert EFFECTS.keys() == names - ELSEWHERE
