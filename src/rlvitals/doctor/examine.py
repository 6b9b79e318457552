"""Run all checks of the doctor, the most severe problem first."""

from rlvitals.doctor import CHECKS
from rlvitals.doctor.check import Examined
from rlvitals.doctor.context import Context


def examine(scene: Context) -> Examined:
    """Run every check."""
    answers = [(check, list(check.look(scene))) for check in CHECKS]
    troubles = [(check, trouble) for check, check_troubles in answers for trouble in check_troubles]
    troubles.sort(key=lambda pair: -pair[1].severity)
    fine = tuple(check for check, check_troubles in answers if not check_troubles)
    return Examined(scene, tuple(troubles), fine)
