"""Train in chunks of requests: each has a checkpoint, a log and an entry of its own.

A request is a decision is an environment step. Where a run stands is in its checkpoint, so a chunk
that was cut short goes on where that is, and none counts twice.
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
from rlvitals.trainers.ppo.telemetry import FORMAT, listed
from rlvitals.trainers.ppo.warm_start import Cloned

RUNNING, COMPLETED = "running", "completed"


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
        self.keeper: rlvitals.Keeper | None = None
        self.cloned: Cloned | None = None  # until chunk 1 has said whether the warm start took

    @property
    def count(self) -> int:
        """How many there are; the last may be smaller."""
        return math.ceil(self._ppo.total_steps / self._size)

    def facts(self) -> dict[str, object]:
        """Return what `training_progress.json` says of all of them."""
        return {
            "total_chunks": self.count, "chunk_size": self._size,
            "total_requests": self._ppo.total_steps, "completed_chunks": 0, "requests_done": 0,
        }  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether the current one has had its requests."""
        counters = self._ppo.at
        return counters.chunk.number > 0 and counters.steps >= self._goal()

    def resumed(self) -> None:
        """Say again what a killed process may not have come to say: that its chunk was done."""
        if self.over:
            self._say(COMPLETED)

    def length(self) -> int:
        """Return the steps of the next rollout: a chunk is cut into rollouts of one length."""
        self._begin()
        envs = self._ppo.envs.count
        steps_left = math.ceil((self._goal() - self._ppo.at.steps) / envs)
        return math.ceil(steps_left / math.ceil(steps_left / self._ppo.config.rollout_length))

    def after(self, rollout: Rollout, metrics: dict[str, float]) -> None:
        """Take in an update."""
        chunk = self._ppo.at.chunk
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
        if self.cloned is not None:
            agreement = self.cloned.held_out.agreement(self._ppo)
            self._log.info("[chunk] %s", self.cloned.verdict(agreement))
            self.cloned = None
        if self.over:
            self._sum_up(rollout)

    def ended(self, status: str) -> None:
        """End the current one: "completed" with its checkpoint, or cut short."""
        if self._file is not None:
            self._say(status)
            self._log.info("[chunk] %d/%d %s", self._ppo.at.chunk.number, self.count, status)
            self._close()

    def _goal(self) -> int:
        return min(self._ppo.at.chunk.number * self._size, self._ppo.total_steps)

    def _begin(self) -> None:
        counters = self._ppo.at
        if counters.chunk.number == 0 or self.over:
            number = max(counters.chunk.number, counters.steps // self._size) + 1
            counters.chunk = type(counters.chunk)(number, counters.steps)
        if self._file is None:
            self._file = LogFile(self._folder / self._name(), encoding="utf-8")
            self._file.setFormatter(logging.Formatter(FORMAT))
            self._log.addHandler(self._file)
            self._say(RUNNING)
            self._log.info(
                "[chunk] %d/%d from step %d to %d", counters.chunk.number, self.count,
                counters.steps, self._goal(),
            )  # fmt: skip

    def _name(self) -> str:
        return f"chunk_{self._ppo.at.chunk.number}.log"

    def _say(self, status: str) -> None:
        if self.keeper is None:
            return
        counters = self._ppo.at
        is_completed = status == COMPLETED
        self.keeper.chunk(
            counters.chunk.number, status=status, log_file=self._name(),
            requests=counters.steps - counters.chunk.began,
            checkpoint=f"checkpoint-{counters.steps}" if is_completed else None,
        )  # fmt: skip

    def _sum_up(self, rollout: Rollout) -> None:
        counters = self._ppo.at
        chunk = counters.chunk
        line = f"[chunk] {chunk.number}/{self.count} requests={counters.steps - chunk.began}"
        if counters.chunk.counts:
            line += (
                f" act={listed([n / sum(counters.chunk.counts) for n in counters.chunk.counts])}"
            )
        if counters.chunk.last_kl is not None:
            line += self._warm(rollout)
            line += f" kl_to_warm_start={counters.chunk.first_kl:.4f}->{counters.chunk.last_kl:.4f}"
        self._log.info(line)

    def _warm(self, rollout: Rollout) -> str:
        """Say how often the warm start would take each action in the last rollout's states."""
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
        return f" warm={listed(shares.tolist())}"

    def _close(self) -> None:
        if self._file is not None:
            self._log.removeHandler(self._file)
            self._file.close()
            self._file = None
