"""The checks of the doctor, and their results."""

from collections.abc import Callable, Iterable

from rlvitals.doctor.context import Context
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: its evidence, and what to try."""

    severity: Severity
    said: str  # a sentence
    evidence: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()  # commands, or sentences


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    asks: str  # what is asked, as a sentence that ends with a question mark
    look: Callable[[Context], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Examination:
    """Results of all checks of a run."""

    context: Context
    troubles: tuple[tuple[Check, Problem], ...]  # the gravest first
    fine: tuple[Check, ...]
