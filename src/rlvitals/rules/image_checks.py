"""Results of a run's image checks: the counts of all checks together.

A check answers questions with their own image and with another question's; see `metrics/images.py`.
"""

from functools import reduce
from math import sqrt

import numpy as np

from rlvitals.metrics.catalogue import images
from rlvitals.rules.rule import Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

NO_RIGHT_ANSWERS = (
    "the policy gives too few right answers: whether they depend on the image cannot be told"
)


@dataclass(frozen=True, slots=True)
class ImageChecks:
    """Counts over all checks of a run. `blank`, `distinct`: the shares of the last check."""

    first_step: int  # step of the first
    last_step: int  # step of the last
    checks: int
    questions: int
    right_own: int
    right_other: int
    flips: int  # right with exactly one of the two images
    blank: float
    distinct: float

    @property
    def questions_per_check(self) -> float:
        """Questions of a check, on average."""
        return self.questions / self.checks

    @property
    def one_image(self) -> bool:
        """Whether all questions of a check had one image."""
        questions = self.questions_per_check
        return questions > 1 and round(self.distinct * questions) == 1

    @property
    def own_share(self) -> float:
        """Share of right answers with the own image."""
        return self.right_own / self.questions

    @property
    def other_share(self) -> float:
        """Share of right answers with another question's image."""
        return self.right_other / self.questions

    @property
    def interval(self) -> tuple[float, float]:
        """99.7 % interval of what the own image adds to the share of right answers.

        The answers are paired: only those that are right with one of the two images differ.
        """
        gain = self.own_share - self.other_share
        # Standard errors, a 99.7 % interval: a run is judged many times.
        spread = 3.0 * sqrt(max(self.flips / self.questions - gain**2, 0.0) / self.questions)
        return gain - spread, gain + spread

    @property
    def sentence(self) -> str:
        """Say what was asked."""
        times = "check" if self.checks == 1 else "checks"
        return f"{self.questions:,} questions in {self.checks:,} {times}, each with two images"


def image_checks(trace: Trace) -> ImageChecks | Undecided:
    """Sum up the checks that a run logged; undecided where it logged none."""
    count_metrics = (images.QUESTIONS, images.RIGHT_OWN, images.RIGHT_OTHER, images.MARKS_CHANGED)
    logged = [
        series for metric in count_metrics if (series := trace.numbers(metric.name)) is not None
    ]
    if len(logged) < len(count_metrics):
        return Undecided("no check of images is logged, and a model that sees none has none")
    steps = reduce(np.intersect1d, (series.steps for series in logged))
    if not len(steps):
        return Undecided("no check of the images logged all of its metrics at one step")

    def values_of(name: str, missing: float) -> np.ndarray:
        series = trace.numbers(name)
        if series is None or not np.isin(steps, series.steps).all():
            return np.full(len(steps), missing)
        return series.where(np.isin(series.steps, steps)).values

    questions = values_of(images.QUESTIONS.name, 0.0)
    shares = [values_of(metric.name, 0.0) for metric in count_metrics[1:]]
    possible = all(((share >= 0) & (share <= 1)).all() for share in shares)
    if not (possible and (questions >= 1).all() and questions.sum() <= 1e9):  # more are no counts
        return Undecided("the checks of the images log counts or shares that cannot be")
    own_count, other_count, flips = (round(float(questions @ share)) for share in shares)
    return ImageChecks(
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        checks=len(steps),
        questions=round(float(questions.sum())),
        right_own=own_count,
        right_other=other_count,
        flips=flips,
        blank=float(values_of(images.BLANK_SHARE.name, 0.0)[-1]),
        distinct=float(values_of(images.DISTINCT_SHARE.name, 1.0)[-1]),
    )
