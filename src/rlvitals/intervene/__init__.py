"""Decide whether a run should stop."""
