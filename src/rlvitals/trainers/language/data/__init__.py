"""What a language model is asked."""

from rlvitals.trainers.language.data.task import Task, load

__all__ = ["Task", "load"]
