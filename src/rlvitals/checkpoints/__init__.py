"""Checkpoints that can be trusted: saved whole or not at all, verified before they are used."""
