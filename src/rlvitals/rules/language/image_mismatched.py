"""Images do not belong to their questions: right answers do not depend on which image is shown.

## What it sees
A check that answers some training questions with their own image and with another question's logs
how many answers were right (`language/image_*`; our trainers do so for any task with images).
Over all checks:

- the image matters: in a share of 5 % or more of the questions the answer is right with exactly
  one of the two images;
- the own image is no better: the 99.7 % interval of what it adds to the share of right answers
  includes 0, and ends below a third of that share.

An error where right answers do not improve, a warning where that cannot be told, a note where they
do.

## Why it matters
With the images of other questions, no answer can be right but by chance. The policy learns to
ignore its images, and which answers are usual: the reward may rise a little by that.

## What to do
Look at some rows of the data with their images. Most often one of two columns was sorted, filtered
or shuffled without the other, or images are looked up by a name or an index that is off by one.

## When it is wrong
A policy that reads images but cannot yet answer this kind of question looks the same. Compare
with questions that it is known to answer. A policy without right answers is not judged, nor is one
whose answers do not change with the image: see `image-not-seen`.

## References
- Goyal et al. 2017, "Making the V in VQA Matter: Elevating the Role of Image Understanding".
"""

from rlvitals.metrics.catalogue import images
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.image_checks import NO_RIGHT_ANSWERS, image_checks
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

MIN_FLIP_SHARE = Threshold(
    "image-mismatched.matters", 0.05,
    "share of questions whose answer is right with exactly one of two images", high=1.0,
)  # fmt: skip
MIN_OWN_IMAGE_SHARE = Threshold(
    "image-mismatched.adds",
    1 / 3,
    "part of the right answers that the own image must add",
    high=1.0,
)
IMAGE_MISMATCH_PERSISTENCE = persistence("image-mismatched")


def check(trace: Trace) -> Answer:
    """Compare the right answers with the own image and with another one, over all checks."""
    checks = image_checks(trace)
    if isinstance(checks, Undecided):
        return checks
    if checks.one_image:
        return Undecided("all images are the same: no other one can be shown")
    low, high = checks.interval
    if low > 0:
        return Clear()
    if wilson(checks.flips, checks.questions).low < MIN_FLIP_SHARE.on(trace):
        return Undecided(NO_RIGHT_ANSWERS)
    limit = MIN_OWN_IMAGE_SHARE.bound(
        trace, "default: a third of the right answers", checks.own_share
    )
    if high >= limit.value:
        added = (
            f"what the own image adds, {low:+.1%} to {high:+.1%} of {checks.questions:,} answers"
        )
        return Undecided(f"too few questions to tell: {added}")
    trend = learning_trend(trace)
    evidence, counter = sides(trend)
    return Finding(
        f"right answers do not depend on which image is shown: {checks.own_share:.0%} with the"
        f" question's own, {checks.other_share:.0%} with another's",
        severity=severity(trend, Severity.ERROR, Severity.WARNING),
        metric=images.RIGHT_OWN.name,
        began=checks.first_step,
        ended=checks.last_step,
        observed=checks.own_share - checks.other_share,
        bound=limit,
        limit_on_curve=False,
        evidence=(
            checks.sentence,
            f"99.7 % interval of what the own image adds: {low:+.1%} to {high:+.1%}",
            f"the image decides whether {checks.flips / checks.questions:.0%} are right",
            *evidence,
        ),
        counter=counter,
    )


RULE = Rule(
    name="image-mismatched",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "images shuffled against their questions",
        "answers shuffled against their questions",
        "a policy that reads images and cannot answer these questions yet",
    ),
    remedies=(
        "look at ten rows of the training data with their images",
        "check what sorts, filters or shuffles one column without the others",
        "compare with questions that the model is known to answer",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("setting-out-of-range", "judge-outage", "constant-reward"),
    verdict="stalled",
    thresholds=(MIN_FLIP_SHARE, MIN_OWN_IMAGE_SHARE, IMAGE_MISMATCH_PERSISTENCE),
    persists=IMAGE_MISMATCH_PERSISTENCE,
)
