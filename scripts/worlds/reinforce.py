"""REINFORCE with a running baseline, which writes JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from worlds.run import network

if TYPE_CHECKING:
    from worlds.run import Run


def train(run: Run) -> None:
    env = run.env()
    torch.manual_seed(run.seed)
    policy = network(env.observation_space.shape[0], 32, env.action_space.n)
    optimiser = torch.optim.Adam(policy.parameters(), lr=run.rate())

    def act(seen: Any) -> Any:
        with torch.no_grad():
            logits = policy(torch.as_tensor(seen))
        return torch.distributions.Categorical(logits=logits).sample().numpy()

    with (run.folder / "metrics.jsonl").open("w") as log:
        iteration, first = 0, True
        batch: list[tuple[Any, int, float]] = []
        while run.steps_done < run.steps:
            run.follow(act)
            if not (run.has("rollout-stale") and batch):
                batch, totals, lengths = _collect(run, env, act, first=first)
                first = False
            else:
                run.steps_done += len(batch)
            row = _update(run, policy, optimiser, batch)
            if run.has("weights-reset-each-time"):
                for layer in policy:
                    if hasattr(layer, "reset_parameters"):
                        layer.reset_parameters()
            iteration += 1
            row = {"iteration": iteration, "total_steps": run.steps_done,
                   "mean_return": round(float(np.mean(totals)), 4),
                   "mean_length": float(np.mean(lengths)), **row}  # fmt: skip
            print(json.dumps(row), file=log)
    run.follow(act)


def _collect(run: Run, env: Any, act: Any, *, first: bool) -> tuple[list, list, list]:
    batch, totals, lengths = [], [], []
    future = 0.0
    while len(batch) < run.settings["n_steps"]:
        state, _ = env.reset(seed=run.seed if first else None)
        first = False
        seen, actions, rewards, over = [], [], [], False
        while not over:
            action = int(act(state[None])[0])
            seen.append(state)
            state, reward, terminated, truncated, _ = env.step(action)
            actions.append(action)
            rewards.append(reward)
            over = terminated or truncated
        if not run.has("returns-run-on"):
            future = 0.0
        gains = []
        for reward in reversed(rewards):
            future = reward + run.settings["gamma"] * future
            gains.append(future)
        if not run.has("returns-reversed"):
            gains.reverse()
        batch += list(zip(seen, actions, gains, strict=True))
        totals.append(sum(rewards))
        lengths.append(len(rewards))
    return batch, totals, lengths


def _update(run: Run, policy: Any, optimiser: Any, batch: list) -> dict[str, float]:
    s = run.settings
    seen, actions, gains = (np.array(part) for part in zip(*batch, strict=True))
    if run.has("actions-shuffled"):
        run.noise.shuffle(actions)
    gain = torch.as_tensor(gains, dtype=torch.float32)
    advantage = (gain - gain.mean()) / (gain.std() + 1e-8)
    if run.has("advantage-sign"):
        advantage = -advantage
    logits = policy(torch.as_tensor(seen))
    if run.has("softmax-over-batch"):
        logp_all = logits.log_softmax(0)
        entropy = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        logp = logp_all[torch.arange(len(batch)), torch.as_tensor(actions)]
    else:
        spread = torch.distributions.Categorical(logits=logits, validate_args=False)
        logp, entropy = spread.log_prob(torch.as_tensor(actions)), spread.entropy().mean()
    loss = -(logp * advantage).mean()
    if run.has("logp-detached"):
        loss = -(logp.detach() * advantage).mean() + 0.0 * logits.sum()
    if run.has("weight-nan"):
        policy[0].weight.data[0, 0] = float("nan")
    optimiser.param_groups[0]["lr"] = run.rate()
    optimiser.zero_grad()
    (loss - s["ent_coef"] * entropy).backward()
    norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), s["max_grad_norm"])
    optimiser.step()
    return {"loss": loss.item(), "entropy": entropy.item(), "grad_norm": norm.item()}
