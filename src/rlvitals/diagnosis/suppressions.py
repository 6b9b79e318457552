"""Findings that a person has muted: set apart from the others, never out of sight.

A mute holds for a rule, for the runs whose name its pattern fits, until a day or a step. What it
hides is counted and named with its reason; one that has expired or fits nothing is said.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase

from rlvitals.diagnosis.engine import Diagnosis, Muted
from rlvitals.diagnosis.root_cause import Case
from rlvitals.options import Mute


def mute(found: Diagnosis, run: str, mutes: Sequence[Mute], today: date) -> Diagnosis:
    """Set muted findings apart. What a muted finding explains stays: it was not what was muted."""
    holding = [one for one in mutes if _names(one, run) and not _expired(one, found, today)]
    if not holding or not found.cases:
        return found
    hidden: list[Muted] = []
    cases = tuple(_left(found.cases, holding, hidden))
    ordered = sorted(cases, key=lambda case: (-case.severity, case.finding.began))
    # A stable order: among equals the likelier stays first.
    ordered = sorted(cases, key=lambda case: -case.severity)
    return replace(found, cases=tuple(ordered), muted=tuple(hidden))


def stale(
    mutes: Iterable[Mute], judged: Sequence[tuple[str, Diagnosis]], today: date
) -> Iterator[str]:
    """Say which mutes have expired, and which fit no finding of these runs.

    A pattern that fits none of the runs is only said of where several were judged: a settings
    file above many runs names others than the one that is asked about.
    """
    for one in dict.fromkeys(mutes):
        runs = [found for run, found in judged if _names(one, run)]
        about = f"{one.rule} ({one.where})"
        if not runs:
            if len(judged) > 1:
                yield f"muted for no run here: {about} names {one.run!r}"
        elif all(_expired(one, found, today) for found in runs):
            still = any(rule.name == one.rule for found in runs for rule, _ in found.findings)
            ended = one.until if one.until and today > one.until else f"step {one.until_step:,}"
            counts = "counts again" if still else "is found no more: take the mute out"
            yield f"muted until {ended}, which is over: {about} {counts}"
        elif not any(hit.rule.name == one.rule for found in runs for hit in found.muted):
            yield f"muted but not found: {about}; take the mute out, or it hides the next one"


def _names(one: Mute, run: str) -> bool:
    return not one.run or fnmatchcase(run, one.run)


def _expired(one: Mute, found: Diagnosis, today: date) -> bool:
    if one.until is not None and today > one.until:
        return True
    return one.until_step is not None and found.trace.last_step > one.until_step


def _left(cases: Iterable[Case], mutes: Sequence[Mute], hidden: list[Muted]) -> Iterator[Case]:
    """Yield what is left of the cases; symptoms of a muted one stand by themselves."""
    for case in cases:
        symptoms = tuple(_left(case.symptoms, mutes, hidden))
        by = next((one for one in mutes if one.rule == case.rule.name), None)
        if by is None:
            yield replace(case, symptoms=symptoms)
        else:
            hidden.append(Muted(case.rule, case.finding, by.reason))
            yield from symptoms
