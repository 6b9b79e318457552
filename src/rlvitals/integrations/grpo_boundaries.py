"""Find the steps at which a TRL training can be resumed bit for bit.

GRPO and RLOO generate a batch of completions and train on it for `steps_per_generation` forward
passes, `num_iterations` times. The batch is not part of a checkpoint: a training that is resumed
in between generates another. Read from trl 1.16: trl/trainer/grpo_trainer.py,
`_prepare_inputs`.
"""

from math import ceil, gcd
from typing import Any

from rlvitals.integrations import data_order
from rlvitals.startup.fast_dataclass import dataclass

GENERATION_LOSS = "the generation that was being trained on"
REFERENCE_LOSS = "the reference model that sync_ref_model moves"


@dataclass(frozen=True, slots=True)
class Generations:
    """The relation of forward passes, optimizer steps and generations of a training."""

    passes: int  # forward passes that are trained on one generation
    accumulation: int  # forward passes of an optimizer step
    epoch: int | None  # forward passes of an epoch, whose last step may have fewer; None: endless
    began: int = 0  # the step that this process began at, with a new generation

    @property
    def cycle(self) -> int:
        """Steps after which an optimizer step and a generation end together."""
        return self.passes // gcd(self.passes, self.accumulation)

    def ends_at(self, step: int) -> bool:
        """Return whether a generation ends with a step, so that a resume there is exact."""
        return (self._count_passes(step) - self._count_passes(self.began)) % self.passes == 0

    def next_end(self, step: int) -> int:
        """Return the first step at or after `step` at which a generation ends."""
        end_step = step
        while not self.ends_at(end_step):
            end_step += 1
        return end_step

    def _count_passes(self, step: int) -> int:
        """Count the forward passes up to a step."""
        if self.epoch is None:
            return step * self.accumulation
        epochs, epoch_step = divmod(step, ceil(self.epoch / self.accumulation))
        return epochs * self.epoch + epoch_step * self.accumulation


def read_generations(args: Any, loader: Any, start_step: int) -> Generations | None:
    """Return a trainer's generations; None for a trainer that does not generate."""
    passes = getattr(args, "steps_per_generation", None)
    iterations = getattr(args, "num_iterations", None)
    if not passes or not iterations:
        return None
    epoch = data_order.forward_passes(loader)
    return Generations(passes * iterations, args.gradient_accumulation_steps, epoch, start_step)
