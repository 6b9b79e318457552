"""How any training goes: it learns, is stopped or fails, and ends well whatever happens."""

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.trainers import full_disk
from rlvitals.trainers.signal_handlers import Stopping

GO_ON = "run the same command again to go on"


class Course(ABC):
    """One training in its folder. `run` trains to the end and returns how it ended."""

    fresh = False  # start at step 0, and set checkpoints aside
    require_resume = False  # never start at step 0

    def __init__(self, folder: Path, log: logging.Logger) -> None:
        """Train in a folder, and tell a log; nothing has begun."""
        self.folder, self.log = folder, log
        self.stopping = Stopping()

    def begin_as(self, flags: Mapping[str, Any]) -> None:
        """Say where `run` may begin, by the flags of the command; by default it resumes.

        `fresh`: at step 0, with the checkpoints of the folder set aside. `require_resume`: from a
        checkpoint, else `run` raises CannotResume.
        """
        self.fresh = bool(flags.get("fresh"))
        self.require_resume = bool(flags.get("require_resume"))

    @abstractmethod
    def trained(self) -> str:
        """Train; return "finished" or "stopped"."""

    @abstractmethod
    def say_interrupted(self) -> None:
        """Say that a signal ended it, and how to go on."""

    @abstractmethod
    def say_failed(self, error: Exception, trace: str, level: int) -> None:
        """Say what went wrong, and how to go on; the traceback is for the file.

        `level` is DEBUG for what a person can mend: who called says that, alone.
        """

    @abstractmethod
    def end(self, status: str, trace: str, problem: str) -> None:
        """Close what is open, and record the end: what was said last is in the log already."""

    def run(self) -> str:
        """Train; returns "finished", or "stopped" where someone asked for it.

        Ctrl-C and SIGTERM save a checkpoint, say how to go on, and are raised. So is any error:
        the newest checkpoint is kept, and the run is recorded as failed. A disk that takes no
        more is a VitalsError, whoever found out.
        """
        status = trace = problem = ""
        with self.stopping:
            try:
                with full_disk.explained(self.folder):
                    status = self.trained()
            except KeyboardInterrupt:
                status = "interrupted"
                self.say_interrupted()
                raise
            except Exception as error:
                status, trace, problem = "failed", traceback.format_exc(), str(error)
                mendable = isinstance(error, rlvitals.VitalsError)
                self.say_failed(error, trace, logging.DEBUG if mendable else logging.ERROR)
                raise
            finally:
                self.end(status, trace, problem)
        return status

    def diagnosed(self, text: str, bad: bool) -> None:  # noqa: FBT001 - as it is called
        """Say what the live diagnosis found."""
        (self.log.warning if bad else self.log.info)("[diagnosis] %s", text)
