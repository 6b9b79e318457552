"""Decide which alarms are sent and which are cleared, each once.

An alarm is sent once it has lasted `wait` seconds and two diagnoses. One that ends earlier is never
sent; one that was told and passes is taken back. An alarm that returns must stand twice as long
each time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from rlvitals.alerts.conditions import Alarm
from rlvitals.startup.fast_dataclass import dataclass

WAIT_SECONDS = 60.0  # that an alarm lasts before it is sent


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell: an alarm of a run, or that it is over."""

    run: str
    alarm: Alarm
    time: float  # seconds since the epoch, at which the alarm was first seen
    is_cleared: bool = False


@dataclass(slots=True)
class _Course:
    """The course of one alarm of one run."""

    alarm: Alarm
    seen_at: float  # when it was first seen, in epoch seconds
    is_told: bool = False
    diagnoses: int = 0  # in a row that show it; 0: it has passed
    returns: int = 0


@dataclass(slots=True)
class _RunState:
    """The alarms of one run; `is_old`: it has shown no new row since the program began."""

    courses: dict[str, _Course] = field(default_factory=dict)
    is_old: bool = True


class Tracker:
    """The alarms of all runs on their way to one channel."""

    def __init__(self, start: float, wait: float = WAIT_SECONDS) -> None:
        """`start`: epoch seconds; a run whose rows are all older is no news."""
        self._start, self._wait = start, wait
        self._runs: dict[str, _RunState] = {}

    def update(
        self, run: str, alarms: Mapping[str, Alarm], time_s: float, last_row: float | None = None
    ) -> None:
        """Take the alarms that hold now. `last_row`: epoch seconds; inf for a run that goes on."""
        state = self._runs.pop(run, None) or _RunState()
        self._runs[run] = state  # runs are in the order of their last update
        state.is_old = state.is_old and (last_row is None or last_row < self._start)
        for subject, alarm in alarms.items():
            course = state.courses.setdefault(subject, _Course(alarm, time_s))
            if not (course.diagnoses or course.is_told):
                course.seen_at = time_s
            course.alarm = alarm
            course.diagnoses += 1
        for subject in state.courses.keys() - alarms.keys():
            state.courses[subject].diagnoses = 0
        if len(self._runs) > 10_000:  # runs: those seen longest ago are forgotten
            del self._runs[next(iter(self._runs))]

    def collect(self, time_s: float) -> Iterator[Notice]:
        """Yield what is to be told now."""
        for run, state in self._runs.items():
            for course in () if state.is_old else state.courses.values():
                if course.is_told and not course.diagnoses:
                    course.is_told = False
                    course.returns += 1
                    yield Notice(run, course.alarm, course.seen_at, is_cleared=True)
                elif self._is_due(course, time_s):
                    course.is_told = True
                    yield Notice(run, course.alarm, course.seen_at)

    def _is_due(self, course: _Course, time_s: float) -> bool:
        if course.is_told or not course.diagnoses or course.alarm.cause:
            return False
        # Seconds; at most an hour for one that has returned often.
        wait = min(self._wait * 2**course.returns, 3600.0)
        # Two diagnoses, by `benchmarks/stopping.py`: at the first of them 4 of 674 healthy runs are
        # alerted, so 1.
        has_lasted = course.diagnoses >= 2 and time_s - course.seen_at >= wait
        return course.alarm.is_final or has_lasted
