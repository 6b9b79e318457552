"""All checks of a run, the gravest trouble first."""

from rlvitals.doctor import CHECKS
from rlvitals.doctor.check import Examined
from rlvitals.doctor.context import Scene


def examine(scene: Scene) -> Examined:
    """Ask every check."""
    answers = [(check, list(check.look(scene))) for check in CHECKS]
    troubles = [(check, one) for check, found in answers for one in found]
    troubles.sort(key=lambda pair: -pair[1].severity)
    fine = tuple(check for check, found in answers if not found)
    return Examined(scene, tuple(troubles), fine)
