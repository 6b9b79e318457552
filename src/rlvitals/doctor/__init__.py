"""Checks for problems that keep a run from being logged or resumed."""

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
    similar_folders.FOLDER_NAME_CHECK,
    logs.LOGS_CHECK,
    resume_check.RESUME_CHECK,
    reported_state.RECORD_CHECK,
    reported_state.PROGRESS_CHECK,
    reported_state.PROCESSES_CHECK,
    machine.DISK_CHECK,
    machine.RIGHTS_CHECK,
    wandb_offline_runs.OFFLINE_CHECK,
)
