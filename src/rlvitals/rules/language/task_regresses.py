"""A task gets worse while the others hold or rise: their mean hides it.

## What it sees
`rollout/task_reward` by task, in fifths of the run. A task whose last fifth lies more than half of
what it had gained (from its lowest to its best fifth) below its best, by more than 5 standard
errors and a tenth of the range of all tasks' rewards, while the other tasks lost less than a
quarter of theirs in the median. A warning where the task was better at its start than at its end as
well; a note otherwise.

## Why it matters
A mixture of tasks is optimised by its mean. One that is rare, or whose verifier broke, is given up
for the others, and the total still rises.

## What to do
Read this task's rollouts from before and after. Check its verifier on a known right answer. Raise
its share of the mixture, or scale its reward to the others'.

## When it is wrong
A curriculum that hardens one task lowers its reward while the policy gets better. A task with a few
rollouts a step scatters: more fifths are then within their error.

## References
- Kirkpatrick et al. 2017, "Overcoming catastrophic forgetting in neural networks".
"""

import numpy as np

from rlvitals.metrics.catalogue.rollout_metrics import REWARD_BY_TASK
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.spread import median, noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MIN_TASK_UPDATES = 20
LOSS_ERRORS = 5.0  # standard errors, for twenty tasks with autocorrelated noise

MAX_TASK_LOSS = Threshold(
    "task-regresses.loss", 0.5, "share of a task's gain that it has lost again", high=1.0
)


@dataclass(frozen=True, slots=True)
class Course:
    """A task's mean reward over each fifth of the run."""

    task: str
    series: Series
    fifths: tuple[float, ...]
    error: float  # standard error of the difference of two fifths

    @property
    def best(self) -> float:
        """The highest fifth."""
        return max(self.fifths)

    @property
    def loss(self) -> float:
        """What was lost since the best fifth, as a share of what lies below it."""
        span = self.best - min(self.fifths)
        return (self.best - self.fifths[-1]) / span if span > LOSS_ERRORS * self.error else 0.0


def check(trace: Trace) -> Answer:
    """Compare each task's last fifth with its best, and with the other tasks."""
    courses = [
        _course(task, series.finite())
        for task, series in sorted(trace.family(REWARD_BY_TASK.name).items())
        if len(series.finite()) >= MIN_TASK_UPDATES
    ]
    if len(courses) < 2:
        return Undecided("fewer than two tasks have 20 updates", (REWARD_BY_TASK.name,))
    worst = max(courses, key=lambda course: course.loss)
    other_loss = median(np.array([course.loss for course in courses if course is not worst])) or 0.0
    limit = MAX_TASK_LOSS.on(trace)
    first, last = worst.fifths[0], worst.fifths[-1]
    values = np.concatenate([course.series.values for course in courses])
    # 10 % of the range of all tasks' rewards.
    is_material = worst.best - last > 0.1 * float(np.ptp(values))
    # Beyond 25 % of the gain of the other tasks, all of them fall.
    if worst.loss <= limit or other_loss >= 0.25 or not is_material:
        return Clear()
    best_steps = worst.series.steps[worst.series.values >= worst.best]
    falls = first - last > LOSS_ERRORS * worst.error
    return Finding(
        f"the task '{worst.task}' gets worse while the others do not: its reward was "
        f"{worst.best:.3g} in its best fifth and is {last:.3g} in the last",
        severity=Severity.WARNING if falls else Severity.NOTE,
        metric=f"{REWARD_BY_TASK.name}/{worst.task}",
        began=int(best_steps[-1]),
        ended=int(worst.series.steps[-1]),
        observed=last,
        bound=Bound(
            worst.best - limit * (worst.best - min(worst.fifths)), "half of its gain is lost"
        ),
        evidence=(f"it was {first:.3g} in the first fifth",) if falls else (),
    )


def _course(task: str, series: Series) -> Course:
    stretches = np.array_split(series.values, 5)  # fifths
    noise = noise_sd(series.values) or 0.0
    error = noise * float(np.sqrt(2 / len(stretches[-1])))
    return Course(task, series, tuple(float(stretch.mean()) for stretch in stretches), error)


RULE = Rule(
    name="task-regresses",
    needs=(),
    needs_any=(REWARD_BY_TASK,),
    at_least=MIN_TASK_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "the task's verifier or data changed",
        "the other tasks are trained at its cost",
    ),
    remedies=(
        "read this task's rollouts from before and after",
        "check its verifier on a known right answer",
        "raise its share of the mixture, or scale its reward to the others'",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("judge-outage",),
    thresholds=(MAX_TASK_LOSS,),
)
