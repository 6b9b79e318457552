"""Measure PPO's environment steps per second of CPU, compared with Stable-Baselines3 and torch.

The same hyper-parameters, network and Gymnasium environments, one thread, after a first rollout.
"Same vector" steps CartPole in Gymnasium's SyncVectorEnv (Stable-Baselines3: its DummyVecEnv);
"own best" is what each is fastest with. The plain loop is written as single-file PPO scripts are.
Then: what all that is no update costs of a whole `rlvitals train ppo`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import gymnasium as gym
import numpy as np
import psutil
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn

from rlvitals.trainers import schema
from rlvitals.trainers.ppo import environments, networks
from rlvitals.trainers.ppo.config import Config, PPOConfig
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.program import Training

NAME, ENVS, LENGTH, MINIBATCH, EPOCHS = "CartPole-v1", 8, 256, 256, 4
UPDATES, ROUNDS = 12, 3
COUNTS = (8, 32, 64, 128)
HERE = psutil.Process()
OWN = PPOConfig(rollout_length=LENGTH, minibatch_size=MINIBATCH, epochs=EPOCHS)


def spent() -> float:
    """CPU seconds of this process and of those it runs environments in."""
    child_seconds = sum(
        process.cpu_times().user + process.cpu_times().system for process in HERE.children()
    )
    return time.process_time() + child_seconds


def rate(update: Callable[[], object], steps: int) -> float:
    """Environment steps per second of CPU, the best of some rounds of alike many steps."""
    update()
    updates = max(UPDATES * LENGTH * ENVS // steps, 1)
    best = 0.0
    for _ in range(ROUNDS):
        start_seconds = spent()
        for _ in range(updates):
            update()
        best = max(best, updates * steps / (spent() - start_seconds))
    return best


def ours(envs: environments.Environments) -> float:
    policy = networks.build(envs.features, envs.actions)
    ppo = PPO(envs, policy, OWN, total_steps=10**9)
    return rate(ppo.iterate, LENGTH * envs.count)


def synced(count: int) -> SyncVectorEnv:
    makers = [lambda: gym.make(NAME)] * count
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)


def stable_baselines(count: int, *, processes: bool = False) -> float:
    import stable_baselines3 as sb3
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kind = SubprocVecEnv if processes else DummyVecEnv
    envs = make_vec_env(NAME, count, vec_env_cls=kind)
    model = sb3.PPO("MlpPolicy", envs, n_steps=LENGTH, batch_size=MINIBATCH, n_epochs=EPOCHS,
                    device="cpu")  # fmt: skip
    steps = LENGTH * count
    speed = rate(lambda: model.learn(steps, reset_num_timesteps=False), steps)
    envs.close()
    return speed


class Plain:
    """PPO as single-file scripts write it: one agent, torch tensors, a loop over steps."""

    def __init__(self, envs: SyncVectorEnv) -> None:
        def layer(wide: int, out: int, gain: float = 2**0.5) -> nn.Linear:
            linear = nn.Linear(wide, out)
            nn.init.orthogonal_(linear.weight, gain)
            nn.init.zeros_(linear.bias)
            return linear

        def net(out: int, gain: float) -> nn.Sequential:
            return nn.Sequential(
                layer(4, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, out, gain)
            )

        self.envs, self.actor, self.critic = envs, net(2, 0.01), net(1, 1.0)
        self.weights = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.weights, lr=3e-4, eps=1e-5)
        self.seen = torch.Tensor(envs.reset(seed=0)[0])
        self.done = torch.zeros(envs.num_envs)

    def act(self, obs: torch.Tensor, action: torch.Tensor | None = None) -> tuple:
        distribution = torch.distributions.Categorical(logits=self.actor(obs))
        action = distribution.sample() if action is None else action
        return (
            action,
            distribution.log_prob(action),
            distribution.entropy(),
            self.critic(obs).flatten(),
        )

    def update(self) -> None:
        columns: list[list[torch.Tensor]] = [[] for _ in range(6)]
        for _ in range(LENGTH):
            with torch.no_grad():
                action, log_prob, _, value = self.act(self.seen)
            after, reward, terminated, cut, _ = self.envs.step(action.numpy())
            row = (self.seen, action, log_prob, torch.Tensor(reward), self.done, value)
            for column, item in zip(columns, row, strict=True):
                column.append(item)
            self.seen, self.done = torch.Tensor(after), torch.Tensor(terminated | cut)
        self.learn(*(torch.stack(column) for column in columns))

    def learn(self, obs, action, log_prob, reward, done, value) -> None:  # noqa: ANN001, PLR0913, PLR0917
        with torch.no_grad():
            after = self.critic(self.seen).flatten()
            gains, next_gain = torch.zeros_like(reward), 0.0
            for t in reversed(range(LENGTH)):
                on = 1 - (self.done if t == LENGTH - 1 else done[t + 1])
                ahead = after if t == LENGTH - 1 else value[t + 1]
                next_gain = reward[t] + 0.99 * ahead * on - value[t] + 0.99 * 0.95 * on * next_gain
                gains[t] = next_gain
        rows = [x.flatten(0, 1) for x in (obs, action, log_prob, gains, gains + value)]
        order = np.arange(len(rows[1]))
        for _ in range(EPOCHS):
            np.random.shuffle(order)  # noqa: NPY002 - as those scripts do
            for start in range(0, len(order), MINIBATCH):
                index = order[start : start + MINIBATCH]
                s, a, old_log_prob, gain, goal = (x[index] for x in rows)
                _, new_log_prob, entropy, guess = self.act(s, a)
                ratio = (new_log_prob - old_log_prob).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                surrogate = torch.max(-gain * ratio, -gain * ratio.clamp(0.8, 1.2)).mean()
                loss = surrogate + 0.25 * ((guess - goal) ** 2).mean() - 0.0 * entropy.mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.weights, 0.5)
                self.optimizer.step()


def parts() -> dict[str, float]:
    """CPU seconds of a whole program by what they are spent on."""
    seconds_by_part: dict[str, float] = {}
    wrapped = [
        (PPO, "iterate", "updates"), (Training, "__init__", "start"),
        (Training, "_tell", "rows, lines and event files"), (Training, "_save", "checkpoints"),
        (Training, "_judge", "live diagnosis"), (Training, "_end", "end"),
    ]  # fmt: skip
    originals = [getattr(owner, name) for owner, name, _ in wrapped]
    for owner, name, part in wrapped:
        setattr(owner, name, clocked(getattr(owner, name), part, seconds_by_part))
    options = {
        "training.env": NAME, "training.num_envs": ENVS, "training.total_steps": 600_000,
        "ppo_config.rollout_length": LENGTH, "ppo_config.minibatch_size": MINIBATCH,
    }  # fmt: skip
    start_time = time.process_time()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        options["training.output_dir"] = str(Path(folder) / "run")
        Training(schema.load(Config, None, options)).run()
    total_seconds = time.process_time() - start_time
    for (owner, name, _), original in zip(wrapped, originals, strict=True):
        setattr(owner, name, original)
    return seconds_by_part | {"other": total_seconds - sum(seconds_by_part.values())}


def clocked(call: Callable, part: str, seconds_by_part: dict[str, float]) -> Callable:
    def timed(*args: object, **options: object) -> object:
        start_time = time.process_time()
        try:
            return call(*args, **options)
        finally:
            seconds_by_part[part] = (
                seconds_by_part.get(part, 0.0) + time.process_time() - start_time
            )

    return timed


def table(title: str, rows: dict[str, float], base: float) -> None:
    print(title)
    for name, speed in rows.items():
        print(f"  {name:44}{speed:8,.0f} steps/s{speed / base:7.2f} x")


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{NAME}, rollouts of {LENGTH}, minibatches of {MINIBATCH}, {EPOCHS} epochs, CPU time")
    plain = Plain(synced(ENVS))
    equal_options = {
        "Stable-Baselines3": stable_baselines(ENVS),
        "plain torch loop": rate(plain.update, LENGTH * ENVS),
        "rlvitals, same vector": ours(environments.Environments(synced(ENVS))),
        "rlvitals, CartPole's own vector": ours(environments.make(NAME, ENVS)),
    }
    table(f"{ENVS} environments", equal_options, equal_options["Stable-Baselines3"])
    peers = {f"Stable-Baselines3, DummyVecEnv of {n}": stable_baselines(n) for n in COUNTS}
    peers |= {
        f"Stable-Baselines3, SubprocVecEnv of {n}": stable_baselines(n, processes=True)
        for n in (8, 32)
    }
    our_rates = {
        f"rlvitals, {n} environments": ours(environments.make(NAME, n)) for n in (1, *COUNTS)
    }
    table("each with its best", peers | our_rates, max(peers.values()))
    spent_on = parts()
    total_seconds = sum(spent_on.values())
    print(f"a whole training of 600,000 steps: {total_seconds:.1f} CPU s")
    for part, seconds in spent_on.items():
        print(f"  {part:44}{seconds:8.2f} s{seconds / total_seconds:8.2%}")


if __name__ == "__main__":
    main()
