"""One word for a run: the first that holds, in this order, judged by the outcome first."""

from dataclasses import dataclass
from enum import StrEnum

from rlvitals.diagnosis.exceptions import usual_meaning
from rlvitals.rules import kinds
from rlvitals.rules.answers import evaluated, judged
from rlvitals.rules.form import form_alone
from rlvitals.rules.going_on import ended
from rlvitals.rules.outcome_blocks import lost_again
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.rules.standing import SHARES, Standing, way_gone
from rlvitals.rules.untaught import lifeless
from rlvitals.rules.weigh import content
from rlvitals.types import Trace


class Word(StrEnum):
    """The verdicts, worst first: their order is the order in which they are tried."""

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
    """The word, and the numbers it rests on."""

    word: Word
    why: str


def verdict(trace: Trace, findings: tuple[tuple[Rule, Finding], ...]) -> Verdict:
    """Judge the run as a whole. A run whose outcome rises is learning, whatever else is found."""
    if trace.lifecycle.failed:
        usually = usual_meaning(ended(trace))
        return Verdict(Word.FAILED, f"{ended(trace)}{f' (usually: {usually})' if usually else ''}")
    silent = next((finding for rule, finding in findings if rule.verdict == Word.HUNG), None)
    now = judged(trace)
    good = now.improves
    if trace.profile in kinds.LANGUAGE:  # a mean that rises without any update was not learned
        good = content(now) and (now.state == "at its ceiling" or not lifeless(trace))
    # What the outcome shows says more than what explains it.
    ranked = sorted(findings, key=lambda pair: not _of_the_outcome(pair[1]))
    said = {
        Word(rule.verdict): finding
        for rule, finding in reversed(ranked)
        if rule.verdict and finding.severity >= _least(Word(rule.verdict))
    }
    if silent is not None and trace.lifecycle.live and Word.FAILED not in said:
        return Verdict(Word.HUNG, silent.summary)
    if Word.STALLED in said and _of_the_outcome(said[Word.STALLED]):
        # An optimiser that shakes explains why an outcome stays flat; it is not what became of it.
        said = {w: f for w, f in said.items() if w is not Word.UNSTABLE or _of_the_outcome(f)}
    for word in Word:
        if word not in said:
            continue
        lost = word in OUTCOME_LOST and _of_the_outcome(said[word])
        lost = lost or (word is Word.STALLED and said[word].metric in SHARES)
        if lost or not (good and word in OUTCOME_DECIDES):
            return Verdict(word, said[word].summary)
    fallen = None if trace.profile in kinds.LANGUAGE else lost_again(evaluated(trace))
    if fallen is not None and now.state != "holding its best":
        return _by_outcome(trace, fallen)
    plateau = next((f for r, f in findings if r.verdict == Word.PLATEAU), None)
    if plateau is not None and now.state != "at its ceiling":
        return Verdict(Word.PLATEAU, plateau.summary)
    return _by_outcome(trace, now)


def _least(word: Word) -> Severity:
    """Return how bad a finding must be to name the run: it collapsed only beyond doubt."""
    return Severity.ERROR if word is Word.COLLAPSED else Severity.WARNING


def _of_the_outcome(finding: Finding) -> bool:
    return finding.metric.startswith("outcome/")


# A policy that is nearly deterministic or unstable by its own numbers while its outcome still
# rises has not collapsed: the finding stands, the verdict does not. An outcome that was had and
# lost has collapsed, even if its end is above its start. A return that rises while the success it
# is paid for does not is not learning the task.
OUTCOME_LOST = (Word.COLLAPSED, Word.UNSTABLE)
OUTCOME_DECIDES = (Word.COLLAPSED, Word.UNSTABLE, Word.STALLED)
PRAISE = (Word.CONVERGED, Word.LEARNING)  # never said without what speaks against it


def _by_outcome(trace: Trace, now: Standing) -> Verdict:
    words = {
        "at its ceiling": Word.CONVERGED,
        "rising": Word.LEARNING,
        "holding its best": Word.PLATEAU,
        "flat": Word.STALLED,
        "falling": Word.STALLED,
        "fallen back": Word.COLLAPSED,
    }
    word = words.get(now.state, Word.UNKNOWN)
    way = way_gone(evaluated(trace), now) if word is Word.STALLED else ""
    why = f"{now.sentence}; {way}" if way else now.sentence
    form = form_alone(trace) if word in PRAISE else ""
    return Verdict(word, f"{why}. {form}" if form else why)
