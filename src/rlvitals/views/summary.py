"""Write the summary of a finished run as text, for the terminal and files."""

from collections.abc import Iterator, Mapping, Sequence

from rlvitals.diagnosis.training_summary import (
    LOSS_TAIL_POINTS,
    MAX_FLAT_LOSS_RATIO,
    Answered,
    Summary,
)
from rlvitals.errors import harmless, join_first
from rlvitals.types import RECORDER_NOTE_PREFIX, Profile
from rlvitals.views import phrases

GOAL_MARKS: Mapping[Answered, str] = {"yes": "✓", "no": "✗", "unknown": "?"}
CONVERGENCE_TEXTS: Mapping[Answered, str] = {
    "yes": "✓ Converged",
    "no": "⚠ Not fully converged",
    "unknown": "? Whether it converged cannot be told",
}
SINK_NOTE = f"{RECORDER_NOTE_PREFIX}sink "
SECONDS_PER_HOUR = 3600.0
LOSS_CAVEAT = "no score: the loss of a policy need not fall as it learns"
# Training without a policy, where a falling loss may be progress.
MAX_SUMMARY_NAMES = 3  # of findings, and of failed sinks


def page(runs: Sequence[Summary]) -> str:
    """Return the summaries of all runs, separated by blank lines."""
    return "\n\n".join("\n".join(lines(summary)) for summary in runs)


def lines(summary: Summary) -> Iterator[str]:
    """Yield the lines of one run; an unknown result and its reason are stated once."""
    verdict, unit = summary.found.verdict, "" if summary.unit == "steps" else f" {summary.unit}"
    is_unknown = summary.outcome.state == "unknown" and verdict.why == summary.outcome.sentence
    reason = verdict.why
    if is_unknown:
        unknown = "whether the outcome improves, and so whether it converged, cannot be told"
        reason = f"{unknown}: {summary.outcome.why}"
    if summary.form:
        yield harmless(summary.form)
    yield "TRAINING SUMMARY:"
    yield f"  Run: {harmless(summary.name)}"
    yield f"  Verdict: {verdict.word.value}: {harmless(reason)}"
    yield f"  Total steps: {summary.steps:,}{unit}"
    if summary.outcome.sentence != verdict.why:
        yield f"  Reward: {harmless(summary.outcome.sentence)}"
    rate = "not logged" if summary.learning_rate is None else phrases.number(summary.learning_rate)
    yield f"  Final learning rate: {rate}"
    yield f"  Training time: {_time(summary)}"
    if not is_unknown:
        reason = summary.why.removesuffix(verdict.why).removesuffix(": ")  # written above
        suffix = f" ({harmless(reason)})" if reason else ""
        yield f"  {CONVERGENCE_TEXTS[summary.converged]}{suffix}"
    yield from _loss(summary)
    yield f"  Goals: {' · '.join(f'{GOAL_MARKS[goal.had]} {goal.text}' for goal in summary.goals)}"
    if summary.spread is not None:
        yield f"  Replicas: {summary.spread.sentence}"
    if summary.coupling is not None:
        yield f"  Temperature: {summary.coupling.sentence}"
    if summary.found.findings:
        names = join_first([rule.name for rule, _ in summary.found.findings], MAX_SUMMARY_NAMES)
        yield f"  Findings: {phrases.counts(summary.found)}: {names}"
    sink_notes = [
        note.partition(SINK_NOTE)[2] for note in summary.found.trace.notes if SINK_NOTE in note
    ]
    yield from (f"  Sink {harmless(note)}" for note in sink_notes[:MAX_SUMMARY_NAMES])
    yield "  In short:"
    for sentence in summary.found.tldr:
        if not (is_unknown and sentence.topic == "reward"):
            yield f"    {phrases.SIGN_MARKS[sentence.sign]} {harmless(sentence.text)}"


def _loss(summary: Summary) -> Iterator[str]:
    """Yield the last loss; of a policy on one line, because its loss measures no progress."""
    loss, profile = summary.loss, summary.found.trace.profile
    if loss is None:
        yield "  Final loss: not logged"
        return
    last = phrases.number(loss.last)
    change = f"{phrases.number(loss.first)} → {last}"
    if profile not in (Profile.SUPERVISED, Profile.UNKNOWN):
        scatter = (
            ""
            if summary.ratio is None
            else f"; std/mean of the last {LOSS_TAIL_POINTS}: {summary.ratio:.4f}"
        )
        yield f"  Final loss: {last}, {LOSS_CAVEAT} ({change}{scatter})"
        return
    yield f"  Final loss: {last}{'' if profile is Profile.SUPERVISED else f', {LOSS_CAVEAT}'}"
    if loss.first <= 0 or loss.share is None:
        yield f"  Loss change: {loss.last - loss.first:+.4g} ({change})"
    elif loss.share <= 0:
        yield f"  Loss reduction: {abs(100 * loss.share):.1f} % ({change})"
    else:
        yield f"  Loss increase: {100 * loss.share:.1f} % ({change})"
    scatter = "too few, or too near zero, for std/mean to say anything"
    if summary.ratio is not None:
        flat = "flat" if summary.ratio < MAX_FLAT_LOSS_RATIO else "not flat"
        flatness = f"{flat} (below {MAX_FLAT_LOSS_RATIO:g})"
        scatter = f"std/mean = {summary.ratio:.4f}, {flatness}; no proof by itself"
    yield f"  Last {LOSS_TAIL_POINTS} losses: {scatter}"


def _time(summary: Summary) -> str:
    if summary.seconds is None:
        return "not known: neither the log nor a progress file has times"
    if summary.seconds < 0.1 * SECONDS_PER_HOUR:  # a shorter time is written in minutes or seconds
        return f"{phrases.duration(summary.seconds)}, from {summary.seconds_from}"
    short = f" ({phrases.duration(summary.seconds)})" if summary.seconds < SECONDS_PER_HOUR else ""
    return f"{summary.seconds / SECONDS_PER_HOUR:.2f} hours{short}, from {summary.seconds_from}"
