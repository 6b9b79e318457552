"""Results of a preflight: a check that passed, failed, or could not be made."""

from collections.abc import Callable, Iterable

from rlvitals.errors import VitalsError
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Passed:
    """The checked condition is met."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The condition is not met: `variable` is `value`, and `why` that is wrong."""

    variable: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class CouldNotCheck:
    """The condition is unknown, and `why`: never counted as passed."""

    why: str


Outcome = Passed | Failed | CouldNotCheck


@dataclass(frozen=True, slots=True)
class Check:
    """One condition: its `name`, what it `says`, and its outcome."""

    name: str  # "ratio-is-one"
    says: str  # "the probability ratio is 1 before the first gradient step"
    outcome: Outcome

    def __str__(self) -> str:
        """Return one or two lines, the outcome first."""
        match self.outcome:
            case Failed(variable, value, why):
                return f"failed       {self.says}\n             {variable} = {value}: {why}"
            case CouldNotCheck(why):
                return f"not checked  {self.says}\n             {why}"
            case _:
                return f"passed       {self.says}"


@dataclass(frozen=True, slots=True)
class Preflight:
    """Report of a preflight. It prints the answer first, failures before the rest."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(c for c in self.checks if isinstance(c.outcome, Failed))

    @property
    def unchecked(self) -> tuple[Check, ...]:
        """The checks that could not be made."""
        return tuple(c for c in self.checks if isinstance(c.outcome, CouldNotCheck))

    @property
    def passed(self) -> tuple[Check, ...]:
        """The checks that passed."""
        return tuple(c for c in self.checks if isinstance(c.outcome, Passed))

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed."""
        return bool(self.passed) and not self.failed

    def __str__(self) -> str:
        """Return the answer in one line, then a line or two for each check."""
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed"
        if self.unchecked:
            counts += f", {len(self.unchecked)} could not be checked"
        answer = "ready" if self.ok else "not ready" if self.failed else "nothing was checked"
        lines = (str(check) for check in (*self.failed, *self.unchecked, *self.passed))
        return "\n".join((f"preflight: {answer} ({counts})", *(_indent(line) for line in lines)))

    def require(self) -> "Preflight":
        """Return the report itself; raise VitalsError if a check failed."""
        if not self.failed:
            return self
        first, *more = self.failed
        outcome = first.outcome
        assert isinstance(outcome, Failed)  # noqa: S101 - `failed` contains nothing else
        raise VitalsError(
            f"the preflight failed: {outcome.variable} = {outcome.value}: {outcome.why}",
            where=first.name + "".join(f", {check.name}" for check in more),
            hint="print the report: it names what every failed check saw",
        )


def _indent(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.splitlines())


def join_checks(*checks: Check | Iterable[Check]) -> tuple[Check, ...]:
    """Return single checks and groups of checks as one tuple, in order."""
    return tuple(
        check for group in checks for check in ((group,) if isinstance(group, Check) else group)
    )


def run_check(name: str, says: str, make: Callable[[], Outcome]) -> Check:
    """Run a check; an exception becomes CouldNotCheck with its message."""
    try:
        outcome = make()
    except Exception as error:  # noqa: BLE001 - a preflight reports and never ends a training
        outcome = CouldNotCheck(f"{type(error).__name__}: {error}")
    return Check(name, says, outcome)
