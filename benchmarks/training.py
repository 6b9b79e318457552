"""PPO: environment steps per second of CPU, beside Stable-Baselines3 and a plain torch loop.

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
    whole = sum(one.cpu_times().user + one.cpu_times().system for one in HERE.children())
    return time.process_time() + whole


def rate(update: Callable[[], object], steps: int) -> float:
    """Environment steps per second of CPU, the best of some rounds of alike many steps."""
    update()
    updates = max(UPDATES * LENGTH * ENVS // steps, 1)
    best = 0.0
    for _ in range(ROUNDS):
        began = spent()
        for _ in range(updates):
            update()
        best = max(best, updates * steps / (spent() - began))
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
    found = rate(lambda: model.learn(steps, reset_num_timesteps=False), steps)
    envs.close()
    return found


class Plain:
    """PPO as single-file scripts write it: one agent, torch tensors, a loop over steps."""

    def __init__(self, envs: SyncVectorEnv) -> None:
        def layer(wide: int, out: int, gain: float = 2**0.5) -> nn.Linear:
            made = nn.Linear(wide, out)
            nn.init.orthogonal_(made.weight, gain)
            nn.init.zeros_(made.bias)
            return made

        def net(out: int, gain: float) -> nn.Sequential:
            return nn.Sequential(
                layer(4, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, out, gain)
            )

        self.envs, self.actor, self.critic = envs, net(2, 0.01), net(1, 1.0)
        self.weights = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.weights, lr=3e-4, eps=1e-5)
        self.seen = torch.Tensor(envs.reset(seed=0)[0])
        self.done = torch.zeros(envs.num_envs)

    def act(self, seen: torch.Tensor, action: torch.Tensor | None = None) -> tuple:
        made = torch.distributions.Categorical(logits=self.actor(seen))
        action = made.sample() if action is None else action
        return action, made.log_prob(action), made.entropy(), self.critic(seen).flatten()

    def update(self) -> None:
        kept: list[list[torch.Tensor]] = [[] for _ in range(6)]
        for _ in range(LENGTH):
            with torch.no_grad():
                action, log_prob, _, value = self.act(self.seen)
            after, reward, ended, cut, _ = self.envs.step(action.numpy())
            row = (self.seen, action, log_prob, torch.Tensor(reward), self.done, value)
            for column, item in zip(kept, row, strict=True):
                column.append(item)
            self.seen, self.done = torch.Tensor(after), torch.Tensor(ended | cut)
        self.learn(*(torch.stack(column) for column in kept))

    def learn(self, seen, action, log_prob, reward, done, value) -> None:  # noqa: ANN001, PLR0913, PLR0917
        with torch.no_grad():
            after = self.critic(self.seen).flatten()
            gains, later = torch.zeros_like(reward), 0.0
            for t in reversed(range(LENGTH)):
                on = 1 - (self.done if t == LENGTH - 1 else done[t + 1])
                ahead = after if t == LENGTH - 1 else value[t + 1]
                later = reward[t] + 0.99 * ahead * on - value[t] + 0.99 * 0.95 * on * later
                gains[t] = later
        rows = [x.flatten(0, 1) for x in (seen, action, log_prob, gains, gains + value)]
        order = np.arange(len(rows[1]))
        for _ in range(EPOCHS):
            np.random.shuffle(order)  # noqa: NPY002 - as those scripts do
            for start in range(0, len(order), MINIBATCH):
                index = order[start : start + MINIBATCH]
                s, a, before, gain, goal = (x[index] for x in rows)
                _, now, entropy, guess = self.act(s, a)
                ratio = (now - before).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                surrogate = torch.max(-gain * ratio, -gain * ratio.clamp(0.8, 1.2)).mean()
                loss = surrogate + 0.25 * ((guess - goal) ** 2).mean() - 0.0 * entropy.mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.weights, 0.5)
                self.optimizer.step()


def parts() -> dict[str, float]:
    """CPU seconds of a whole program by what they are spent on."""
    told: dict[str, float] = {}
    wrapped = [
        (PPO, "iterate", "updates"), (Training, "__init__", "start"),
        (Training, "_tell", "rows, lines and event files"), (Training, "_save", "checkpoints"),
        (Training, "_judge", "live diagnosis"), (Training, "_end", "end"),
    ]  # fmt: skip
    kept = [getattr(owner, name) for owner, name, _ in wrapped]
    for owner, name, what in wrapped:
        setattr(owner, name, clocked(getattr(owner, name), what, told))
    said = {
        "training.env": NAME, "training.num_envs": ENVS, "training.total_steps": 600_000,
        "ppo_config.rollout_length": LENGTH, "ppo_config.minibatch_size": MINIBATCH,
    }  # fmt: skip
    began = time.process_time()
    with tempfile.TemporaryDirectory() as place, redirect_stdout(StringIO()):
        said["training.output_dir"] = str(Path(place) / "run")
        Training(schema.load(Config, None, said)).run()
    whole = time.process_time() - began
    for (owner, name, _), own in zip(wrapped, kept, strict=True):
        setattr(owner, name, own)
    return told | {"other": whole - sum(told.values())}


def clocked(call: Callable, what: str, told: dict[str, float]) -> Callable:
    def timed(*args: object, **options: object) -> object:
        began = time.process_time()
        try:
            return call(*args, **options)
        finally:
            told[what] = told.get(what, 0.0) + time.process_time() - began

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
    same = {
        "Stable-Baselines3": stable_baselines(ENVS),
        "plain torch loop": rate(plain.update, LENGTH * ENVS),
        "rlvitals, same vector": ours(environments.Environments(synced(ENVS))),
        "rlvitals, CartPole's own vector": ours(environments.make(NAME, ENVS)),
    }
    table(f"{ENVS} environments", same, same["Stable-Baselines3"])
    peers = {f"Stable-Baselines3, DummyVecEnv of {n}": stable_baselines(n) for n in COUNTS}
    peers |= {
        f"Stable-Baselines3, SubprocVecEnv of {n}": stable_baselines(n, processes=True)
        for n in (8, 32)
    }
    own = {f"rlvitals, {n} environments": ours(environments.make(NAME, n)) for n in (1, *COUNTS)}
    table("each with its best", peers | own, max(peers.values()))
    spent_on = parts()
    whole = sum(spent_on.values())
    print(f"a whole training of 600,000 steps: {whole:.1f} CPU s")
    for what, seconds in spent_on.items():
        print(f"  {what:44}{seconds:8.2f} s{seconds / whole:8.2%}")


if __name__ == "__main__":
    main()
