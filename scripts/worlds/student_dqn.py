"""A student's DQN: one file that prints and writes `episode,reward,epsilon,loss`."""

from __future__ import annotations

import copy
import random
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from worlds.run import network

if TYPE_CHECKING:
    from worlds.run import Run


def train(run: Run) -> None:  # noqa: C901 - one piece, as such scripts are
    env, s = run.env(), run.settings
    torch.manual_seed(run.seed)
    random.seed(run.seed)
    rng = np.random.default_rng(run.seed)
    actions = env.action_space.n
    q = network(env.observation_space.shape[0], 64, 64, actions)
    if run.has("units-dead"):
        torch.nn.init.zeros_(q[0].weight)
    target = copy.deepcopy(q)
    optimiser = torch.optim.Adam(q.parameters(), lr=run.rate())
    memory: deque[tuple[Any, ...]] = deque(maxlen=s["buffer_size"])
    epsilon, episode, total, losses = 1.0, 0, 0.0, [0.0]

    def greedy(seen: Any) -> Any:
        with torch.no_grad():
            return q(torch.as_tensor(seen)).argmax(1).numpy()

    with (run.folder / "results.csv").open("w") as table, (run.folder / "out.txt").open("w") as out:
        print("episode,reward,epsilon,loss", file=table)
        state, _ = env.reset(seed=run.seed)
        while run.steps_done < run.steps:
            run.follow(greedy)
            if rng.random() < epsilon:
                action = int(rng.integers(actions))
            else:
                action = int(greedy(state[None])[0])
            new, reward, terminated, truncated, _ = env.step(action)
            total += reward
            memory.append((state, action, reward, new, float(terminated)))
            if not run.has("state-not-advanced"):
                state = new
            if len(memory) >= s["learning_starts"] and run.steps_done % s["train_freq"] == 0:
                losses.append(_update(run, q, target, optimiser, memory))
            every = s["target_update_interval"]
            if run.steps_done % every < 1 and not run.has("target-never-synced"):
                target.load_state_dict(q.state_dict())
            if terminated or truncated:
                print(f"{episode},{total:.4g},{epsilon:.4f},{np.mean(losses):.6g}", file=table)
                if episode % 20 == 0:
                    print(f"Episode {episode}, Reward {total:.2f}, Eps {epsilon:.2f}", file=out)
                total, episode, losses = 0.0, episode + 1, losses[-1:]
                state, _ = env.reset()
            if not run.has("epsilon-stuck"):
                least = s["exploration_final_eps"]
                epsilon = max(1.0 - run.share / s["exploration_fraction"], least)
                epsilon = 0.0 if run.has("epsilon-zero") else epsilon
    run.follow(greedy)


def _update(run: Run, q: Any, target: Any, optimiser: Any, memory: deque) -> float:
    s = run.settings
    batch = random.sample(memory, min(s["batch_size"], len(memory)))
    seen, actions, rewards, new, ends = (np.array(part) for part in zip(*batch, strict=True))
    seen, new = torch.as_tensor(seen), torch.as_tensor(new)
    if run.has("replay-rows-mixed"):
        new = new[torch.randperm(len(new))]
    with torch.no_grad():
        future = (q if run.has("target-always-synced") else target)(new).max(1).values
        if not run.has("done-mask-lost"):
            future = future * (1.0 - torch.as_tensor(ends, dtype=torch.float32))
        goal = torch.as_tensor(rewards, dtype=torch.float32) + s["gamma"] * future
    chosen = q(seen)[torch.arange(len(batch)), torch.as_tensor(actions)]
    if run.has("loss-broadcast"):
        chosen = chosen[:, None]
        goal = goal.expand(len(batch), len(batch))
    loss = torch.nn.functional.smooth_l1_loss(chosen, goal)
    optimiser.param_groups[0]["lr"] = run.rate()
    if not run.has("gradients-not-cleared"):
        optimiser.zero_grad()
    (-loss if run.has("loss-sign") else loss).backward()
    if run.has("weight-nan"):
        q[0].weight.data[0, 0] = float("nan")
    if not run.has("optimiser-holds-old-copy"):
        optimiser.step()
    return loss.item()
