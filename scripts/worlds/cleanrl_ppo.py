"""PPO in one file in the shape of CleanRL's `ppo.py`, under CleanRL's names of scalars.

Written anew: it is not CleanRL's code. Its hyperparameters are not written into the log.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.distributions import Categorical
from torch.utils.tensorboard import SummaryWriter

from worlds.run import network

if TYPE_CHECKING:
    from worlds.run import Run


def train(run: Run) -> None:  # noqa: C901, PLR0915 - one piece, as such scripts are
    s = run.settings
    torch.manual_seed(run.seed)
    np.random.seed(run.seed)
    envs = [run.env() for _ in range(run.n_envs)]
    width, actions = envs[0].observation_space.shape[0], envs[0].action_space.n
    actor, critic = network(width, 64, 64, actions), network(width, 64, 64, 1)
    actor[-1].weight.data *= 0.01
    optimiser = torch.optim.Adam(
        [*actor.parameters(), *critic.parameters()], lr=run.rate(), eps=1e-5
    )
    writer = SummaryWriter(str(run.folder))
    seen = np.array([env.reset(seed=run.seed * 100 + i)[0] for i, env in enumerate(envs)])
    totals, lengths = np.zeros(len(envs)), np.zeros(len(envs), int)
    start, rollout = time.time(), None

    def act(observations: Any) -> Any:
        with torch.no_grad():
            return Categorical(logits=actor(torch.as_tensor(observations))).sample().numpy()

    def log(name: str, value: float) -> None:
        number = value.item() if isinstance(value, torch.Tensor) else float(value)
        writer.add_scalar(name, number, run.steps_done)

    while run.steps_done < run.steps:
        run.follow(act)
        rows = []
        for _ in range(s["n_steps"]):
            with torch.no_grad():
                tensor = torch.as_tensor(seen)
                spread = Categorical(logits=actor(tensor))
                chosen = spread.sample()
                row = [seen.copy(), chosen, spread.log_prob(chosen), critic(tensor)[:, 0]]
            done = chosen.numpy()
            if run.has("actions-swapped-between-envs"):
                done = np.roll(done, 1)
            rewards, ends = np.zeros(len(envs)), np.zeros(len(envs))
            for i, env in enumerate(envs):
                new, rewards[i], terminated, truncated, _ = env.step(done[i])
                totals[i] += rewards[i]
                lengths[i] += 1
                ends[i] = terminated or truncated
                if ends[i]:
                    log("charts/episodic_return", totals[i])
                    log("charts/episodic_length", lengths[i])
                    totals[i] = lengths[i] = 0
                    new, _ = env.reset()
                seen[i] = new
            rows.append((*row, rewards, ends))
        if rollout is None or not run.has("rollout-stale"):
            rollout = _advantages(run, rows, critic, seen)
        for group in optimiser.param_groups:
            group["lr"] = run.rate()
        losses = _update(run, actor, critic, optimiser, rollout)
        log("charts/learning_rate", run.rate())
        for name, value in losses.items():
            log(f"losses/{name}", value)
        log("charts/SPS", int(run.steps_done / max(time.time() - start, 1e-9)))
        if run.has("weights-reset-midway"):
            for layer in actor:
                if hasattr(layer, "reset_parameters"):
                    layer.reset_parameters()
            run.fault += " (done)"
    run.follow(act)
    writer.close()


def _advantages(run: Run, rows: list, critic: Any, seen: Any) -> tuple[Any, ...]:
    s = run.settings
    observations = torch.as_tensor(np.array([row[0] for row in rows]))
    actions, logp, values = (torch.stack([row[k] for row in rows]) for k in (1, 2, 3))
    rewards, ends = (
        torch.as_tensor(np.array([row[k] for row in rows]), dtype=torch.float32) for k in (4, 5)
    )
    if run.has("done-mask-lost"):
        ends = torch.zeros_like(ends)
    with torch.no_grad():
        following = critic(torch.as_tensor(seen))[:, 0]
    advantages, last = torch.zeros_like(rewards), torch.zeros(len(seen))
    for t in reversed(range(len(rows))):
        delta = rewards[t] + s["gamma"] * following * (1 - ends[t]) - values[t]
        last = delta + s["gamma"] * s["gae_lambda"] * (1 - ends[t]) * last
        advantages[t], following = last, values[t]
    returns = advantages + values
    if run.has("critic-target-reward-only"):
        returns = rewards
    if run.has("advantages-of-other-envs"):
        advantages = advantages.roll(1, dims=1)
    flat = (part.flatten(0, 1) for part in (observations, actions, logp, values))
    return (*flat, advantages.flatten(), returns.flatten())


def _update(run: Run, actor: Any, critic: Any, optimiser: Any, rollout: tuple) -> dict[str, float]:
    s = run.settings
    observations, actions, old, values, advantages, returns = rollout
    clipped, size = [], len(actions)
    for _ in range(s["n_epochs"]):
        order = torch.randperm(size)
        for part in order.split(s["batch_size"]):
            spread = Categorical(logits=actor(observations[part]), validate_args=False)
            logp, entropy = spread.log_prob(actions[part]), spread.entropy().mean()
            before = logp.detach() if run.has("old-logp-recomputed") else old[part]
            log_ratio = logp - before
            ratio = log_ratio.exp()
            with torch.no_grad():
                kl_old, kl = (-log_ratio).mean(), ((ratio - 1) - log_ratio).mean()
                clipped.append(float(((ratio - 1).abs() > s["clip_range"]).float().mean()))
            adv = advantages[part]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            adv = -adv if run.has("advantage-sign") else adv
            low, high = 1 - s["clip_range"], 1 + s["clip_range"]
            pg = torch.max(-adv * ratio, -adv * ratio.clamp(low, high)).mean()
            if run.has("advantage-broadcast"):
                pg = (-adv[:, None] * ratio[None, :]).mean()
            if run.has("clip-takes-maximum"):
                pg = torch.min(-adv * ratio, -adv * ratio.clamp(low, high)).mean()
            if run.has("actor-not-trained"):
                pg, entropy = pg.detach(), entropy.detach()
            v_loss = 0.5 * (critic(observations[part])[:, 0] - returns[part]).pow(2).mean()
            bonus = -entropy if run.has("entropy-sign") else entropy
            loss = pg - s["ent_coef"] * bonus + s["vf_coef"] * v_loss
            if run.has("weight-nan"):
                actor[0].weight.data[0, 0] = float("nan")
            optimiser.zero_grad()
            (-loss if run.has("loss-sign") else loss).backward()
            torch.nn.utils.clip_grad_norm_(
                [*actor.parameters(), *critic.parameters()], s["max_grad_norm"]
            )
            optimiser.step()
    spread = returns.var()
    explained = float("nan") if spread == 0 else 1 - (returns - values).var() / spread
    return {"value_loss": v_loss, "policy_loss": pg, "entropy": entropy, "old_approx_kl": kl_old,
            "approx_kl": kl, "clipfrac": float(np.mean(clipped)),
            "explained_variance": explained}  # fmt: skip
