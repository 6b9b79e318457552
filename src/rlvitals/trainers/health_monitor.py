"""Diagnose a run while it trains, at a bounded cost, and report what is new."""

import time
from collections.abc import Callable
from pathlib import Path

import rlvitals

MAX_TIME_SHARE = 0.02  # of the time: so much do they take at most


class HealthMonitor:
    """Diagnose a run's folder at intervals, and report what is new.

    `tell(line, is_warning)` is called with each line.
    """

    def __init__(
        self, folder: Path, *, every: float, total_steps: int, tell: Callable[[str, bool], None]
    ) -> None:
        """Diagnose at most every `every` seconds; 0: never."""
        self._folder, self._every, self._total, self._tell = folder, every, total_steps, tell
        self._then, self._step = time.monotonic(), 0
        self._cost = 0.0  # seconds of the last one
        self._reported: set[str] = set()  # findings, by their rules' names
        self.diagnosis: rlvitals.Diagnosis | None = None

    def begin(self, step: int) -> None:
        """Count from a step on: that of a resumed run."""
        self._then, self._step = time.monotonic(), step

    def plan(self, step: int, total_steps: int) -> None:
        """Count from a step on, of so many: where that is known only as training begins."""
        self._total = total_steps
        self.begin(step)

    def is_due(self, step: int) -> bool:
        """Return True if a diagnosis is due."""
        # Two diagnoses are at least 5 % of the run apart.
        if not self._every or step - self._step < 0.05 * self._total:
            return False
        return time.monotonic() - self._then >= max(self._every, self._cost / MAX_TIME_SHARE)

    def diagnose(self, step: int) -> None:
        """Diagnose the run and report what is new, or why there is no diagnosis."""
        started = time.monotonic()
        try:
            diagnosis = rlvitals.diagnose(self._folder)
        except rlvitals.VitalsError as error:
            self._tell(f"no diagnosis: {error.problem}", False)
        else:
            self._compare(diagnosis)
        self._then, self._step = time.monotonic(), step
        self._cost = self._then - started

    def _compare(self, diagnosis: rlvitals.Diagnosis) -> None:
        previous = self.diagnosis
        previous_rules = (
            set() if previous is None else {rule.name for rule in _warning_rules(previous)}
        )
        current_rules = {rule.name for rule in _warning_rules(diagnosis)}
        for rule, finding in diagnosis.findings:
            if rule.name not in current_rules or rule.name in previous_rules:
                continue
            if rule.name in self._reported:
                self._tell(f"{rule.name} is back", True)
            else:
                self._tell(f"{rule.name} since step {finding.began}: {finding.summary}", True)
                self._reported.add(rule.name)
        for name in sorted(previous_rules - current_rules):
            self._tell(f"{name} is over", False)
        if previous is None or diagnosis.verdict.word is not previous.verdict.word:
            self._tell(f"the run is {diagnosis.verdict.word.value}", False)
        self.diagnosis = diagnosis

    def health(self, step: int) -> str:
        """Return "healthy", or what is wrong, by the last diagnosis before a step."""
        del step
        if self.diagnosis is None:
            return "not judged"
        return ", ".join(rule.name for rule in _warning_rules(self.diagnosis)) or "healthy"


def _warning_rules(diagnosis: rlvitals.Diagnosis) -> list[rlvitals.lab.Rule]:
    return [
        rule for rule, finding in diagnosis.findings if finding.severity > rlvitals.Severity.NOTE
    ]
