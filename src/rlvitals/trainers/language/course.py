"""What any training of a language model has: lines, a gentle end, a record of how it ended."""

import logging
import traceback
from abc import ABC, abstractmethod
from pathlib import Path

import rlvitals
from rlvitals.trainers.language import console
from rlvitals.trainers.language.config import MonitoringConfig
from rlvitals.trainers.language.rewards import Failure
from rlvitals.trainers.stopping import Stopping

FAILURES = 5  # of reward functions, on the console; all are in the file
GO_ON = "run the same command again to go on"


class Course(ABC):
    """One training in its folder. `run` trains to the end and returns how it ended."""

    failures = 0  # samples that a reward function could not judge
    recorder: rlvitals.Run | None = None

    def __init__(self, folder: Path, monitoring: MonitoringConfig, *, first: bool) -> None:
        """Open what is written to; other processes than the first are silent."""
        self.folder, self.first = folder, first
        self.progress = console.Progress(wanted=monitoring.progress_bar and first)
        self.lines = console.Lines(
            folder / monitoring.logging_dir / console.LOG, self.progress, quiet=not first
        )
        self.log = self.lines.log
        self.stopping = Stopping()

    @abstractmethod
    def trained(self) -> str:
        """Train; return "finished" or "stopped"."""

    @abstractmethod
    def sum_up(self, status: str) -> None:
        """Say what it came to."""

    def run(self) -> str:
        """Train; returns "finished", or "stopped" where someone asked for it.

        Ctrl-C and SIGTERM save a checkpoint, say how to go on, and are raised. So is any error:
        the newest checkpoint is kept, and the run is recorded as failed.
        """
        status = trace = ""
        with self.lines, self.stopping:
            try:
                status = self.trained()
            except KeyboardInterrupt:
                status = "interrupted"
                self.log.warning("stopped: %s", GO_ON)
                raise
            except Exception as error:
                status, trace = "failed", traceback.format_exc()
                # What a person can mend is said by who called, alone.
                level = logging.DEBUG if isinstance(error, rlvitals.VitalsError) else logging.ERROR
                self.log.log(level, "✗ Training failed: %s", error)
                self.log.debug("%s", trace)
                raise
            finally:
                self.progress.close()
                if self.recorder is not None:
                    self.recorder.finish(status, traceback=trace)
            self.sum_up(status)
        return status

    def failed(self, failure: Failure) -> None:
        """Say which sample a reward function could not judge."""
        self.failures += 1
        level = logging.WARNING if self.failures <= FAILURES else logging.DEBUG
        self.log.log(level, "%s", failure.sentence)

    def diagnosed(self, text: str, bad: bool) -> None:  # noqa: FBT001 - as it is called
        """Say what the live diagnosis found."""
        (self.log.warning if bad else self.log.info)("[diagnosis] %s", text)

    def told_end(self, status: str) -> None:
        """Say how it ended, and where the model is."""
        if status == "stopped":
            self.log.info("stopped, as asked: %s", GO_ON)
        else:
            self.log.info("")
            self.log.info("✓ Training completed successfully")
            self.log.info("✓ Model saved to %s/", self.folder)
        if self.failures:
            self.log.warning("%d rewards could not be computed", self.failures)
