"""RLHF by proximal policy optimisation (Ziegler et al. 2019, Stiennon et al. 2020), on one page.

    collect_rollout  sample a response to each prompt, score it, compute advantages
    reward           the KL penalty of each token, and the score at the last one
    update           `num_ppo_epochs` passes over the responses in minibatches, clipped
    iterate          the three in turn, and the KL coefficient; returns the update

Tensors are [b, t]: responses by tokens, 0 where a response has ended. With several processes each
has its own responses, and every mean is one over those of all.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

import rlvitals
from rlvitals.trainers.language import models
from rlvitals.trainers.language.rlhf import masked, prompts, sampling, statistics
from rlvitals.trainers.language.rlhf.batch import Batch, Pass, Responses
from rlvitals.trainers.language.rlhf.config import RLHFConfig
from rlvitals.trainers.language.rlhf.controllers import Controller
from rlvitals.trainers.language.rlhf.policy import Policy, Reference
from rlvitals.trainers.language.rlhf.scoring import Scorer, Scores
from rlvitals.trainers.language.rlhf.statistics import Rates


@dataclass(slots=True)
class Counters:
    """Counters of a training."""

    updates: int = 0
    episodes: int = 0  # responses
    steps: int = 0  # of the optimizer


@dataclass(frozen=True, slots=True)
class Update:
    """The metrics of an update over all processes, and the texts of this process."""

    numbers: Mapping[str, float]
    distributions: Mapping[str, Tensor]
    table: Mapping[str, Sequence[object]]  # prompts, completions and rewards of this process


@dataclass(slots=True)
class Texts:
    """Prompts, completions and scores of this process."""

    prompts: list[str]
    completions: list[str]
    scored: Scores


class Laps:
    """Durations of the stages of an update, in seconds."""

    def __init__(self) -> None:
        """Begin the first stage."""
        self.seconds: dict[str, float] = {}
        self._then = time.perf_counter()

    def __call__(self, stage: str) -> None:
        """End a stage, and begin the next."""
        stop = time.perf_counter()
        self.seconds[stage], self._then = stop - self._then, stop


class PPO:
    """A policy that learns from scores of what it writes; `iterate` is one update.

    `rows`: a data set whose rows have a `prompt`, and columns that the reward functions look at.
    """

    def __init__(  # noqa: PLR0913 - what takes part, each by its name
        self,
        policy: Policy,
        tokenizer: Any,
        rows: Any,
        score: Scorer,
        config: RLHFConfig,
        *,
        controller: Controller,
        accelerator: Accelerator,
    ) -> None:
        """Bring the parts together; the reference is the policy as it is now."""
        self.config, self.accelerator, self.tokenizer = config, accelerator, tokenizer
        self.rows, self.score, self.controller = rows, score, controller
        self.reference = Reference(policy)
        self.reference.to(accelerator.device)
        self.policy = policy.to(accelerator.device)
        self.model = accelerator.prepare(policy)  # the same, with the gradients of all processes
        self.learning = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        head = policy.value_head
        body = self.learning[: -len([*head.parameters()])]  # the head comes last
        groups = [{"params": body}, {"params": [head.weight]}, {"params": [head.bias]}]
        # Huang et al. 2023: RLHF with PPO is more stable with an epsilon of 1e-5 than with 1e-8.
        self.optimizer = torch.optim.Adam(groups, eps=1e-5)
        self.rng = np.random.default_rng(config.seed)  # the same on all processes
        self.order = prompts.Order(len(rows), np.random.default_rng((config.seed, 1)))
        self.counters, self.laps = Counters(), Laps()
        self.ends = models.ends(policy.lm, tokenizer)
        self.seed_streams()

    def state(self) -> rlvitals.State:
        """Return the state for a bit-identical resume, without the language model's weights."""
        return rlvitals.State(
            value_head=self.policy.value_head, optimizer=self.optimizer, order=self.order,
            rng=self.rng, controller=self.controller, at=self.counters,
        )  # fmt: skip

    def seed_streams(self) -> None:
        """Begin the stream that this process draws its responses from: each has its own."""
        key = (self.config.seed, 2, self.counters.updates, self.accelerator.process_index)
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1))

    @property
    def share(self) -> int:
        """The number of this process's responses in an update."""
        processes: int = self.accelerator.num_processes
        return self.config.batch_size // processes

    # -- collect ---------------------------------------------------------------------------------

    def collect_rollout(self) -> tuple[Responses, Batch, Texts]:
        """Draw and score a response to each of the next prompts; advantages follow from these."""
        self.laps = Laps()
        mine = self.order.take(self.config.batch_size)
        first = self.accelerator.process_index * self.share
        rows = self.rows.select(mine[first : first + self.share]).to_dict()
        queries, attention = prompts.tokens(self.tokenizer, rows["prompt"])
        device = self.accelerator.device
        with self.accelerator.autocast():
            drawn: Responses = sampling.sample(
                self.policy, queries.to(device), attention.to(device),
                length=self.config.response_length, temperature=self.config.temperature,
                ends=self.ends, padding=self.tokenizer.pad_token_id,
            )  # fmt: skip
        self.laps("generate")
        texts = self._score(drawn, rows)
        self.laps("compute_rewards")
        batch = self.reward(drawn, texts.scored.total.to(self.accelerator.device))
        self.laps("compute_advantages")
        return drawn, batch, texts

    def _score(self, drawn: Responses, rows: Mapping[str, Sequence[Any]]) -> Texts:
        lengths = drawn.mask.sum(1).int().tolist()
        responses = drawn.tokens[:, drawn.queries :].tolist()
        ids = [one[:length] for one, length in zip(responses, lengths, strict=True)]
        completions = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        questions = rows["prompt"]
        talks = questions and not isinstance(questions[0], str)
        answers = (
            [[{"role": "assistant", "content": one}] for one in completions]
            if talks
            else completions
        )
        columns = {name: column for name, column in rows.items() if name != "prompt"}
        scored = self.score(questions, answers, ids, columns)
        return Texts(prompts.texts(self.tokenizer, questions), completions, scored)

    # -- reward ----------------------------------------------------------------------------------

    def reward(self, drawn: Responses, raw_scores: Tensor) -> Batch:
        """Compute the rewards from KL penalty and score, and estimate the advantages."""
        config, mask = self.config, drawn.mask
        logprobs, values, reference = self._read(drawn)
        self.laps("forward_pass")
        scores = torch.where(drawn.finished, raw_scores, raw_scores - config.missing_eos_penalty)
        kl = masked.kl(logprobs, reference, config.kl_estimator) * mask
        rewards = -self.controller.value * kl
        last = mask.sum(1).long() - 1
        rewards[torch.arange(len(rewards)), last] += torch.nan_to_num(scores)
        learned = mask * torch.isfinite(scores)[:, None]
        if config.whiten_rewards:
            _, spread = self._moments(rewards, learned)
            rewards = masked.whiten(rewards, mask, torch.zeros_like(spread), spread)
        if not self.counters.steps:
            # Initialise all values with the mean return of the first responses, before any
            # step.
            responses = max(self._sum(learned[:, 0].sum()), 1.0)
            mean_return = self._sum((rewards * learned).sum()) / responses
            self.policy.value_head.bias.data.fill_(mean_return)
            values = mean_return * mask
        advantages = masked.estimate_advantages(rewards, values, mask, config.gamma, config.lam)
        return Batch(
            query_lengths=drawn.attention[:, : drawn.queries].sum(1), mask=mask,
            finished=drawn.finished.float(), raw_scores=raw_scores, scores=scores,
            logprobs=logprobs,
            reference=reference, kl=kl, values=values, returns=(advantages + values) * mask,
            advantages=masked.whiten(advantages, learned, *self._moments(advantages, learned)),
        )  # fmt: skip

    def _read(self, drawn: Responses) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities, values and reference log-probabilities before the update."""
        outputs: list[tuple[Tensor, Tensor, Tensor]] = []
        for index in self._split_rows(torch.arange(len(drawn.mask), device=drawn.mask.device)):
            rows, warm = drawn.rows(index), self.config.temperature
            with torch.no_grad(), self.accelerator.autocast():
                logprobs, _, values = self.policy(rows, warm)
                reference = self.reference.logprobs(self.policy, rows, warm)
            outputs.append((logprobs, values, reference))
        logprobs, values, reference = (torch.cat(column) for column in zip(*outputs, strict=True))
        return logprobs, values, reference

    # -- update -----------------------------------------------------------------------------------

    def update(self, drawn: Responses, batch: Batch) -> tuple[list[Pass], dict[str, float]]:
        """Update the policy on the responses; return each minibatch's pass, and metrics."""
        passes: list[Pass] = []
        norms: list[float] = []
        skipped, stopped = 0, False
        for rows in self._minibatches(len(batch.mask)):
            minibatch = batch.rows(rows)
            count = self._sum(minibatch.learned_mask.sum())
            if count == 0:  # nothing has a score
                skipped += 1
                continue
            output = self._backward(drawn.rows(rows), minibatch, rows, count)
            log_ratio = (output.logprobs - minibatch.logprobs) * minibatch.learned_mask
            ratio = self._sum((log_ratio.exp() * minibatch.learned_mask).sum()) / count
            # How far the policy moved: as `policy/approxkl_avg`, k2.
            approx_kl = 0.5 * self._sum((log_ratio**2).sum()) / count
            passes.append(output)
            # Stop at 1.5 times the target, as TRL before 0.12 and Spinning Up do.
            stopped = 0.0 < 1.5 * self.config.target_kl < approx_kl
            if stopped:
                break
            norm = self._step(skip=0.0 < self.config.ratio_threshold < ratio)
            skipped += norm is None
            norms += [] if norm is None else [norm]
        self.optimizer.zero_grad()
        went = {"skipped_minibatches": float(skipped), "stopped_early": float(stopped)}
        if norms or skipped:
            went["applied_share"] = len(norms) / (len(norms) + skipped)
        return passes, went | ({"grad_norm": float(np.mean(norms))} if norms else {})

    def _minibatches(self, count: int) -> Iterator[Tensor]:
        """Go through all rows in a new order each pass."""
        for _ in range(self.config.num_ppo_epochs):
            order = torch.from_numpy(self.rng.permutation(count)).to(self.accelerator.device)
            yield from order.chunk(self.config.num_mini_batches)

    def _split_rows(self, rows: Tensor) -> list[Tensor]:
        return list(rows.split(self.config.forward_batch_size or len(rows)))

    def _backward(self, drawn: Responses, batch: Batch, rows: Tensor, count: float) -> Pass:
        """Accumulate the gradient of a minibatch; return the policy's outputs on it."""
        passes: list[Pass] = []
        chunks = self._split_rows(torch.arange(len(rows), device=rows.device))
        for i, chunk in enumerate(chunks):
            defer_sync = (
                i < len(chunks) - 1
            )  # the processes' gradients are joined with the last part
            with self.accelerator.no_sync(self.model) if defer_sync else nullcontext():
                logprobs, entropy, values = self.model(drawn.rows(chunk), self.config.temperature)
                loss = self.loss(batch.rows(chunk), logprobs, values) / count
                # Processes' gradients are averaged, and `count` is over all of them.
                self.accelerator.backward(loss * self.accelerator.num_processes)
            passes.append(Pass(rows[chunk], logprobs.detach(), values.detach(), entropy))
        return Pass.concatenate(passes)

    def loss(self, batch: Batch, logprobs: Tensor, values: Tensor) -> Tensor:
        """Return the loss, summed over the tokens that are learned from."""
        config = self.config
        ratio = (logprobs - batch.logprobs).exp()
        plain, clipped = statistics.policy_losses(ratio, batch.advantages, config.cliprange)
        free, near = statistics.value_losses(values, batch, config.cliprange_value)
        value = 0.5 * torch.max(free, near)
        return ((torch.max(plain, clipped) + config.vf_coef * value) * batch.learned_mask).sum()

    def _step(self, *, skip: bool) -> float | None:
        """Step unless `skip` or the gradient is not finite; return the gradient's norm."""
        limit = self.config.max_grad_norm or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(self.learning, limit))
        skip = skip or not np.isfinite(norm)
        if not skip:
            config, width = self.config, self.policy.value_head.weight.numel()
            rates = (config.lr, config.value_lr / width, config.value_lr)
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * self.schedule
            self.optimizer.step()
            self.counters.steps += 1
        self.optimizer.zero_grad()
        return None if skip else norm

    @property
    def updates(self) -> int:
        """The number of updates of the training."""
        return max(-(-self.config.total_episodes // self.config.batch_size), 1)

    @property
    def schedule(self) -> float:
        """The share of the learning rates that the next step has."""
        linear = self.config.lr_schedule == "linear"
        return 1.0 - self.counters.updates / self.updates if linear else 1.0

    # -- iterate ---------------------------------------------------------------------------------

    def iterate(self) -> Update:
        """Collect responses, update the policy and the KL coefficient; return the update."""
        config = self.config
        drawn, batch, texts = self.collect_rollout()
        rates = Rates(
            config.lr * self.schedule, self.controller.value, config.cliprange,
            config.cliprange_value,
            config.vf_coef,
        )  # fmt: skip
        local_passes, went = self.update(drawn, batch)
        self.laps("optimize_step")
        full_batch, passes = self._gather(batch, local_passes)
        numbers = (
            statistics.numbers(full_batch, passes, rates)
            | went
            | self._reward_metrics(texts.scored)
        )
        histograms = statistics.distributions(full_batch, passes[-1] if passes else None)
        self.controller.update(numbers["objective/kl"], config.batch_size)
        self.counters.updates += 1
        self.counters.episodes += config.batch_size
        self.laps("calc_stats")
        seconds = self.laps.seconds | {"total": sum(self.laps.seconds.values())}
        numbers |= {f"time/ppo/{stage}": value for stage, value in seconds.items()}
        return Update(
            numbers | {"episode": float(self.counters.episodes)},
            histograms,
            {
                "prompt": texts.prompts,
                "completion": texts.completions,
                "reward": [
                    score if score == score else None  # noqa: PLR0124
                    for score in texts.scored.total.tolist()
                ],
                "ended": drawn.finished.tolist(),
                **texts.scored.parts,
            },
        )

    # -- of all processes ------------------------------------------------------------------------

    def _sum(self, value: Tensor) -> float:
        return float(self.accelerator.reduce(value.detach(), "sum"))

    def _reward_metrics(self, scored: Scores) -> dict[str, float]:
        """Return of each reward function its mean, and the share that it could not judge."""
        metrics: dict[str, float] = {}
        for name, scores in scored.parts.items():
            valid = torch.tensor([score for score in scores if score is not None])
            pair = torch.tensor([float(valid.sum()), float(len(valid))])
            total, count = self.accelerator.reduce(pair.to(self.accelerator.device), "sum").tolist()
            metrics[f"rewards/{name}/none_share"] = 1.0 - count / self.config.batch_size
            if count:
                metrics[f"rewards/{name}/mean"] = total / count
        return metrics

    def _moments(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance over the tokens of all processes."""
        if self.accelerator.num_processes == 1:
            return masked.mean(values, mask), masked.variance(values, mask)
        count = max(self._sum(mask.sum()), 1.0)
        mean = self.accelerator.reduce((values * mask).sum(), "sum") / count
        squares = self.accelerator.reduce((((values - mean) ** 2) * mask).sum(), "sum")
        return mean, squares / max(count - 1.0, 1.0)

    def _gather(self, batch: Batch, passes: list[Pass]) -> tuple[Batch, list[Pass]]:
        """Return the responses of all processes, one process after the other."""
        if self.accelerator.num_processes == 1:
            return batch, passes
        first = self.accelerator.process_index * len(batch.mask)

        def gather_rows(tensor: Tensor) -> Tensor:
            padded = (
                self.accelerator.pad_across_processes(tensor, dim=1) if tensor.dim() > 1 else tensor
            )
            gathered: Tensor = self.accelerator.gather(padded)
            return gathered

        placed = (
            Pass(item.rows + first, item.logprobs, item.values, item.entropy) for item in passes
        )
        return batch.each(gather_rows), [item.each(gather_rows) for item in placed]
