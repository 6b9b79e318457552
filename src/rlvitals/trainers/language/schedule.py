"""Set the learning rate of a training that resumes with other settings.

transformers 5.23 restores the rate of the old schedule for the first step (0 where a linear one
had come to its end), and its highest rate for good: src/transformers/trainer.py,
`_load_optimizer_and_scheduler`, and torch's LambdaLR, whose state holds `base_lrs`.
"""

from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class Schedule(TrainerCallback):
    """Set a restored optimizer to the current schedule, and report a changed rate."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Set the callback for messages."""
        self._tell = tell

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Set the rate of the step that comes, where training was resumed and is not over."""
        schedule = kwargs.get("lr_scheduler")
        schedule = getattr(schedule, "scheduler", schedule)  # accelerate's, under DeepSpeed
        if not (0 < state.global_step < state.max_steps and isinstance(schedule, LambdaLR)):
            return
        groups = schedule.optimizer.param_groups
        old_rates = [float(group["lr"]) for group in groups]
        schedule.base_lrs = [args.learning_rate for _ in groups]
        epoch = schedule.last_epoch
        new_rates = [
            base * factor(epoch)
            for base, factor in zip(schedule.base_lrs, schedule.lr_lambdas, strict=True)
        ]
        for group, rate in zip(groups, new_rates, strict=True):
            group["lr"], group["initial_lr"] = rate, args.learning_rate
        schedule._last_lr = new_rates  # noqa: SLF001 - `get_last_lr` returns it, and the Trainer logs it
        if new_rates != old_rates:
            self._tell(
                f"the schedule is that of {state.max_steps:,} steps now: step "
                f"{state.global_step + 1:,} has a learning rate of {new_rates[0]:.3g}, and would "
                f"have had {old_rates[0]:.3g}"
            )
