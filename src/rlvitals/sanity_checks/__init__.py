"""What must hold at the first update, with no threshold to choose: checks, and their report."""

from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Passed, Preflight
from rlvitals.sanity_checks.preflight import preflight

__all__ = ["Check", "CouldNotCheck", "Failed", "Passed", "Preflight", "preflight"]
