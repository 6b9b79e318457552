"""Ask rlvitals as any other tool: the log, the known settings, its defaults.

Every case counts that is a warning or worse, by the name of its cause, and the verdict "failed". A
case's step is the first at which it could have been said. How the process ended is told, which
the other tools have no place for.
"""

from dataclasses import replace

from peers.exchange import ERROR, WARNING, Alarm, Given, Tool, answer

import rlvitals
from rlvitals import Severity, Word
from rlvitals.faults.fault import FAILED_VERDICT
from rlvitals.faults.run_diagnosis import lifecycle, tracked_settings


def ask(run: Given) -> list[Alarm]:
    """Diagnose the run's log."""
    settings = tracked_settings(run.settings)
    trace = rlvitals.trace(run.folder / "progress.csv", settings=settings)
    diagnosis = rlvitals.diagnose(replace(trace, lifecycle=lifecycle(run.ended)))
    last = max(run.steps, default=0)
    failed = [Alarm(FAILED_VERDICT, ERROR, last)] if diagnosis.verdict.word is Word.FAILED else []
    return failed + [
        Alarm(
            case.rule.name,
            ERROR if case.finding.severity is Severity.ERROR else WARNING,
            case.finding.known,
        )
        for case in diagnosis.cases
        if case.finding.severity >= Severity.WARNING
    ]


if __name__ == "__main__":
    answer(Tool("rlvitals", rlvitals.__version__, "Apache-2.0", "this repository", ()), ask)
