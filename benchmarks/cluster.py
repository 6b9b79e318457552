"""Measure the serving cluster's decisions per second of CPU, compared with Gymnasium's CartPole.

Each batch of clusters is stepped by the least-outstanding-requests scheduler through Gymnasium's
vector interface, observations, rewards and their parts included. CartPole, which Gymnasium steps
with array operations, is there for scale: its state is four numbers.
"""

import time
from collections.abc import Callable

import gymnasium
import numpy as np

import rlvitals.trainers.ppo.cluster as ours

BATCHES = (1, 16, 64, 256)
SECONDS = 1.5  # of CPU, each measurement
ROUNDS = 3  # the best is told: others run on the machine too


def speed(envs: gymnasium.vector.VectorEnv, choose: Callable[[], np.ndarray]) -> float:
    """Steps of single environments per second of CPU."""
    envs.reset(seed=0)
    best = 0.0
    for _ in range(100):
        envs.step(choose())
    for _ in range(ROUNDS):
        steps, start_time = 0, time.process_time()
        while (spent := time.process_time() - start_time) < SECONDS / ROUNDS:
            for _ in range(20):
                envs.step(choose())
            steps += 20
        best = max(best, steps * envs.num_envs / spent)
    return best


def cluster(batch: int, backend: str) -> float:
    envs = gymnasium.make_vec(ours.ID, num_envs=batch, backend=backend)
    lor = ours.baselines()["lor"]
    return speed(envs, lambda: lor(np.empty(0, np.float32), envs.cluster))


def cart_pole(batch: int) -> float:
    envs = gymnasium.make_vec("CartPole-v1", num_envs=batch)
    actions = np.arange(batch) % 2
    return speed(envs, lambda: actions)


def main() -> None:
    print("cluster: decisions per second of CPU")
    print(f"{'clusters':>9}{'numpy':>10}{'numba':>10}{'ratio':>7}{'CartPole':>11}")
    for batch in BATCHES:
        arrays, loops = cluster(batch, "numpy"), cluster(batch, "numba")
        row = f"{batch:>9}{arrays:>10,.0f}{loops:>10,.0f}{loops / arrays:>7.1f}"
        print(f"{row}{cart_pole(batch):>11,.0f}")


if __name__ == "__main__":
    main()
