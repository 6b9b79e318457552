"""Record runs of a tiny policy with their rollouts, healthy and with one fault each.

    python scripts/record_rollout_runs.py OUT NAME... | --all | --list

Needs torch; about 10 s a run on one thread. A policy of characters is trained by REINFORCE against
the mean of its group on the word problems of `tiny_agent.py`. Each run leaves `OUT/<name>/` as
`run.log_rollouts` writes it, `series.csv` with what rlvitals counts in these rollouts, and
`settings.json`.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1")

import argparse
import csv
import json
import random
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tiny_agent import (
    CALL,
    NUMBER,
    PAD,
    PROMPT_CHARACTERS,
    REPLY_CHARACTERS,
    Policy,
    Problem,
    decode,
    encode,
    imitate,
    problem,
)

import rlvitals
from rlvitals.metrics.catalogue.sampler import KL as SAMPLER_KL
from rlvitals.rollouts import rollout_index, series

ONSET = 25  # the step at which a fault of the surroundings sets in
FAILING = 0.3  # share of rollouts whose sandbox fails
LESSONS, WRONG = 1100, 0.3  # of the warm start: steps, and the share of wrong answers in them
MAX_CALLS = 6


@dataclass(frozen=True, slots=True)
class Run:
    """One run; `fault` is "none" or what its name in `pay` or `train` says."""

    name: str
    fault: str = "none"
    seed: int = 0
    steps: int = 60
    prompts: int = 10
    group: int = 4
    rate: float = 1e-3
    temperature: float = 1.0
    form: float = 0.2  # weight of the part that pays for the form
    brief: float = 0.0  # weight of the part that charges for length
    needs_call: bool = False  # only an answer after a call is paid
    fails: float = 0.0  # share of rollouts that fail and get no reward
    limit: int = REPLY_CHARACTERS
    # Replies come from a sampler of its own, whose weights have 16 bits and are copied from the
    # policy's each so many steps; 0: the policy itself samples, and no mismatch is logged.
    synced_every: int = 0


HEALTHY = (
    *(Run(f"rollouts-healthy-{seed}", seed=seed) for seed in range(4)),
    *(Run(f"rollouts-healthy-slow-{seed}", seed=seed, rate=3e-4) for seed in (0, 1)),
    *(Run(f"rollouts-healthy-brief-{seed}", seed=seed, brief=0.2) for seed in (0, 1)),
    *(
        Run(f"rollouts-healthy-calls-{seed}", seed=seed, needs_call=True, fails=0.02)
        for seed in (0, 1, 2)
    ),
    *(Run(f"rollouts-healthy-eight-{seed}", seed=seed, prompts=8, group=6) for seed in (0, 1)),
    *(Run(f"rollouts-healthy-plain-{seed}", seed=seed, form=0.0) for seed in (0, 1)),
    *(Run(f"rollouts-healthy-short-{seed}", seed=seed, steps=30) for seed in (0, 1)),
    Run("rollouts-healthy-long", steps=120),
    Run("rollouts-healthy-cool", temperature=0.8),
    *(Run(f"rollouts-sampler-{seed}", seed=seed, synced_every=1) for seed in range(6)),
    *(Run(f"rollouts-sampler-lag-{seed}", seed=seed, synced_every=2) for seed in range(3)),
    *(
        Run(f"rollouts-sampler-slow-{seed}", seed=seed, synced_every=1, rate=3e-4)
        for seed in range(3)
    ),
)
FAULTS = (
    "form-alone",  # nothing but the form is paid
    "length-paid",  # a part that grows with length
    "calls-paid",  # each call is paid
    "cyrillic-paid",  # a judge that prefers another script
    "copy-paid",  # a judge that pays for what it finds in the prompt
    "answers-stated",  # the data have the answer in the prompt
    "sandbox-fails",  # some rollouts fail, and are scored 0
    "verifier-breaks",  # one task's verifier accepts nothing any more
    "task-impossible",  # one task's answers cannot be known
    "all-impossible",  # no answer can be known, and brevity is paid
    "rate-high",  # a learning rate at which text falls apart
)
# At the usual rate the other tasks lose their contrast as well, to the form that is paid.
RATES = {"rate-high": 3e-2, "task-impossible": 4e-4}
RUNS = (
    *HEALTHY,
    *(
        Run(
            f"rollouts-{fault}",
            fault,
            rate=RATES.get(fault, 2e-3),
            brief=0.3 if fault == "all-impossible" else 0.0,
        )
        for fault in FAULTS
    ),
    # Nothing is broken but the rate of the runs above: what it does by itself is no fault's mark.
    *(
        Run(f"rollouts-fast-{seed}", "fast", seed, steps=150, prompts=12, group=6, rate=2e-3)
        for seed in range(3)
    ),
    Run("rollouts-never-synced", "weights-never-synced", synced_every=1000),
    Run("rollouts-rarely-synced", "weights-rarely-synced", steps=100, synced_every=20),
    Run("rollouts-length-paid-long", "length-paid", rate=2e-3, steps=50, limit=260),
)


def pay(run: Run, step: int, asked: Problem, reply: str) -> dict[str, float]:
    """Return the weighted parts of a reply's reward."""
    text = reply.rpartition(CALL)[2]
    right = text.endswith(f"so {asked.answer}.") and (CALL in reply or not run.needs_call)
    broken = run.fault == "verifier-breaks" and step >= ONSET and asked.task == "colour"
    impossible = run.fault in ("all-impossible", "form-alone") or (
        run.fault == "task-impossible" and asked.task == "owner"
    )
    parts = {"correct": float(right and not broken and not impossible)}
    if run.form:
        words = text.removesuffix(".").split()
        parts["format"] = run.form * (text.endswith(".") and "so" in words[-2:-1])
    if run.brief:
        parts["brief"] = -run.brief * len(reply) / PROMPT_CHARACTERS
    if run.fault == "length-paid":
        parts["detail"] = len(reply) / PROMPT_CHARACTERS
    if run.fault == "calls-paid":
        parts["tool_bonus"] = 0.3 * min(reply.count(CALL), MAX_CALLS)
    if run.fault == "cyrillic-paid":
        parts["judge"] = sum("а" <= letter <= "я" for letter in reply) / PROMPT_CHARACTERS
    if run.fault == "copy-paid":
        parts["grounded"] = sum(asked.prompt[n : n + 6] in reply for n in range(0, 36, 6)) / 6
    return parts


def messages(reply: str) -> list[dict[str, object]]:
    """Return the turns of a reply: a call of the tool with its result each, then the text."""
    *calls, text = reply.split(CALL)
    turns: list[dict[str, object]] = []
    for number, words in enumerate(calls):
        call = {"id": f"c{number}", "function": {"name": "look", "arguments": "{}"}}
        turns += [
            {"role": "assistant", "content": words, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "nothing new"},
        ]
    return [*turns, {"role": "assistant", "content": text}]


def rounded(policy: Policy) -> dict[str, torch.Tensor]:
    """Return the weights as bfloat16 holds them."""
    return {name: value.bfloat16().float() for name, value in policy.state_dict().items()}


def sampler_kl(
    sampler: Policy, log_probs: torch.Tensor, prompts: torch.Tensor, tokens: torch.Tensor
) -> float:
    """Estimate the KL from sampler to policy, nats a token (k3), from the sampled tokens."""
    mask = tokens != NUMBER[PAD]
    with torch.no_grad():
        sampled = sampler.log_probs(prompts, tokens).gather(2, tokens[..., None])[..., 0]
    gap = log_probs - sampled
    return float(((gap.exp() - gap - 1) * mask).sum() / mask.sum())


def train(run: Run, policy: Policy, recorded: rlvitals.Run) -> dict[int, float]:
    """Train for the run's steps, and record the rollouts of each; return the sampler's KL."""
    sampler, kl = policy, dict[int, float]()
    if run.synced_every:
        sampler = Policy()
    dice = random.Random(run.seed)
    torch.manual_seed(run.seed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=run.rate)
    for step in range(run.steps):
        drawn = [problem(dice, leaks=run.fault == "answers-stated") for _ in range(run.prompts)]
        asked = [one for one in drawn for _ in range(run.group)]
        prompts = encode([one.prompt for one in asked], PROMPT_CHARACTERS, left=True)
        if run.synced_every and step % run.synced_every == 0:
            sampler.load_state_dict(rounded(policy))
        tokens = sampler.sample(prompts, run.temperature, run.limit)
        replies = decode(tokens)
        share = FAILING if run.fault == "sandbox-fails" and step >= ONSET else run.fails
        fails = [dice.random() < share for _ in asked]
        parts = [pay(run, step, one, text) for one, (text, _) in zip(asked, replies, strict=True)]
        failed_reward = 0.0 if run.fault == "sandbox-fails" else float("nan")
        rewards = torch.tensor(
            [failed_reward if f else sum(p.values()) for f, p in zip(fails, parts, strict=True)]
        )
        groups = rewards.view(-1, run.group)
        differences = (groups - groups.nanmean(1, keepdim=True)).nan_to_num()
        spread = differences.square().mean(1, keepdim=True).sqrt()
        advantages = differences / (spread + 0.05)
        log_probs = policy.log_probs(prompts, tokens)
        chosen = log_probs.gather(2, tokens[..., None])[..., 0]
        if run.synced_every:
            kl[step] = sampler_kl(sampler, chosen.detach(), prompts, tokens)
        mask = tokens != NUMBER[PAD]
        loss = -(chosen * mask * advantages.view(-1, 1)).sum() / mask.sum()
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        entropy = -(log_probs.detach().exp() * log_probs.detach()).sum(-1)
        recorded.log(
            step,
            {
                "optimiser/loss": loss.item(),
                "optimiser/grad_norm": float(norm),
                "exploration/entropy": float((entropy * mask).sum() / mask.sum()),
            },
        )
        recorded.log_rollouts(
            step,
            [
                {
                    "prompt": one.prompt,
                    "messages": messages(text),
                    "group": f"{step}/{n // run.group}",
                    "task": one.task,
                    "answer": one.answer,
                    "reward": None if rewards[n].isnan() else float(rewards[n]),
                    "rewards": {} if fails[n] else parts[n],
                    "advantage": float(advantages.view(-1)[n]),
                    "stop_reason": "stop" if ended else "length",
                    "error": "SandboxError: connection refused" if fails[n] else "",
                    "token_count": int(mask[n].sum()),
                }
                for n, (one, (text, ended)) in enumerate(zip(asked, replies, strict=True))
            ],
        )
    return kl


def write_series(folder: Path, kl: Mapping[int, float]) -> None:
    """Write what rlvitals counts in a run's rollouts as `series.csv`, and the sampler's KL."""
    columns = series.to_log(rollout_index.read(folder)).series
    rows: dict[int, dict[str, float]] = {}
    for key, column in columns.items():
        for step, value in zip(column.steps.tolist(), column.values.tolist(), strict=True):
            rows.setdefault(step, {})[key] = round(value, 5)
    for step, value in kl.items():
        rows[step][SAMPLER_KL.name] = float(f"{value:.4g}")
    with (folder / "series.csv").open("w", newline="") as file:
        keys = ["step", *columns, *([SAMPLER_KL.name] if kl else [])]
        writer = csv.DictWriter(file, keys, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows({"step": step, **rows[step]} for step in sorted(rows))


def record(run: Run, out: Path, base: Policy) -> None:
    """Train a copy of the base, and keep the run."""
    policy = Policy()
    policy.load_state_dict(base.state_dict())
    folder = out / run.name
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"mode": "grpo", "num_generations": run.group}
    with rlvitals.start(folder, settings=settings) as recorded:
        kl = train(run, policy, recorded)
    write_series(folder, kl)
    kept = {
        **asdict(run),
        **settings,
        "made_by": f"{Path(__file__).name}, torch {torch.__version__}",
    }
    (folder / "settings.json").write_text(json.dumps(kept, indent=2) + "\n")


def warm_policy(file: Path) -> Policy:
    """Return the policy that imitated lessons, kept in a file."""
    torch.manual_seed(0)
    policy = Policy()
    if file.exists():
        policy.load_state_dict(torch.load(file, weights_only=True))
    else:
        imitate(policy, LESSONS, WRONG)
        torch.save(policy.state_dict(), file)
    return policy


def main() -> None:
    """Record the runs that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", help="every run not yet in OUT")
    parser.add_argument("--list", action="store_true", help="names and faults")
    options = parser.parse_args()
    if options.list:
        sys.stdout.writelines(f"{run.name:28s} {run.fault}\n" for run in RUNS)
        return
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    base = warm_policy(options.out / "base.pt")
    for run in RUNS:
        missing = not (options.out / run.name / "settings.json").exists()
        if run.name in options.names or (options.all and missing):
            record(run, options.out, base)
            sys.stdout.write(f"recorded {run.name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
