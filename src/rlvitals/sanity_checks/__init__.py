"""Checks of the first update, without thresholds to choose, and their report."""

from rlvitals.sanity_checks.check import Check, CouldNotCheck, Failed, Passed, Preflight
from rlvitals.sanity_checks.preflight import preflight

__all__ = ["Check", "CouldNotCheck", "Failed", "Passed", "Preflight", "preflight"]
