"""Training and evaluation data of a language model."""

from rlvitals.trainers.language.data.task import Task, check, find, load

__all__ = ["Task", "check", "find", "load"]
