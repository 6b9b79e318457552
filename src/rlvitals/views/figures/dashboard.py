"""The least that one should look at: outcome, health and speed in seven charts, and the verdict.

Of a language model the optimiser as well, and the samples that are kept.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics.catalogue import optimiser, outcome, throughput
from rlvitals.rules import kinds
from rlvitals.rules.answers import answers
from rlvitals.rules.standing import label
from rlvitals.types import Profile
from rlvitals.views import phrases
from rlvitals.views.figures.figure import Figure, Kind, Line, Panel, Subject, Words
from rlvitals.views.figures.nsr_metrics import SHARES as SAMPLES
from rlvitals.views.figures.panels import finished, first_of
from rlvitals.views.figures.policy import ENTROPIES, KLS, REFERENCE
from rlvitals.views.figures.rewards import REWARDS, SHARES
from rlvitals.views.figures.speeds import speed
from rlvitals.views.figures.value import LOSSES

RETURNS = (
    outcome.RETURN, outcome.EVAL_RETURN, outcome.RLHF_REWARD, outcome.SCORE, *REWARDS,
)  # fmt: skip
SPEEDS = (throughput.STEPS_PER_SECOND, throughput.UPDATES_PER_SECOND)
MODELS = (*kinds.LANGUAGE, Profile.SUPERVISED)
FINDINGS = 5  # that are named
RUNS = 8  # whose verdicts are told


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw a row each for outcome, health and speed."""
    return (
        _success(subjects),
        first_of(subjects, *RETURNS, title="Return"),
        Panel("Verdict", kind=Kind.WORDS, words=tuple(_verdict(subjects))),
        first_of(subjects, *ENTROPIES, title="Entropy", linear=True),
        first_of(subjects, *KLS, *REFERENCE, title="KL"),
        _critic(subjects),
        speed(subjects, SPEEDS[0]),
        speed(subjects, SPEEDS[1]),
        Panel("Findings", kind=Kind.WORDS, words=tuple(_findings(subjects))),
        *_of_models(subjects),
    )


def _critic(subjects: Sequence[Subject]) -> Panel:
    """Draw the critic's loss; where completions are filtered instead, the share that is kept."""
    if all(one.trace.profile in kinds.FILTERED for one in subjects):
        return first_of(subjects, *SAMPLES, title="Samples kept")
    return first_of(subjects, *LOSSES, title="Value loss")


def _of_models(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw what a language model's training is watched by besides: the optimiser."""
    if not all(one.trace.profile in MODELS for one in subjects):
        return ()
    found = (
        first_of(subjects, optimiser.LOSS, title="Training loss"),
        first_of(subjects, optimiser.LEARNING_RATE, title="Learning rate", smooth=False),
        first_of(subjects, optimiser.GRAD_NORM, title="Gradient norm"),
    )
    return tuple(panel for panel in found if panel.lines)


def _success(subjects: Sequence[Subject]) -> Panel:
    """Draw how often the task is done; of a language model, how often its answer is right."""
    panel = first_of(subjects, *SHARES, title="Success rate", low=0.0, high=1.0)
    if panel.lines:
        return panel
    lines = tuple(
        Line(label(found[0]), found[0], one.trace[found[0]], run)
        for run, one in enumerate(subjects)
        if one.trace.profile in kinds.LANGUAGE and (found := answers(one.trace)) is not None
    )
    return finished(subjects, replace(panel, lines=lines, absent=""), ()) if lines else panel


def _verdict(subjects: Sequence[Subject]) -> Sequence[Words]:
    if len(subjects) == 1:
        verdict = subjects[0].found.verdict
        colour = phrases.VERDICT[verdict.word].split()[-1]
        return (Words(verdict.word.value.upper(), f"bold {colour}"), Words(verdict.why))
    told = [
        Words(f"{one.found.verdict.word.value}: {one.label}", f"run{run}")
        for run, one in enumerate(subjects[:RUNS])
    ]
    more = len(subjects) - len(told)
    return (*told, *([Words(f"and {more} more", "dim")] if more else []))


def _findings(subjects: Sequence[Subject]) -> Sequence[Words]:
    if len(subjects) > 1:
        return [
            Words(f"{phrases.counts(one.found)}: {one.label}", f"run{run}")
            for run, one in enumerate(subjects[:RUNS])
        ]
    cases = subjects[0].found.every
    told = [
        Words(
            f"{case.finding.severity.name.lower()}[{case.rule.name}] from {case.finding.began:,}",
            case.finding.severity.name.lower(),
        )
        for case in sorted(cases, key=lambda case: -case.finding.severity)[:FINDINGS]
    ]
    more = len(cases) - len(told)
    if not told:
        told = [Words("none", "dim")]
    return (*told, *([Words(f"and {more} more", "dim")] if more else []))


FIGURE = Figure(
    "dashboard",
    "Dashboard",
    needs=(*SHARES, *RETURNS, *ENTROPIES, *KLS, *REFERENCE, *LOSSES, *SPEEDS),
    panels=panels,
    columns=3,
)
