"""Runs in an object store: uploaded while they are recorded, read from there."""
