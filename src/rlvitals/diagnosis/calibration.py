"""From judged runs to each rule's measured rates, and to the module that holds them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.rules.rate import FAMILIES, Rate
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass

RATES_MODULE_HEADER = '''\
"""Measured rates of each rule, by family. Written by `rates_module`: not by hand."""

from collections.abc import Mapping

from rlvitals.rules.rate import Rate

# family, healthy runs judged, of these rang, of these as an error, faulted, caught, named first,
# frameworks and tasks of the healthy runs
RATES: Mapping[str, tuple[Rate, ...]] = {
'''


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules said of one run whose state is known."""

    family: str  # of kinds of training: "on-policy control"
    healthy: bool  # whether the run is known to be healthy
    said: Mapping[str, Severity | None]  # every rule that could judge; None where it was clear
    first: str = ""  # the rule of the first root cause; empty where nothing was found
    expects: tuple[str, ...] = ()  # the rules that should name its fault, where the log shows it
    framework: str = ""  # that recorded it; empty: not known
    task: str = ""


def reduce_diagnosis(
    diagnosis: Diagnosis,
    *,
    healthy: bool,
    expects: Iterable[str] = (),
    framework: str = "",
    task: str = "",
) -> Judged:
    """Reduce a diagnosis to what is counted.

    The severity of a rule is that of its check, also if the finding was held at a note.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of a run whose state is known.
    healthy : bool
        Whether the run is healthy.
    expects : iterable of str
        Names of the rules that should name its fault.
    framework : str
        Framework that recorded the run. Default: unknown.
    task : str
        Task of the run. Default: unknown.
    """
    severities: dict[str, Severity | None] = {rule.name: None for rule in diagnosis.clear}
    severities |= {case.rule.name: case.said for case in diagnosis.every}
    first = diagnosis.cases[0].rule.name if diagnosis.cases else ""
    family = FAMILIES[diagnosis.trace.profile]
    return Judged(family, healthy, severities, first, tuple(expects), framework, task)


def tally(runs: Iterable[Judged]) -> dict[str, tuple[Rate, ...]]:
    """Count each rule in each family; families and rules without a run are left out."""
    rates: dict[tuple[str, str], Rate] = {}
    origins: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for run in runs:
        for name in {*run.said, *run.expects}:
            key = name, run.family
            rates[key] = _count_run(rates.get(key, Rate(run.family, 0)), run, name)
            if run.healthy and run.framework and name in run.said:
                origins.setdefault(key, set()).add((run.framework, run.task))
    for key, pairs in origins.items():
        frameworks = len({framework for framework, _ in pairs})
        rates[key] = replace(rates[key], frameworks=frameworks, tasks=len(pairs))
    names = sorted({name for name, _ in rates})
    return {name: tuple(rates[key] for key in sorted(rates) if key[0] == name) for name in names}


def _count_run(rate: Rate, run: Judged, name: str) -> Rate:
    severity = run.said.get(name)
    rang = severity is not None and severity >= Severity.WARNING
    if run.healthy:
        return replace(
            rate,
            healthy=rate.healthy + (name in run.said),
            rang=rate.rang + rang,
            errors=rate.errors + (severity is Severity.ERROR),
        )
    if name not in run.expects:
        return rate
    return replace(
        rate,
        faulted=rate.faulted + 1,
        caught=rate.caught + rang,
        first=rate.first + (rang and run.first == name),
    )


def rates_module(rates: Mapping[str, Sequence[Rate]]) -> str:
    """Write `rules/rates.py`: plain data, sorted, one line for each rule and family."""
    lines = []
    for name in sorted(rates):
        calls = [_call(rate) for rate in rates[name]]
        if len(calls) == 1:  # as the formatter has it
            lines.append(f'    "{name}": ({calls[0]},),')
            continue
        lines += [f'    "{name}": (', *(f"        {call}," for call in calls), "    ),"]
    return RATES_MODULE_HEADER + "\n".join([*lines, "}", ""])


def _call(rate: Rate) -> str:
    family, *numbers = astuple(rate)
    return f'Rate("{family}", {", ".join(map(str, numbers))})'
