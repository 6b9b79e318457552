"""Metrics of a vision policy's dependence on its images.

A check answers each of some questions twice: with its own image, and with one that belongs to
another question.
"""

from rlvitals.metrics.metric import NOT_NEGATIVE, Band, Metric, share_metric


def _share(suffix: str, title: str, meaning: str, formula: str, also: str) -> Metric:
    see_also = f"language/{also}"
    return share_metric(f"language/{suffix}", title, meaning, formula, see_also, better="depends")


QUESTIONS = Metric(
    name="language/image_questions",
    title="Questions of an image check",
    unit="questions",
    kind="health",
    meaning="Questions that the check answered with their own image and with another one.",
    formula="count of questions",
    better="depends",
    healthy=Band(low=0.0),
    possible=NOT_NEGATIVE,
    see_also=("language/image_right_own",),
)
RIGHT_OWN = _share(
    "image_right_own", "Right with the own image",
    "Share of the check's questions that are answered right when their own image is shown.",
    "right answers with the own image / questions",
    "image_right_other",
)  # fmt: skip
RIGHT_OTHER = _share(
    "image_right_other", "Right with another image",
    "Share of the same questions that are answered right when another question's image is shown:"
    " what guessing earns. As high as with their own, right answers do not depend on the image.",
    "right answers with another question's image / questions",
    "image_right_own",
)  # fmt: skip
MARKS_CHANGED = _share(
    "image_marks_changed", "Right with one of two images",
    "Share of the questions that are answered right with exactly one of the two images. At 0 the"
    " policy answers as well without the image.",
    "questions right with exactly one of the two images / questions",
    "image_right_own",
)  # fmt: skip
DISTINCT_SHARE = _share(
    "image_distinct_share", "Distinct images",
    "Distinct images for each question of the check. One image for all of them tells the policy"
    " nothing about any of them, unless the task has one image by design.",
    "distinct images / questions",
    "image_blank_share",
)  # fmt: skip
BLANK_SHARE = _share(
    "image_blank_share", "Blank images",
    "Share of the check's images whose pixels all have one colour.",
    "images of one colour / questions",
    "image_distinct_share",
)  # fmt: skip

METRICS = (QUESTIONS, RIGHT_OWN, RIGHT_OTHER, MARKS_CHANGED, DISTINCT_SHARE, BLANK_SHARE)
