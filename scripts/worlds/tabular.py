"""Tabular Q-learning that prints, as in a first exercise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from worlds.run import Run


def train(run: Run) -> None:
    env, s = run.env(), run.settings
    rng = np.random.default_rng(run.seed)
    table = np.zeros((env.observation_space.n, env.action_space.n))
    epsilon, episode, recent = 1.0, 0, []
    with (run.folder / "output.log").open("w") as log:
        print(f"Training Q-learning on {env.observation_space.n} states", file=log)
        state, _ = env.reset(seed=run.seed)
        total = 0.0
        while run.steps_done < run.steps:
            run.follow(lambda seen: table[seen].argmax(1))
            random = rng.random() < epsilon
            action = int(rng.integers(table.shape[1]) if random else table[state].argmax())
            new, reward, terminated, truncated, _ = env.step(action)
            total += reward
            future = 0.0 if terminated and not run.has("done-mask-lost") else table[new].max()
            if run.has("bootstraps-with-minimum"):
                future = table[new].min()
            error = reward + s["gamma"] * future - table[state, action]
            error = -error if run.has("loss-sign") else error
            row = new if run.has("wrong-state-updated") else state
            table[row, action] += run.rate() * error
            if run.has("table-cleared") and run.steps_done % 500 == 0:
                table[:] = 0.0
            if not run.has("state-not-advanced"):
                state = new
            if not (terminated or truncated):
                continue
            recent.append(total)
            total, episode = 0.0, episode + 1
            state, _ = env.reset()
            if not run.has("epsilon-stuck"):
                least = 0.0 if run.has("epsilon-zero") else s["exploration_final_eps"]
                decay = run.share / s["exploration_fraction"]
                epsilon = max(1.0 - decay, least) if least else 0.0
            if episode % s["log_interval"] == 0:
                print(
                    f"Episode {episode:5d} | avg reward: {np.mean(recent):9.3f} "
                    f"| epsilon: {epsilon:.3f}",
                    file=log,
                )
                recent = []
    run.follow(lambda seen: table[seen].argmax(1))
