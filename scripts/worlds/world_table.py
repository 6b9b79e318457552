"""The worlds of `faults/tier-2` as data: trainer x environment x settings, and the runs of each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from worlds.fault_table import FAULTS, Fault, applies


@dataclass(frozen=True, slots=True)
class World:
    """Trainer x environment x settings; `traits`: see `Fault.only`, and saturated, regime."""

    name: str
    trainer: str
    env_id: str
    steps: int
    settings: Mapping[str, Any]
    n_envs: int = 1
    traits: frozenset[str] = field(default_factory=frozenset)


def _traits(words: str) -> frozenset[str]:
    return frozenset(words.split())


PPO = {"n_steps": 128, "batch_size": 128, "n_epochs": 4, "learning_rate": 1e-3, "gamma": 0.98,
       "gae_lambda": 0.95, "ent_coef": 0.0, "vf_coef": 0.5, "clip_range": 0.2,
       "max_grad_norm": 0.5}  # fmt: skip
A2C = {"n_steps": 16, "learning_rate": 2e-3, "gamma": 0.95, "gae_lambda": 1.0, "ent_coef": 0.0,
       "vf_coef": 0.5, "max_grad_norm": 0.5}  # fmt: skip
DQN = {"learning_rate": 1e-3, "batch_size": 64, "buffer_size": 10_000, "learning_starts": 400,
       "gamma": 0.97, "train_freq": 4, "target_update_interval": 250,
       "exploration_fraction": 0.4, "exploration_final_eps": 0.05}  # fmt: skip
SAC = {"learning_rate": 2e-3, "batch_size": 64, "buffer_size": 20_000, "learning_starts": 300,
       "gamma": 0.95, "train_freq": 4, "policy_kwargs": {"net_arch": [64, 64]}}  # fmt: skip
TABLE = {"learning_rate": 0.3, "gamma": 0.95, "exploration_fraction": 0.7,
         "exploration_final_eps": 0.05, "log_interval": 20}  # fmt: skip
REINFORCE = {"learning_rate": 1e-2, "gamma": 0.97, "n_steps": 500, "ent_coef": 0.0,
             "max_grad_norm": 10.0}  # fmt: skip


def _world(name: str, env_id: str, steps: int, n_envs: int = 1, traits: str = "",
           **settings: Any) -> World:  # fmt: skip
    trainer = name.split("/", maxsplit=1)[0]
    base = {"sb3-ppo": PPO, "our-ppo": PPO, "cleanrl-ppo": PPO,
            "skrl-ppo": PPO, "sb3-a2c": A2C, "sb3-dqn": DQN,
            "student-dqn": DQN, "sb3-sac": SAC, "tabular": TABLE,
            "reinforce": REINFORCE}[trainer]  # fmt: skip
    algorithm = {"tabular": "Q-learning"}.get(trainer, trainer.split("-")[-1].upper())
    full = {"algorithm": algorithm, **base, **settings}
    traits += " several" if n_envs > 1 else ""
    return World(name, trainer, env_id, steps, full, n_envs, _traits(traits))


WORLDS = (
    _world("sb3-ppo/cartpole", "CartPole-v1", 24_000, 4, "long", form="tensorboard"),
    _world("cleanrl-ppo/queues", "Queues", 24_000, 4, "long", ent_coef=0.01),
    _world("student-dqn/inventory", "Inventory", 8_000, 1, "long"),
    _world("tabular/taxi", "tabular/Taxi-v4", 60_000, 1, "long", log_interval=50),
    _world("reinforce/cues", "Cues", 16_000, 1, "long"),
    _world("sb3-dqn/maze", "Maze", 10_000, 1, "long", log_interval=10),
    _world("sb3-sac/reach", "Reach", 6_000, 1, "long continuous"),
    _world("our-ppo/queues", "Queues", 24_000, 4, "long"),
    _world("sb3-a2c/bandit", "Bandit", 12_000, 8, "", log_interval=5),
    _world("cleanrl-ppo/duel", "Duel", 24_000, 4, "long regime"),
    _world("student-dqn/cartpole", "CartPole-v1", 12_000, 1, "long", train_freq=2),
    _world("tabular/cliff", "tabular/CliffWalking-v1", 16_000, 1, "long", log_interval=10),
    _world("reinforce/market", "Market", 24_000, 1, "long", n_steps=1000),
    _world("sb3-ppo/lessons", "Lessons", 24_000, 4, "long regime"),
    _world("sb3-ppo/minigrid", "MiniGrid-Empty-5x5-v0", 20_000, 4, "long", ent_coef=0.01),
    _world("cleanrl-ppo/wide-maze", "WideMaze", 32_000, 8, "long", ent_coef=0.01),
    _world("sb3-a2c/hold", "Hold", 12_000, 4, "long saturated", log_interval=10),
    _world("sb3-dqn/queues", "Queues", 10_000, 1, "long", log_interval=2),
    _world("sb3-sac/thermostat", "Thermostat", 5_000, 1, "long continuous"),
    _world("our-ppo/cartpole", "CartPole-v1", 24_000, 4, "long"),
    _world("sb3-ppo/reach", "Reach", 20_000, 4, "long continuous", gamma=0.9, evaluates=True),
    _world("student-dqn/blackjack", "Blackjack-v1", 8_000, 1, "", gamma=1.0),
    _world("tabular/lake", "tabular/FrozenLake-v1", 30_000, 1, "long", log_interval=100),
    _world("reinforce/cartpole", "CartPole-v1", 24_000, 1, "long"),
    _world("cleanrl-ppo/balance", "Balance", 30_000, 4, "long"),
    _world("sb3-ppo/breakout", "MinAtar/breakout", 24_000, 8, "long", ent_coef=0.01),
    _world("sb3-a2c/inventory", "Inventory", 16_000, 8, "long", log_interval=10),
    _world("sb3-dqn/lake", "FrozenLake-v1", 8_000, 1, "long", log_interval=20,
           form="tensorboard"),
    _world("our-ppo/reach", "Reach", 20_000, 4, "long continuous", gamma=0.9),
    _world("student-dqn/lake", "FrozenLake-v1", 8_000, 1, "long"),
    _world("reinforce/bandit", "Bandit", 16_000, 1, "", n_steps=200),
    _world("sb3-ppo/cliff", "CliffWalking-v1", 20_000, 4, "long", gamma=0.95, form="log"),
    _world("cleanrl-ppo/market", "Market", 24_000, 4, "long", gamma=0.5),
    _world("sb3-a2c/balance", "Balance", 24_000, 8, "long", log_interval=10,
           form="tensorboard"),
    _world("sb3-dqn/cartpole", "CartPole-v1", 12_000, 1, "long", log_interval=5,
           train_freq=2),
    _world("our-ppo/lander", "LunarLander-v3", 24_000, 8, "long", gamma=0.99),
    _world("student-dqn/duel", "Duel", 8_000, 1, "long regime"),
    _world("student-dqn/wide-maze", "WideMaze", 10_000, 1, "long"),
    _world("sb3-ppo/thermostat", "Thermostat", 20_000, 4, "long continuous", gamma=0.9,
           form="tensorboard"),
    _world("tabular/taxi-fast", "tabular/Taxi-v4", 40_000, 1, "long", learning_rate=0.9,
           log_interval=20, exploration_fraction=0.3),
)  # fmt: skip
LATER_WORLDS = (  # faults are dealt to these by themselves: they came when others had theirs
    _world("skrl-ppo/cues", "Cues", 16_000, 4, "long"),
    _world("skrl-ppo/balance", "Balance", 24_000, 4, "long"),
)
SECOND_WORLDS = (  # unseen until their runs were looked at, in a later round of work on the rules
    _world("sb3-ppo/market", "Market", 24_000, 4, "long", gamma=0.5),
    _world("sb3-ppo/queues", "Queues", 24_000, 4, "long", ent_coef=0.01),
    _world("sb3-a2c/cues", "Cues", 16_000, 8, "long", log_interval=10),
    _world("sb3-a2c/cartpole", "CartPole-v1", 24_000, 8, "long", log_interval=10, form="csv"),
    _world("sb3-dqn/bandit", "Bandit", 8_000, 1, "", log_interval=50),
    _world("sb3-dqn/inventory", "Inventory", 8_000, 1, "long", log_interval=2),
    _world("sb3-sac/pendulum", "Pendulum-v1", 8_000, 1, "long continuous", train_freq=2),
    _world("our-ppo/bandit", "Bandit", 16_000, 4, ""),
    _world("our-ppo/lessons", "Lessons", 24_000, 4, "long regime"),
    _world("cleanrl-ppo/cartpole", "CartPole-v1", 24_000, 4, "long"),
    _world("cleanrl-ppo/inventory", "Inventory", 24_000, 4, "long"),
    _world("student-dqn/queues", "Queues", 8_000, 1, "long"),
    _world("student-dqn/maze", "Maze", 8_000, 1, "long"),
    _world("tabular/slippery-cliff", "tabular/CliffWalkingSlippery-v1", 24_000, 1, "long",
           log_interval=10),
    _world("reinforce/queues", "Queues", 24_000, 1, "long", n_steps=960),
    _world("skrl-ppo/cartpole", "CartPole-v1", 24_000, 4, "long"),
)  # fmt: skip
THIRD_WORLDS = (  # recorded when the rules had been written by those above; dealt by themselves
    _world("sb3-ppo/landing", "Landing", 24_000, 4, "long", ent_coef=0.01),
    _world("sb3-ppo/auction", "Auction", 20_000, 4, "long continuous", gamma=0.5,
           form="tensorboard"),
    _world("sb3-a2c/chase", "Chase", 24_000, 8, "long", log_interval=10),
    _world("sb3-a2c/crossing", "Crossing", 24_000, 8, "long", log_interval=5, form="tensorboard"),
    _world("sb3-dqn/landing", "Landing", 10_000, 1, "long", log_interval=5),
    _world("sb3-dqn/harvest", "Harvest", 10_000, 1, "long", log_interval=2, form="tensorboard"),
    _world("sb3-sac/auction", "Auction", 5_000, 1, "long continuous", gamma=0.5),
    _world("our-ppo/harvest", "Harvest", 24_000, 4, "long"),
    _world("our-ppo/chase", "Chase", 24_000, 4, "long"),
    _world("cleanrl-ppo/landing", "Landing", 24_000, 4, "long", ent_coef=0.01),
    _world("cleanrl-ppo/crossing", "Crossing", 24_000, 4, "long"),
    _world("student-dqn/chase", "Chase", 10_000, 1, "long"),
    _world("student-dqn/harvest", "Harvest", 8_000, 1, "long"),
    _world("tabular/big-lake", "tabular/FrozenLake8x8-v1", 60_000, 1, "long", log_interval=50,
           gamma=0.99),
    _world("reinforce/chase", "Chase", 24_000, 1, "long"),
    _world("reinforce/landing", "Landing", 24_000, 1, "long", n_steps=800),
    _world("skrl-ppo/harvest", "Harvest", 24_000, 4, "long"),
)  # fmt: skip
GROUPS = (WORLDS, LATER_WORLDS, SECOND_WORLDS, THIRD_WORLDS)
# Of the third set every other world was opened, by its place alone.
OPENED_WORLDS = (*SECOND_WORLDS, *THIRD_WORLDS[::2])
UNSEEN_WORLDS = THIRD_WORLDS[1::2]
HEALTHY = (0, 3, 7, 10)  # places of the healthy runs among the runs of a world
RUNS = 12  # of a world


@dataclass(frozen=True, slots=True)
class Job:
    """A run to record."""

    world: World
    number: int
    seed: int
    fault: Fault | None

    @property
    def name(self) -> str:
        """`<trainer>/<environment>/<number>`: the name does not say the fault."""
        return f"{self.world.name}/{self.number:02d}"


def plan() -> list[Job]:
    """Give all runs, each world's first before any world's second."""
    jobs = [job for worlds in GROUPS for job in _deal(worlds)]
    return sorted(jobs, key=lambda job: job.number)


def plan_healthy(seeds: Sequence[int]) -> list[Job]:
    """Give a healthy run of each world for each seed, named by it; all worlds of a seed first."""
    worlds = (*WORLDS, *LATER_WORLDS, *OPENED_WORLDS)
    return [Job(world, seed, seed, None) for seed in seeds for world in worlds]


def _deal(worlds: tuple[World, ...]) -> list[Job]:
    """Deal faults to worlds so that each is used about equally often.

    A run gets the least used of the faults that its world can have, ties broken by a hash.
    """
    used: Counter[str] = Counter()
    dealt: dict[str, set[str]] = {world.name: set() for world in worlds}
    jobs = []
    for number in range(RUNS):
        for world in worlds:
            if number in HEALTHY:
                jobs.append(Job(world, number, 20 + number, None))
                continue
            free = [
                fault for fault in FAULTS
                if applies(fault, world.trainer, world.traits)
                and fault.name not in dealt[world.name]
                and not (fault.name == "evaluated-elsewhere"
                         and not world.settings.get("evaluates"))
            ]  # fmt: skip
            if not free:
                continue
            fault = min(free, key=lambda f, w=world: (used[f.name], _hash(w.name + f.name)))
            used[fault.name] += 1
            dealt[world.name].add(fault.name)
            jobs.append(Job(world, number, 20 + number, fault))
    return jobs


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
