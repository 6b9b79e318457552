"""Run all checks of the doctor, the most severe problem first."""

from rlvitals.doctor import CHECKS
from rlvitals.doctor.check import Examination
from rlvitals.doctor.context import Context


def examine(context: Context) -> Examination:
    """Run every check."""
    answers = [(check, list(check.look(context))) for check in CHECKS]
    troubles = [(check, trouble) for check, check_troubles in answers for trouble in check_troubles]
    troubles.sort(key=lambda pair: -pair[1].severity)
    fine = tuple(check for check, check_troubles in answers if not check_troubles)
    return Examination(context, tuple(troubles), fine)
