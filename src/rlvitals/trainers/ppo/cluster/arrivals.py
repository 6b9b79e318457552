"""Request streams: arrival times, prompt lengths and output lengths."""

import csv
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.trainers.ppo.cluster.config import ClusterConfig
from rlvitals.trainers.ppo.cluster.replicas import Bools, Floats, Ints


class Arrivals:
    """The streams of requests of B clusters: one after the other, each cluster its own."""

    def __init__(self, config: ClusterConfig, batch: int) -> None:
        """Begin B streams. Raises VitalsError for a trace that cannot be read."""
        self.config, self.batch = config, batch
        self.cursor = np.zeros(batch, np.int64)  # the row of the trace that each is at
        self.trace = read_trace(Path(config.trace), config) if config.trace else None
        if self.config.qps:
            self.full_rate = self.config.qps  # requests/s
        elif self.trace is not None:
            self.full_rate = float(1.0 / self.trace[0].mean())
        else:
            self.full_rate = self.config.load * capacity(self.config)
        self.rate = np.full(batch, self.full_rate)  # requests/s of each cluster

    def begin(self, generator: np.random.Generator, clusters: Bools) -> None:
        """Begin anew in some clusters: a trace is entered at any of its rows."""
        if self.trace is not None:
            rows = generator.integers(0, len(self.trace[0]), self.batch)
            self.cursor = np.where(clusters, rows, self.cursor)

    def gaps(self, generator: np.random.Generator) -> Floats:
        """Return the time to each cluster's next request, [B] in s."""
        config = self.config
        if self.trace is not None:
            gaps, _, _ = self.trace
            scaled = gaps[self.cursor] / (self.rate * gaps.mean())
            self.cursor = (self.cursor + 1) % len(gaps)
            return np.asarray(scaled)
        if config.arrivals == "poisson":
            return np.asarray(generator.exponential(1.0, self.batch) / self.rate)
        shape = 1.0 / config.cv**2
        return np.asarray(generator.gamma(shape, 1.0 / shape, self.batch) / self.rate)

    def lengths(self, generator: np.random.Generator) -> tuple[Ints, Ints]:
        """Return the prompt and output tokens of each cluster's request, [B] each."""
        if self.trace is not None:
            _, prompt, output = self.trace
            return prompt[self.cursor], output[self.cursor]
        config = self.config
        mean, sigma = config.prompt_mean, config.prompt_sigma
        prompts = _lognormal(generator, mean, sigma, self.batch)
        mean, sigma = config.output_mean, config.output_sigma
        outputs = _lognormal(generator, mean, sigma, self.batch)
        return _tokens(prompts, outputs, config)


def capacity(config: ClusterConfig) -> float:
    """Return about how many requests/s the cluster serves with full batches and a full cache."""
    full = config.iteration_cost + config.decode_cost * config.max_batch
    full += config.cache_cost * config.kv_capacity
    decoding = config.output_mean * full / config.max_batch
    return sum(config.all_speeds) / (decoding + config.prompt_mean * config.prefill_cost)


def read_trace(path: Path, config: ClusterConfig) -> tuple[Floats, Ints, Ints]:
    """Return a trace's gaps [s], prompt tokens and output tokens, one row for each request.

    The file has three columns: time, prompt tokens, output tokens; a heading is allowed. The last
    gap, back to the first request, is the mean one. Raises VitalsError.
    """
    try:
        with path.open(newline="") as file:
            rows = [row[:3] for row in csv.reader(file) if row]
        if rows and not _is_number(rows[0][0]):
            rows = rows[1:]
        table = np.array(rows, np.float64).reshape(len(rows), 3)
    except (OSError, ValueError) as error:
        raise _bad_trace(path, str(error)) from None
    if len(table) < 2 or not np.isfinite(table).all() or (np.diff(table[:, 0]) < 0).any():  # a gap
        raise _bad_trace(path, "two rows or more, finite, in the order of time")
    gaps = np.diff(table[:, 0])
    if gaps.sum() <= 0:
        raise _bad_trace(path, "its requests all arrive at once")
    return np.append(gaps, gaps.mean()), *_tokens(table[:, 1], table[:, 2], config)


def _lognormal(
    generator: np.random.Generator, mean: float, sigma: float, size: int
) -> Floats:  # fmt: skip
    """Draw with the mean that is asked for: that of a lognormal is exp(mu + sigma^2 / 2)."""
    return generator.lognormal(np.log(mean) - sigma**2 / 2, sigma, size)


def _tokens(prompt: Floats, output: Floats, config: ClusterConfig) -> tuple[Ints, Ints]:
    # A prompt has at least 8 tokens and an answer 4.
    shortest = np.minimum((8, 4), (config.max_prompt, config.max_output))
    prompt = np.clip(prompt, shortest[0], config.max_prompt)
    output = np.clip(output, shortest[1], config.max_output)
    return prompt.astype(np.int64), output.astype(np.int64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bad_trace(path: Path, reason: str) -> "rlvitals.VitalsError":
    hint = "a CSV with the columns time (s), prompt tokens, output tokens"
    return rlvitals.VitalsError(f"the trace makes no sense: {reason}", where=str(path), hint=hint)
