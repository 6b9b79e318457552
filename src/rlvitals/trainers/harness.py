"""Run a training to its end: stop on a signal, record a failure, close everything."""

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rlvitals
from rlvitals.trainers import full_disk
from rlvitals.trainers.signal_handlers import SignalHandler

RESUME_HINT = "run the same command again to go on"


class Harness(ABC):
    """A training in its folder. `run` trains to the end and returns its status."""

    fresh = False  # start at step 0, and set checkpoints aside
    require_resume = False  # never start at step 0

    def __init__(self, folder: Path, log: logging.Logger) -> None:
        """Set the folder and the log; nothing is started."""
        self.folder, self.log = folder, log
        self.stopping = SignalHandler()

    def set_resume_flags(self, flags: Mapping[str, Any]) -> None:
        """Set where `run` starts, from the flags of the command; it resumes by default.

        `fresh`: at step 0, with the checkpoints of the folder set aside. `require_resume`: from a
        checkpoint, else `run` raises CannotResume.
        """
        self.fresh = bool(flags.get("fresh"))
        self.require_resume = bool(flags.get("require_resume"))

    @abstractmethod
    def train(self) -> str:
        """Train; return "finished" or "stopped"."""

    @abstractmethod
    def log_interruption(self) -> None:
        """Log that a signal ended the training, and how to resume."""

    @abstractmethod
    def log_failure(self, error: Exception, trace: str, level: int) -> None:
        """Log the error and how to resume; the traceback goes to the file.

        `level` is DEBUG for errors that a person can fix: the caller reports those.
        """

    @abstractmethod
    def end(self, status: str, trace: str, problem: str) -> None:
        """Close open resources and record the end; the last lines are already logged."""

    def run(self) -> str:
        """Train; returns "finished", or "stopped" where someone asked for it.

        Ctrl-C and SIGTERM save a checkpoint, log how to resume, and are raised. So is any error:
        the newest checkpoint is kept, and the run is recorded as failed. A disk that takes no
        more is a VitalsError, whoever found out.
        """
        status = trace = problem = ""
        with self.stopping:
            try:
                with full_disk.translate_errors(self.folder):
                    status = self.train()
            except KeyboardInterrupt:
                status = "interrupted"
                self.log_interruption()
                raise
            except Exception as error:
                status, trace, problem = "failed", traceback.format_exc(), str(error)
                mendable = isinstance(error, rlvitals.VitalsError)
                self.log_failure(error, trace, logging.DEBUG if mendable else logging.ERROR)
                raise
            finally:
                self.end(status, trace, problem)
        return status

    def log_diagnosis(self, text: str, bad: bool) -> None:  # noqa: FBT001 - as it is called
        """Log a result of the live diagnosis."""
        (self.log.warning if bad else self.log.info)("[diagnosis] %s", text)
