"""What keeps a run from being logged or resumed: one check for each thing that goes wrong."""

from rlvitals.doctor import logs, machine, nearby, offline, resuming, telling
from rlvitals.doctor.trouble import Check

CHECKS: tuple[Check, ...] = (
    nearby.CHECK,
    logs.CHECK,
    resuming.CHECK,
    telling.RECORD,
    telling.PROGRESS,
    telling.PROCESSES,
    machine.DISK,
    machine.RIGHTS,
    offline.CHECK,
)
