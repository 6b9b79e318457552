"""Verdict of a run in one word: the first that applies in this order, by the outcome first."""

from enum import StrEnum

from rlvitals.diagnosis.exceptions import usual_meaning
from rlvitals.metrics.reward_names import checks_the_answer
from rlvitals.rules import kinds
from rlvitals.rules.answers import prefer_evaluation, verdict_trend
from rlvitals.rules.form import describe_form_gain
from rlvitals.rules.going_on import describe_end
from rlvitals.rules.likely_outcome import LikelyAnswer, likely_answer
from rlvitals.rules.outcome_blocks import lost_again
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.rules.standing import SHARE_OUTCOMES, Standing, describe_progress
from rlvitals.rules.untaught import lifeless
from rlvitals.rules.weigh import content
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace


class Word(StrEnum):
    """The verdicts, worst first; the first one that applies is taken."""

    FAILED = "failed"
    HUNG = "hung"
    COLLAPSED = "collapsed"
    UNSTABLE = "unstable"
    STALLED = "stalled"
    PLATEAU = "plateau"
    CONVERGED = "converged"
    LEARNING = "learning"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a run: one word, and the numbers that support it."""

    word: Word
    why: str


def verdict(trace: Trace, findings: tuple[tuple[Rule, Finding], ...]) -> Verdict:
    """Judge the run as a whole: by what is proven, else by the shape of its outcome's curve."""
    proven = proven_verdict(trace, findings)
    label = {"flat": Word.STALLED, "lost": Word.COLLAPSED}.get(likely_answer(trace))
    is_new = label is Word.COLLAPSED and proven.word in {Word.STALLED, Word.PLATEAU}
    if label is None or not (is_new or proven.word is Word.UNKNOWN):
        return proven
    finding = next((f for rule, f in findings if rule.verdict == label), None)
    return proven if finding is None else Verdict(label, finding.summary)


def proven_verdict(trace: Trace, findings: tuple[tuple[Rule, Finding], ...]) -> Verdict:
    """Judge by findings and tests. A run whose outcome rises is learning."""
    if trace.lifecycle.failed:
        usually = usual_meaning(describe_end(trace))
        return Verdict(
            Word.FAILED, f"{describe_end(trace)}{f' (usually: {usually})' if usually else ''}"
        )
    silent = next((finding for rule, finding in findings if rule.verdict == Word.HUNG), None)
    trend = verdict_trend(trace)
    good = trend.improves
    if trace.profile in kinds.LANGUAGE:  # a mean that rises without any update was not learned
        good = content(trend) and (trend.state == "at its ceiling" or not lifeless(trace))
    # What the outcome shows says more than what explains it.
    ranked = sorted(findings, key=lambda pair: not _of_the_outcome(pair[1]))
    verdicts = {
        Word(rule.verdict): finding
        for rule, finding in reversed(ranked)
        if rule.verdict and finding.severity >= _min_severity(Word(rule.verdict))
    }
    if silent is not None and trace.lifecycle.live and Word.FAILED not in verdicts:
        return Verdict(Word.HUNG, silent.summary)
    verdicts = _without_symptoms(verdicts, findings, trend, likely_answer(trace))
    for label in Word:
        if label not in verdicts:
            continue
        is_loss = label in (Word.COLLAPSED, Word.UNSTABLE) and _shows_loss(verdicts[label])
        is_loss = is_loss or (label is Word.STALLED and _of_right_answers(verdicts[label].metric))
        if is_loss or not (good and label in (Word.COLLAPSED, Word.UNSTABLE, Word.STALLED)):
            return Verdict(label, verdicts[label].summary)
    fallen = None if trace.profile in kinds.LANGUAGE else lost_again(prefer_evaluation(trace))
    if fallen is not None and trend.state != "holding its best":
        return _by_outcome(trace, fallen)
    plateau = next((f for r, f in findings if r.verdict == Word.PLATEAU), None)
    if plateau is not None and trend.state not in {"at its ceiling", "fallen back"}:
        return Verdict(Word.PLATEAU, plateau.summary)
    return _by_outcome(trace, trend)


def _without_symptoms(
    verdicts: dict[Word, Finding],
    findings: tuple[tuple[Rule, Finding], ...],
    trend: Standing,
    likely: LikelyAnswer,
) -> dict[Word, Finding]:
    """Leave out the words that say what the optimiser did, where the outcome says what came of it.

    An optimiser that shakes explains why an outcome stays flat, and a policy that is certain of one
    action lost nothing where the outcome never gained. A policy that is trained the wrong
    way becomes certain of it, and lost nothing. Where it becomes certain after the outcome was
    known to fall from its start, the fall came first.
    """
    symptoms: set[Word] = set()
    stalled, collapsed = verdicts.get(Word.STALLED), verdicts.get(Word.COLLAPSED)
    falls = trend.state == "falling" and _of_the_outcome(stalled)
    if falls and stalled and collapsed and 0 <= stalled.known < collapsed.began:
        symptoms.add(Word.COLLAPSED)
    if _of_the_outcome(verdicts.get(Word.STALLED)) or (trend.state == "flat" and trend.why):
        symptoms.add(Word.UNSTABLE)
    if likely == "flat":
        symptoms.add(Word.COLLAPSED)
    if any(r.name == "sign-reversed" and f.severity is Severity.ERROR for r, f in findings):
        symptoms.add(Word.COLLAPSED)
    return {w: f for w, f in verdicts.items() if w not in symptoms or _of_the_outcome(f)}


def _min_severity(label: Word) -> Severity:
    """Return how bad a finding must be to name the run: it collapsed only beyond doubt."""
    return Severity.ERROR if label is Word.COLLAPSED else Severity.WARNING


def _of_right_answers(metric: str) -> bool:
    return metric in SHARE_OUTCOMES or checks_the_answer(metric)


def _of_the_outcome(finding: Finding | None) -> bool:
    return finding is not None and finding.metric.startswith("outcome/")


def _shows_loss(finding: Finding) -> bool:
    """Return whether the outcome shows a loss, or the likelihood of what preferences are for.

    Pairs stay in order while both of their responses become unlikely.
    """
    return _of_the_outcome(finding) or finding.metric.startswith("preference/")


# A policy that is nearly deterministic or unstable by its own numbers while its outcome still
# rises has not collapsed: the finding stands, the verdict does not. An outcome that was had and
# lost has collapsed, even if its end is above its start. A return that rises while the success it
# is paid for does not is not learning the task.
GOOD_VERDICTS = (Word.CONVERGED, Word.LEARNING)  # always given with the counter-evidence


def _by_outcome(trace: Trace, trend: Standing) -> Verdict:
    labels = {
        "at its ceiling": Word.CONVERGED,
        "rising": Word.LEARNING,
        "holding its best": Word.PLATEAU,
        "flat": Word.STALLED,
        "falling": Word.STALLED,
        "fallen back": Word.COLLAPSED,
    }
    label = labels.get(trend.state, Word.UNKNOWN)
    way = describe_progress(prefer_evaluation(trace), trend) if label is Word.STALLED else ""
    reason = f"{trend.sentence}; {way}" if way else trend.sentence
    # That a person stopped it explains most.
    if label is Word.UNKNOWN and trace.lifecycle.stopped_by_hand:
        reason = f"{describe_end(trace)}; {reason}"
    form = describe_form_gain(trace) if label in GOOD_VERDICTS else ""
    return Verdict(label, f"{reason}. {form}" if form else reason)
