"""Trainers built on the public API."""
