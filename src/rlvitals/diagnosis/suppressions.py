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


def mute(diagnosis: Diagnosis, run: str, mutes: Sequence[Mute], today: date) -> Diagnosis:
    """Set muted findings apart. What a muted finding explains stays: it was not what was muted."""
    holding = [
        suppression
        for suppression in mutes
        if _names(suppression, run) and not _is_expired_mute(suppression, diagnosis, today)
    ]
    if not holding or not diagnosis.cases:
        return diagnosis
    hidden: list[Muted] = []
    cases = tuple(_unmuted_cases(diagnosis.cases, holding, hidden))
    ordered = sorted(cases, key=lambda case: (-case.severity, case.finding.began))
    # A stable order: among equals the likelier stays first.
    ordered = sorted(cases, key=lambda case: -case.severity)
    return replace(diagnosis, cases=tuple(ordered), muted=tuple(hidden))


def stale(
    mutes: Iterable[Mute], judged: Sequence[tuple[str, Diagnosis]], today: date
) -> Iterator[str]:
    """Say which mutes have expired, and which fit no finding of these runs.

    A pattern that fits none of the runs is only said of where several were judged: a settings
    file above many runs names others than the one that is asked about.
    """
    for suppression in dict.fromkeys(mutes):
        runs = [diagnosis for run, diagnosis in judged if _names(suppression, run)]
        mute_name = f"{suppression.rule} ({suppression.where})"
        if not runs:
            if len(judged) > 1:
                yield f"muted for no run here: {mute_name} names {suppression.run!r}"
        elif all(_is_expired_mute(suppression, diagnosis, today) for diagnosis in runs):
            still_fires = any(
                rule.name == suppression.rule
                for diagnosis in runs
                for rule, _ in diagnosis.findings
            )
            end = (
                suppression.until
                if suppression.until and today > suppression.until
                else f"step {suppression.until_step:,}"
            )
            counts = "counts again" if still_fires else "is found no more: take the mute out"
            yield f"muted until {end}, which is over: {mute_name} {counts}"
        elif not any(
            hit.rule.name == suppression.rule for diagnosis in runs for hit in diagnosis.muted
        ):
            yield f"muted but not found: {mute_name}; take the mute out, or it hides the next one"


def _names(suppression: Mute, run: str) -> bool:
    return not suppression.run or fnmatchcase(run, suppression.run)


def _is_expired_mute(suppression: Mute, diagnosis: Diagnosis, today: date) -> bool:
    if suppression.until is not None and today > suppression.until:
        return True
    return suppression.until_step is not None and diagnosis.trace.last_step > suppression.until_step


def _unmuted_cases(
    cases: Iterable[Case], mutes: Sequence[Mute], hidden: list[Muted]
) -> Iterator[Case]:
    """Yield what is left of the cases; symptoms of a muted one stand by themselves."""
    for case in cases:
        symptoms = tuple(_unmuted_cases(case.symptoms, mutes, hidden))
        by = next(
            (suppression for suppression in mutes if suppression.rule == case.rule.name), None
        )
        if by is None:
            yield replace(case, symptoms=symptoms)
        else:
            hidden.append(Muted(case.rule, case.finding, by.reason))
            yield from symptoms
