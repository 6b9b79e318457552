"""The harness shared by all trainings of language models."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rlvitals
from rlvitals.trainers import harness
from rlvitals.trainers.harness import RESUME_HINT
from rlvitals.trainers.language import console
from rlvitals.trainers.language.config import MonitoringConfig
from rlvitals.trainers.language.rewards import Failure
from rlvitals.trainers.language.usage import Usage

ERROR_SHARE_METRIC = (
    "language/error_share"  # a name of rlvitals' own, whatever else a log's names are
)

if TYPE_CHECKING:
    from rlvitals.trainers.language.planning.plan import Plan


class TrainingResult(NamedTuple):
    """A training that is over, as the command line needs it."""

    folder: Path
    status: str  # "finished", or "stopped" where someone asked for it
    failed_rewards: int  # samples that a reward function failed on
    plots_dir: str  # where to draw pictures, "" for nowhere


class LanguageHarness(harness.Harness):
    """A training of a language model in its folder."""

    failures = 0  # of reward functions, each at a sample
    recorder: rlvitals.Run | None = None
    usage: Usage  # from before the model is loaded
    plan: "Plan | None" = None

    def __init__(self, folder: Path, monitoring: MonitoringConfig, *, first: bool) -> None:
        """Open the log and the progress line; other processes than the first are silent."""
        self.first = first
        self._unpaid: set[int] = set()  # samples of this process's batch that a function failed on
        self.progress = console.Progress(wanted=monitoring.progress_bar and first)
        self.lines = console.LogFiles(
            folder / monitoring.logging_dir / console.DEBUG_LOG, self.progress, quiet=not first
        )
        super().__init__(folder, self.lines.log)
        # Pictures come with a summary of their own.
        self._summary = logging.DEBUG if monitoring.plots_dir else logging.INFO

    def run(self) -> str:
        """Train, with the lines open: as any course."""
        with self.lines:
            return super().run()

    def result(self, status: str, plots_dir: str) -> TrainingResult | None:
        """Return the result of `run`; None on other processes than the first."""
        return TrainingResult(self.folder, status, self.failures, plots_dir) if self.first else None

    def begin_usage(self, config: Any, seed: int) -> None:
        """Plan a training of a large model, and measure from here on."""
        from rlvitals.trainers.language.planning import start

        if self.first:
            self.plan = start.plan(config, self.folder, seed, self.log.info)
        self.usage = Usage()

    def end_usage(self, step: int) -> None:
        """Record peak memory, and log it with the plan's if there is one."""
        from rlvitals.trainers.language.planning import estimate, start

        if self.plan is None:
            return
        used = self.usage.measure()
        if self.recorder is not None and used.memory is not None:
            # The peak of the GPU's memory, else of the process's.
            self.recorder.log(step, {"machine/peak_gib": used.memory / estimate.GIB})
        self.log.info("%s", start.compare_usage(self.plan, used))

    def log_interruption(self) -> None:
        """Log how to resume."""
        self.log.warning("stopped: %s", RESUME_HINT)

    def log_failure(self, error: Exception, trace: str, level: int) -> None:
        """Log the error."""
        self.log.log(level, "✗ Training failed: %s", error)
        self.log.debug("%s", trace)

    def end(self, status: str, trace: str, problem: str) -> None:
        """Record how it ended, and sum up what went well."""
        del problem
        self.progress.close()
        if self.recorder is not None:
            self.recorder.finish(status, traceback=trace)
        if status in {"finished", "stopped"} and self.first:
            self.log_summary(status)

    def record_failure(self, failure: Failure) -> None:
        """Log the sample that a reward function failed on."""
        self.failures += 1
        if failure.sample is not None:
            self._unpaid.add(failure.sample)
        level = logging.WARNING if self.failures <= 5 else logging.DEBUG  # all are in the file
        self.log.log(level, "%s", failure.sentence)

    def pop_failed_share(self, samples: int) -> float:
        """Return the share of the batch on which a function failed, and begin the next batch."""
        share = len(self._unpaid) / samples
        self._unpaid.clear()
        return share

    def log_end(self, status: str) -> None:
        """Log the end of the training, and where the model is."""
        if status == "stopped":
            self.log.info("stopped, as asked: %s", RESUME_HINT)
        else:
            self.log.info("")
            self.log.info("✓ Training completed successfully")
            self.log.info("✓ Model saved to %s/", self.folder)
        if self.failures:
            self.log.warning("%d rewards could not be computed", self.failures)

    def log_summary(self, status: str) -> None:
        """Log the end of the training and a summary of the run."""
        self.log_end(status)
        self.log.info("")
        level = self._summary
        try:
            summary = rlvitals.lab.summarise(self.folder)
        except rlvitals.VitalsError as error:  # as where other runs are in its folder
            level, summary = logging.WARNING, f"no summary: {error}"
        for line in summary.splitlines():
            self.log.log(level, "%s", line)
