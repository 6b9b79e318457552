"""What is to be said of a run that is over, as lines of text: the file and the terminal alike."""

from collections.abc import Iterator, Mapping, Sequence

from rlvitals.diagnosis.training_summary import FLAT, LAST, Answered, Summary
from rlvitals.errors import harmless
from rlvitals.types import RECORDER_NOTE_PREFIX, Profile
from rlvitals.views import phrases

SIGNS: Mapping[Answered, str] = {"yes": "✓", "no": "✗", "unknown": "?"}
CONVERGED: Mapping[Answered, str] = {
    "yes": "✓ Converged",
    "no": "⚠ Not fully converged",
    "unknown": "? Whether it converged cannot be told",
}
UNTOLD = "whether the outcome improves, and so whether it converged, cannot be told: "
FAILED = f"{RECORDER_NOTE_PREFIX}sink "
REWARD = "reward"  # topic of the sentence that says whether the outcome improves
HOUR = 3600.0  # seconds
MIN_HOURS = 0.1  # a shorter training is written in minutes or seconds alone
NO_SCORE = "no score: the loss of a policy need not fall as it learns"
# What may be trained without a policy: there a loss that falls may be progress.
WITHOUT_POLICY = (Profile.SUPERVISED, Profile.UNKNOWN)
NAMED = 3  # findings, and sinks that failed


def page(runs: Sequence[Summary]) -> str:
    """Write all of them, a blank line between two."""
    return "\n\n".join("\n".join(lines(one)) for one in runs)


def lines(one: Summary) -> Iterator[str]:
    """Write one run; what cannot be told, and why, is said once."""
    verdict, unit = one.found.verdict, "" if one.unit == "steps" else f" {one.unit}"
    untold = one.outcome.state == "unknown" and verdict.why == one.outcome.sentence
    why = f"{UNTOLD}{one.outcome.why}" if untold else verdict.why
    if one.form:
        yield harmless(one.form)
    yield "TRAINING SUMMARY:"
    yield f"  Run: {harmless(one.name)}"
    yield f"  Verdict: {verdict.word.value}: {harmless(why)}"
    yield f"  Total steps: {one.steps:,}{unit}"
    if one.outcome.sentence != verdict.why:
        yield f"  Reward: {harmless(one.outcome.sentence)}"
    rate = "not logged" if one.learning_rate is None else phrases.number(one.learning_rate)
    yield f"  Final learning rate: {rate}"
    yield f"  Training time: {_time(one)}"
    if not untold:
        reason = one.why.removesuffix(verdict.why).removesuffix(": ")  # the verdict is above
        yield f"  {CONVERGED[one.converged]}{f' ({harmless(reason)})' if reason else ''}"
    yield from _loss(one)
    yield f"  Goals: {' · '.join(f'{SIGNS[goal.had]} {goal.text}' for goal in one.goals)}"
    if one.spread is not None:
        yield f"  Replicas: {one.spread.sentence}"
    if one.coupling is not None:
        yield f"  Temperature: {one.coupling.sentence}"
    if one.found.findings:
        yield f"  Findings: {phrases.counts(one.found)}: {_names(one)}"
    noted = [note.partition(FAILED)[2] for note in one.found.trace.notes if FAILED in note]
    yield from (f"  Sink {harmless(note)}" for note in noted[:NAMED])
    yield "  In short:"
    for sentence in one.found.tldr:
        if not (untold and sentence.topic == REWARD):
            yield f"    {phrases.SIGNS[sentence.sign]} {harmless(sentence.text)}"


def _loss(one: Summary) -> Iterator[str]:
    """Write the last loss; of a policy in one line, which offers no progress."""
    loss, profile = one.loss, one.found.trace.profile
    if loss is None:
        yield "  Final loss: not logged"
        return
    last = phrases.number(loss.last)
    course = f"{phrases.number(loss.first)} → {last}"
    if profile not in WITHOUT_POLICY:
        scatter = "" if one.ratio is None else f"; std/mean of the last {LAST}: {one.ratio:.4f}"
        yield f"  Final loss: {last}, {NO_SCORE} ({course}{scatter})"
        return
    yield f"  Final loss: {last}{'' if profile is Profile.SUPERVISED else f', {NO_SCORE}'}"
    if loss.first <= 0 or loss.share is None:
        yield f"  Loss change: {loss.last - loss.first:+.4g} ({course})"
    elif loss.share <= 0:
        yield f"  Loss reduction: {abs(100 * loss.share):.1f} % ({course})"
    else:
        yield f"  Loss increase: {100 * loss.share:.1f} % ({course})"
    yield f"  Last {LAST} losses: {_scatter(one)}"


def _time(one: Summary) -> str:
    if one.seconds is None:
        return "not known: neither the log nor a progress file has times"
    if one.seconds < MIN_HOURS * HOUR:
        return f"{phrases.duration(one.seconds)}, from {one.seconds_from}"
    short = f" ({phrases.duration(one.seconds)})" if one.seconds < HOUR else ""
    return f"{one.seconds / HOUR:.2f} hours{short}, from {one.seconds_from}"


def _scatter(one: Summary) -> str:
    if one.ratio is None:
        return "too few, or too near zero, for std/mean to say anything"
    flat = "flat" if one.ratio < FLAT else "not flat"
    return f"std/mean = {one.ratio:.4f}, {flat} (below {FLAT:g}); no proof by itself"


def _names(one: Summary) -> str:
    names = [rule.name for rule, _ in one.found.findings]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
