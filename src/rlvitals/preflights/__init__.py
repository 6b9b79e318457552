"""What must hold at the first update, with no threshold to choose: checks, and their report."""

from rlvitals.preflights.check import Check, CouldNotCheck, Failed, Passed, Preflight
from rlvitals.preflights.preflight import preflight

__all__ = ["Check", "CouldNotCheck", "Failed", "Passed", "Preflight", "preflight"]
