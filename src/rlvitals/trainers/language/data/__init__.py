"""What a language model is asked."""

from rlvitals.trainers.language.data.task import Task, check, find, load

__all__ = ["Task", "check", "find", "load"]
