"""Where a TRL training can be cut so that it goes on bit for bit.

GRPO and RLOO draw a batch of completions and train on it for `steps_per_generation` forward
passes, `num_iterations` times over. The batch is no part of a checkpoint: a training that is
resumed in between draws another. Read from trl 1.16: trl/trainer/grpo_trainer.py,
`_prepare_inputs`.
"""

from dataclasses import dataclass
from math import ceil, gcd
from typing import Any

from rlvitals.integrations import data_order

UNFINISHED = "the generation that was being trained on"
REFERENCE = "the reference model that sync_ref_model moves"


@dataclass(frozen=True, slots=True)
class Generations:
    """How forward passes, optimizer steps and generations of a training stand to each other."""

    passes: int  # forward passes that are trained on one generation
    accumulation: int  # forward passes of an optimizer step
    epoch: int | None  # forward passes of an epoch, whose last step may have fewer; None: endless
    began: int = 0  # the step that this process began at, with a new generation

    @property
    def cycle(self) -> int:
        """Steps after which an optimizer step and a generation end together."""
        return self.passes // gcd(self.passes, self.accumulation)

    def ends_at(self, step: int) -> bool:
        """Tell whether a generation ends with a step: a training resumed there goes on the same."""
        return (self._done(step) - self._done(self.began)) % self.passes == 0

    def next_end(self, step: int) -> int:
        """Return the first step from this one on at which a generation ends."""
        at = step
        while not self.ends_at(at):
            at += 1
        return at

    def _done(self, step: int) -> int:
        """Count the forward passes up to a step."""
        if self.epoch is None:
            return step * self.accumulation
        whole, rest = divmod(step, self._steps(self.epoch))
        return whole * self.epoch + rest * self.accumulation

    def _steps(self, passes: int) -> int:
        return ceil(passes / self.accumulation)


def of(args: Any, loader: Any, began: int) -> Generations | None:
    """Return a trainer's generations; None for a trainer that draws nothing."""
    passes = getattr(args, "steps_per_generation", None)
    iterations = getattr(args, "num_iterations", None)
    if not passes or not iterations:
        return None
    epoch = data_order.forward_passes(loader)
    return Generations(passes * iterations, args.gradient_accumulation_steps, epoch, began)
