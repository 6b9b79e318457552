"""The policy is shown nothing about its questions: its images are blank, or all the same.

## What it sees
A check that answers some training questions with their own image and with another question's
logs what it was shown and how many answers were right (`language/image_*`; our trainers do so
for any task with images). Over all checks, one of:

- 99 % of the images have one colour;
- all questions of each check have one and the same image;
- images differ, a tenth or more of the answers are right, and hardly any answer (95 % interval:
  below a tenth of the right ones) is right with one of the two images alone.

An error where right answers do not improve, a note where they do. Where that cannot be told, blank
images are a warning, the others a note.

## Why it matters
A policy that is shown nothing can still learn the form of an answer, and which answers are usual.
The reward then rises for a while and ends far below what the task allows.

## What to do
Look at the images as the processor gets them: save those of one batch. Check the column, the
decoding, and what resizes or masks them. Where images differ, check that the pixel values reach
the model: the processor's output, the collator, the place of the image in the chat template.

## When it is wrong
A task with one image by design, or whose questions need none: right answers then rise without, and
this is a note. A policy that gives no right answers yet is not judged, unless its images are blank
or all the same: how the answers of random weights depend on an image means nothing.

## References
- Goyal et al. 2017, "Making the V in VQA Matter: Elevating the Role of Image Understanding".
"""

from rlvitals.metrics.catalogue import images
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.image_checks import NO_RIGHT_ANSWERS, ImageChecks, image_checks
from rlvitals.rules.rate import wilson
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.weigh import severity, sides
from rlvitals.types import Trace

MAX_BLANK_SHARE = Threshold(
    "image-not-seen.blank", 0.99, "share of images that have one colour", high=1.0
)
MIN_RIGHT_ANSWER_SHARE = Threshold(
    "image-not-seen.right", 0.1, "share of right answers below which differing images tell nothing",
    high=1.0,
)  # fmt: skip
MIN_IMAGE_DECIDED_SHARE = Threshold(
    "image-not-seen.needed", 0.1, "part of the right answers that the image must decide", high=1.0
)
IMAGE_UNSEEN_PERSISTENCE = persistence("image-not-seen")


def check(trace: Trace) -> Answer:
    """Look at what was shown, then at what it did to the answers."""
    checks = image_checks(trace)
    if isinstance(checks, Undecided):
        return checks
    if checks.blank >= MAX_BLANK_SHARE.on(trace):
        share = "all" if checks.blank == 1 else f"{checks.blank:.0%} of the"
        return _finding(
            trace, checks, f"{share} images are blank: {_guess(checks)}",
            (images.BLANK_SHARE.name, checks.blank), MAX_BLANK_SHARE.bound(trace, "default"),
            unknown=Severity.WARNING,
        )  # fmt: skip
    if checks.one_image:
        return _finding(
            trace, checks, f"all questions are shown the same image: {_guess(checks)}",
            (images.DISTINCT_SHARE.name, checks.distinct),
            Bound(1 / checks.questions_per_check, "one image for all questions of a check"),
            unknown=Severity.NOTE, counter=("a task with one image by design is no fault",),
        )  # fmt: skip
    if wilson(checks.right_own, checks.questions).low < MIN_RIGHT_ANSWER_SHARE.on(trace):
        return Undecided(NO_RIGHT_ANSWERS)
    highest = wilson(checks.flips, checks.questions).high
    limit = MIN_IMAGE_DECIDED_SHARE.bound(
        trace, "default: a tenth of the right answers", checks.own_share
    )
    if highest >= limit.value:
        return Clear()
    shares = f"with their own image and with another's {checks.own_share:.0%} are right"
    return _finding(
        trace, checks, f"the answers do not depend on the image: {shares}",
        (images.MARKS_CHANGED.name, checks.flips / checks.questions), limit,
        unknown=Severity.NOTE, counter=("a task whose questions need no image is no fault",),
    )  # fmt: skip


def _guess(checks: ImageChecks) -> str:
    return f"the policy cannot see what it is asked about, and {checks.own_share:.0%} are right"


def _finding(  # noqa: PLR0913 - what was shown, and how it weighs
    trace: Trace,
    checks: ImageChecks,
    summary: str,
    measurement: tuple[str, float],
    limit: Bound,
    *,
    unknown: Severity,
    counter: tuple[str, ...] = (),
) -> Finding:
    trend = learning_trend(trace)
    evidence, against = sides(trend)
    metric, observed = measurement
    return Finding(
        summary,
        severity=severity(trend, Severity.ERROR, unknown),
        metric=metric,
        began=checks.first_step,
        ended=checks.last_step,
        observed=observed,
        bound=limit,
        evidence=(checks.sentence, *evidence),
        counter=(*counter, *against),
    )


RULE = Rule(
    name="image-not-seen",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "images that are lost, masked or replaced before the model reads them",
        "one image that is shown with every question",
        "pixel values that do not reach the model",
    ),
    remedies=(
        "save the images of one batch as the processor gets them, and look at them",
        "check that the processor's pixel values reach the model's forward pass",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("setting-out-of-range", "judge-outage", "constant-reward"),
    verdict="stalled",
    thresholds=(
        MAX_BLANK_SHARE,
        MIN_RIGHT_ANSWER_SHARE,
        MIN_IMAGE_DECIDED_SHARE,
        IMAGE_UNSEEN_PERSISTENCE,
    ),
    persists=IMAGE_UNSEEN_PERSISTENCE,
)
