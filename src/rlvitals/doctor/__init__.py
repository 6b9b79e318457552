"""What keeps a run from being logged or resumed: one check for each thing that goes wrong."""

from rlvitals.doctor import (
    logs,
    machine,
    reported_state,
    resume_check,
    similar_folders,
    wandb_offline_runs,
)
from rlvitals.doctor.check import Check

CHECKS: tuple[Check, ...] = (
    similar_folders.CHECK,
    logs.CHECK,
    resume_check.CHECK,
    reported_state.RECORD,
    reported_state.PROGRESS,
    reported_state.PROCESSES,
    machine.DISK,
    machine.RIGHTS,
    wandb_offline_runs.CHECK,
)
