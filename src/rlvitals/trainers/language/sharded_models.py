"""Check what DeepSpeed's sharding of the training state does not allow."""

from pathlib import Path

from transformers import TrainingArguments

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.language.config import SignalConfig


def check(args: TrainingArguments, signal: SignalConfig) -> None:
    """Raise UsageError for what DeepSpeed leaves no room for."""
    if args.deepspeed_plugin is not None and signal.skip_empty_steps:
        raise UsageError(
            "DeepSpeed steps the optimizer as it computes the gradient: no step can be left out",
            where="signal.skip_empty_steps",
            hint="leave it off, or launch without DeepSpeed",
        )


def check_resume(args: TrainingArguments, checkpoint: Path) -> None:
    """Raise VitalsError for a checkpoint whose optimizer cannot be read as this was launched.

    Reported early and in a sentence: DeepSpeed prints a traceback of each process, and
    without it a new optimizer would begin, silently.
    """
    uses_deepspeed = args.deepspeed_plugin is not None
    if uses_deepspeed != any(checkpoint.glob("global_step*")):
        saved_by, read_by = ("without", "with") if uses_deepspeed else ("by", "without")
        raise VitalsError(
            f"it was saved {saved_by} DeepSpeed, and its optimizer cannot be read {read_by} it",
            where=str(checkpoint),
            hint="launch it as before, or another run with another --output-dir",
        )
    # deepspeed v0.19: deepspeed/runtime/engine.py, `_get_zero_ckpt_name`; one file per process.
    pattern = "global_step*/*zero_pp_rank_*_optim_states.pt"
    count = sum(1 for _ in checkpoint.glob(pattern))
    if count and count != args.world_size:
        raise VitalsError(
            f"DeepSpeed shared it out over {count} processes, and {args.world_size} cannot read it",
            where=str(checkpoint),
            hint=f"--num_processes {count}, or another run with another --output-dir",
        )  # fmt: skip
