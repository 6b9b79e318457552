"""Figure: dashboard of outcome, health and speed in seven charts, and the verdict.

For language models also the optimiser and the share of selected samples.
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
from rlvitals.views.figures.nsr_metrics import SAMPLE_SHARES as SAMPLES
from rlvitals.views.figures.panels import annotate, first_of
from rlvitals.views.figures.policy import ENTROPY_METRICS, KL_METRICS, REFERENCE_KLS
from rlvitals.views.figures.rewards import MEAN_REWARDS, SUCCESS_SHARES
from rlvitals.views.figures.speeds import speed
from rlvitals.views.figures.value import VALUE_LOSSES

DASHBOARD_RETURNS = (
    outcome.RETURN, outcome.EVAL_RETURN, outcome.RLHF_REWARD, outcome.SCORE, *MEAN_REWARDS,
)  # fmt: skip
DASHBOARD_SPEEDS = (throughput.STEPS_PER_SECOND, throughput.UPDATES_PER_SECOND)
MAX_DASHBOARD_RUNS = 8  # with a line each


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a row of panels each for outcome, health and speed."""
    # Without a success rate, the accuracy of a language model's answers.
    panel = first_of(subjects, *SUCCESS_SHARES, title="Success rate", low=0.0, high=1.0)
    if panel.lines:
        success = panel
    else:
        lines = tuple(
            Line(label(answer[0]), answer[0], subject.trace[answer[0]], run)
            for run, subject in enumerate(subjects)
            if subject.trace.profile in kinds.LANGUAGE
            and (answer := answers(subject.trace)) is not None
        )
        success = annotate(subjects, replace(panel, lines=lines, absent=""), ()) if lines else panel
    return (
        success,
        first_of(subjects, *DASHBOARD_RETURNS, title="Return"),
        Panel("Verdict", kind=Kind.WORDS, words=tuple(_verdict(subjects))),
        first_of(subjects, *ENTROPY_METRICS, title="Entropy", linear=True),
        first_of(subjects, *KL_METRICS, *REFERENCE_KLS, title="KL"),
        first_of(subjects, *SAMPLES, title="Samples kept")
        if all(subject.trace.profile in kinds.THRESHOLD_FILTERED for subject in subjects)
        else first_of(subjects, *VALUE_LOSSES, title="Value loss"),
        speed(subjects, DASHBOARD_SPEEDS[0]),
        speed(subjects, DASHBOARD_SPEEDS[1]),
        Panel("Findings", kind=Kind.WORDS, words=tuple(_findings(subjects))),
        *_of_models(subjects),
    )


def _of_models(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the optimiser's panels for language models."""
    if not all(
        subject.trace.profile in (*kinds.LANGUAGE, Profile.SUPERVISED) for subject in subjects
    ):
        return ()
    candidates = (
        first_of(subjects, optimiser.LOSS, title="Training loss"),
        first_of(subjects, optimiser.LEARNING_RATE, title="Learning rate", smooth=False),
        first_of(subjects, optimiser.GRAD_NORM, title="Gradient norm"),
    )
    return tuple(panel for panel in candidates if panel.lines)


def _verdict(subjects: Sequence[Subject]) -> Sequence[Words]:
    if len(subjects) == 1:
        verdict = subjects[0].found.verdict
        colour = phrases.VERDICT_COLOURS[verdict.word].split()[-1]
        return (Words(verdict.word.value.upper(), f"bold {colour}"), Words(verdict.why))
    paragraphs = [
        Words(f"{subject.found.verdict.word.value}: {subject.label}", f"run{run}")
        for run, subject in enumerate(subjects[:MAX_DASHBOARD_RUNS])
    ]
    hidden_count = len(subjects) - len(paragraphs)
    return (*paragraphs, *([Words(f"and {hidden_count} more", "dim")] if hidden_count else []))


def _findings(subjects: Sequence[Subject]) -> Sequence[Words]:
    if len(subjects) > 1:
        return [
            Words(f"{phrases.counts(subject.found)}: {subject.label}", f"run{run}")
            for run, subject in enumerate(subjects[:MAX_DASHBOARD_RUNS])
        ]
    cases = subjects[0].found.every
    paragraphs = [
        Words(
            f"{case.finding.severity.name.lower()}[{case.rule.name}] from {case.finding.began:,}",
            case.finding.severity.name.lower(),
        )
        for case in sorted(cases, key=lambda case: -case.finding.severity)[:5]
    ]
    hidden_count = len(cases) - len(paragraphs)
    if not paragraphs:
        paragraphs = [Words("none", "dim")]
    return (*paragraphs, *([Words(f"and {hidden_count} more", "dim")] if hidden_count else []))


FIGURE = Figure(
    "dashboard",
    "Dashboard",
    needs=(
        *SUCCESS_SHARES,
        *DASHBOARD_RETURNS,
        *ENTROPY_METRICS,
        *KL_METRICS,
        *REFERENCE_KLS,
        *VALUE_LOSSES,
        *DASHBOARD_SPEEDS,
    ),
    panels=panels,
    columns=3,
)
