"""Train in chunks of requests, each with a checkpoint, a log and a progress entry.

A request is one environment step. A checkpoint holds the progress of its chunk, so a chunk
that was interrupted resumes there, and no request counts twice.
"""

import logging
import math
from pathlib import Path

import numpy as np
import torch

import rlvitals
from rlvitals.trainers.full_disk import LogFile
from rlvitals.trainers.ppo import networks
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import Rollout
from rlvitals.trainers.ppo.telemetry import LOG_FORMAT, format_shares
from rlvitals.trainers.ppo.warm_start import CloningEpoch


def check(config: Config) -> None:
    """Raise UsageError for settings that chunks cannot be made with."""
    training = config.training
    if training.chunk_mode and training.chunk_size < 1:
        raise rlvitals.UsageError("a chunk of no requests", where="training.chunk_size")
    if training.chunk_mode and not config.checkpointing.enable:
        raise rlvitals.UsageError(
            "chunks need checkpoints", where="checkpointing.enable", hint="set it to true"
        )


class Chunks:
    """The chunks of one run."""

    def __init__(self, ppo: PPO, size: int, folder: Path, log: logging.Logger) -> None:
        """Cut the run into chunks of `size` requests."""
        self._ppo, self._size, self._folder, self._log = ppo, size, folder, log
        self._file: LogFile | None = None
        self.keeper: rlvitals.lab.Keeper | None = None
        self.cloning: CloningEpoch | None = (
            None  # until chunk 1 has logged the warm start's agreement
        )

    @property
    def count(self) -> int:
        """The number of chunks; the last may be smaller."""
        return math.ceil(self._ppo.total_steps / self._size)

    def facts(self) -> dict[str, object]:
        """Return the entries of `training_progress.json` about all chunks."""
        return {
            "total_chunks": self.count, "chunk_size": self._size,
            "total_requests": self._ppo.total_steps, "completed_chunks": 0, "requests_done": 0,
        }  # fmt: skip

    @property
    def is_complete(self) -> bool:
        """True if the current chunk has had its requests."""
        counters = self._ppo.counters
        return counters.chunk.number > 0 and counters.steps >= self._goal()

    def repeat_status(self) -> None:
        """Report a completed chunk again: a killed process may not have done so."""
        if self.is_complete:
            self._say("completed")

    def length(self) -> int:
        """Return the steps of the next rollout: a chunk is cut into rollouts of one length."""
        counters = self._ppo.counters
        if counters.chunk.number == 0 or self.is_complete:
            number = max(counters.chunk.number, counters.steps // self._size) + 1
            counters.chunk = type(counters.chunk)(number, counters.steps)
        if self._file is None:
            self._file = LogFile(self._folder / self._name(), encoding="utf-8")
            self._file.setFormatter(logging.Formatter(LOG_FORMAT))
            self._log.addHandler(self._file)
            self._say("running")
            self._log.info(
                "[chunk] %d/%d from step %d to %d", counters.chunk.number, self.count,
                counters.steps, self._goal(),
            )  # fmt: skip
        envs = self._ppo.envs.count
        steps_left = math.ceil((self._goal() - self._ppo.global_step) / envs)
        return math.ceil(steps_left / math.ceil(steps_left / self._ppo.config.rollout_length))

    def after(self, rollout: Rollout, metrics: dict[str, float]) -> None:
        """Take in an update."""
        chunk = self._ppo.counters.chunk
        if not self._ppo.envs.continuous:
            action_counts = np.bincount(
                rollout.actions[rollout.valid], minlength=self._ppo.envs.actions
            )
            chunk.counts = (
                action_counts + np.array(chunk.counts or [0] * len(action_counts))
            ).tolist()
        chunk.last_kl = metrics.get("kl_ref")
        if chunk.first_kl is None and chunk.last_kl is not None:
            chunk.first_kl = chunk.last_kl
        if self.cloning is not None:
            agreement = self.cloning.held_out.agreement(self._ppo)
            self._log.info("[chunk] %s", self.cloning.verdict(agreement))
            self.cloning = None
        if self.is_complete:
            counters = self._ppo.counters
            line = f"[chunk] {chunk.number}/{self.count} requests={counters.steps - chunk.began}"
            if chunk.counts:
                line += f" act={format_shares([n / sum(chunk.counts) for n in chunk.counts])}"
            if chunk.last_kl is not None:
                line += self._warm(rollout)
                line += f" kl_to_warm_start={chunk.first_kl:.4f}->{chunk.last_kl:.4f}"
            self._log.info(line)

    def end_chunk(self, status: str) -> None:
        """End the current one: "completed" with its checkpoint, or cut short."""
        if self._file is not None:
            self._say(status)
            self._log.info("[chunk] %d/%d %s", self._ppo.counters.chunk.number, self.count, status)
            if self._file is not None:
                self._log.removeHandler(self._file)
                self._file.close()
                self._file = None

    def _goal(self) -> int:
        return min(self._ppo.counters.chunk.number * self._size, self._ppo.total_steps)

    def _name(self) -> str:
        return f"chunk_{self._ppo.counters.chunk.number}.log"

    def _say(self, status: str) -> None:
        if self.keeper is None:
            return
        counters = self._ppo.counters
        is_completed = status == "completed"
        self.keeper.chunk(
            counters.chunk.number, status=status, log_file=self._name(),
            requests=counters.steps - counters.chunk.began,
            checkpoint=f"checkpoint-{counters.steps}" if is_completed else None,
        )  # fmt: skip

    def _warm(self, rollout: Rollout) -> str:
        """Format how often the warm start would take each action in the last rollout's states."""
        obs = torch.from_numpy(rollout.observations[rollout.valid])
        frozen = self._ppo.frozen
        if frozen is None or self._ppo.envs.continuous:
            return ""
        masks = None
        if rollout.masks is not None:
            masks = torch.from_numpy(rollout.masks[rollout.valid])
        with torch.inference_mode():
            logits = networks.mask_logits(frozen.actor(obs), masks)
            shares = torch.softmax(logits, -1).mean(0)
        return f" warm={format_shares(shares.tolist())}"
