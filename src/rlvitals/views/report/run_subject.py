"""Combine what is known of a run into the subject of its report."""

from rlvitals.checkpoints import inspect_run, progress
from rlvitals.diagnosis import load
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.training_summary import summary
from rlvitals.readers.discovery.sources import Run
from rlvitals.settings import Settings
from rlvitals.views.report import rollout_section
from rlvitals.views.report.page import Subject


def subject(  # noqa: PLR0913, PLR0917 - what a report is about
    name: str,
    run: Run,
    diagnosis: Diagnosis,
    settings: Settings,
    now_s: float,
    max_samples: int = 2,
) -> Subject:
    """Read a run's checkpoints, facts, events and rollouts.

    `now_s`: seconds since the epoch. `max_samples`: rollouts shown for each finding.
    """
    progress_file = progress.read(run.root)
    return Subject(
        summary=summary(name, diagnosis, None if progress_file is None else progress_file.trained),
        standing=standing(name, diagnosis, progress_file, inspect_run.try_inspect(run.root), now_s),
        facts=load.facts(run),
        events=load.read_events(run),
        others=load.unmapped_series(run, load.run_overrides(settings), diagnosis.trace),
        proofs=rollout_section.proofs(diagnosis, run.root, max_samples),
    )
