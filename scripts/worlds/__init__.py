"""Worlds of `faults/tier-2`: environments, trainers and faults for `record_worlds.py`."""
