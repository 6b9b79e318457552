"""The outcome was good and is gone.

## What it sees
The outcome's last tenth is below half of what the run had gained at its best (best block of
twenty, less the first), and the outcome had gained something that counts. The best of twenty
blocks is high by its luck too, so the fall must stand out: five standard deviations of such a
difference under autocorrelated noise, or seven times the scatter from point to point, or more
than 99 in 100 draws of the blocks' own scatter, with the best chosen anew in each, or five standard
errors of two means over as many episodes as each value holds, where the log says how many. Asked
anew at every step: a dip that recovers is no collapse, and a finding from within a dip is
retracted once later data clear it. Training is judged first, then its evaluations: a fall of these
counts by their scatter from one to the next, once it has lasted for a fifth of the run. A mean over
a hundred episodes is not judged before a hundred have ended, and its gain has to exceed half the
standard deviation of an episode: it wanders slowly by as much.

A run that does not go on is warned of at less. Where no rise and no flat line is proven: a later
block stood significantly above the first third, and half of that gain is gone at the end. Where the
span of the task is not known: a third of the gain is gone over the last tenth, and gain and loss
are six standard deviations of the change from one block of twenty to the next, four where the
blocks since the best fall in order. Where the log is the
end of a longer run: its evaluations end far below their first ones. A
share of right answers is warned of where its last tenth lies a fifth of the answers below its best
tenth: the share's span is known, and so is how batches scatter.

An outcome that rose, and whose blocks fall in order ever since the best one (Kendall's test, 1 in
1,000), by a loss that counts, is noted whatever share of the gain is lost; so is one of which half
of the gain is gone as the log ends, while the last three blocks of twenty fall.

Where no test tells, and where an outcome is proven not to have improved, the shape of a finished
run's curve may tell that it lost what it had: a model fitted to published curves gives the
probability (decision 128). That is a note.

## Why it matters
The final policy is worse than one that was held before. If checkpoints were kept it can be had
back; if training goes on from here, most of the time it does not come back by itself.

## What to do
Stop, and go back to the checkpoint before the step at which it began. Then look at what the
policy's own numbers did there: a KL spike or a lost entropy names the cause; if they are quiet,
something outside of the policy changed (environment, reward, data).

## When it is wrong
Value-based methods on small tasks swing by half their range and come back. Curricula make a task
harder on purpose: the return falls while the agent improves. Where a column of the log names the
stage (stage, level, lesson, difficulty) and the outcome drops as it moves, each stage is judged by
itself; without such a column it is not known. Where the mean return is positive and
falls in one line with the mean episode length, and the policy is certain, every episode still ends
with the same pay, later: no collapse.

## References
- Nikishin et al. 2022, "The Primacy Bias in Deep Reinforcement Learning".
- Dohare et al. 2023, "Overcoming Policy Collapse in Deep Reinforcement Learning".
"""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import causes, kinds
from rlvitals.rules.answers import answers, prefer_evaluation, verdict_trend
from rlvitals.rules.course import (
    MIN_DECLINE_ERRORS,
    MIN_LATE_SHARE,
    decline_chance,
    is_clear_loss,
    is_no_loss,
)
from rlvitals.rules.curves import find_proven_loss
from rlvitals.rules.episode_window import window_levels
from rlvitals.rules.falling import first_full_step
from rlvitals.rules.gains import MIN_ANSWER_LOSS, late_answer_loss
from rlvitals.rules.going_on import liveness
from rlvitals.rules.likely_outcome import likely_answer, likely_outcome
from rlvitals.rules.outcome_blocks import stands_where_training_rose
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
from rlvitals.rules.standing import (
    EVAL_OUTCOME,
    OUTCOME_METRICS,
    SHARE_OUTCOMES,
    label,
    least_that_counts,
    outcome,
    slow_swing,
    up,
)
from rlvitals.signals.outcome_course import (
    COURSE_END_BLOCKS,
    MIN_BLOCK_SD,
    Course,
    course_of,
    late_loss,
)
from rlvitals.types import Series, Trace

RETURN_COLLAPSE_PERSISTENCE = persistence("return-collapse")
MIN_RETURN_LOSS = Threshold("return-collapse.lost", 0.5, "part of the gain that is lost")
ONSET_LOSS_SHARE = 0.25  # of the gain, lost by the first block of the fall
MIN_COLLAPSE_POINTS = 20  # fewer than two per block would be noise


def check(trace: Trace) -> Answer:
    """Compare the end with the best stretch of the run: in training, then in its evaluations."""
    answer = _check(trace)
    if not isinstance(answer, Finding):
        lost = _ends_below_its_best(trace) or _probably_lost(trace) or _declines(trace)
        answer = answer if lost is None else lost
    if isinstance(answer, Finding) or not {RETURN.name, EVAL_OUTCOME} <= trace.series.keys():
        return answer
    if stands_where_training_rose(trace):
        return answer
    other_series = {name: series for name, series in trace.series.items() if name != RETURN.name}
    held_out = _check(replace(trace, series=other_series))
    return held_out if isinstance(held_out, Finding) else answer


def _check(trace: Trace) -> Answer:  # noqa: PLR0911 - each way to be no collapse
    picked = outcome(trace)
    if picked is None or len(picked[1]) < MIN_COLLAPSE_POINTS:
        return Undecided(
            f"fewer than {MIN_COLLAPSE_POINTS} values of the outcome", ("outcome/return",)
        )
    name, series = picked
    course = course_of(series.values)
    material, origin = least_that_counts(trace, name, series)
    material = max(material, slow_swing(trace, name, origin))
    if course.gain <= max(material, MIN_BLOCK_SD * course.noise):
        return Clear()  # nothing was gained: no_learning's business
    if course.loss < MIN_RETURN_LOSS.on(trace) * course.total_gain:
        return Clear()
    anew = name == EVAL_OUTCOME
    proven = find_proven_loss(series.values, material, anew=anew) or _loss_by_windows(
        trace, name, series
    )
    if not (proven or is_clear_loss(name, series.values, course)):
        return Clear()
    if is_no_loss(trace, name, series, course):
        return Clear()
    if series.steps[-1] < first_full_step(trace, name, series):
        return Clear()  # a mean over a hundred episodes of which few have ended
    return _finding(name, series, course, MIN_RETURN_LOSS.on(trace))


def _ends_below_its_best(trace: Trace) -> Finding | None:
    """Warn of a whole run that ends half of a significant gain below its best."""
    if liveness(trace).live:
        return None
    trend, picked = verdict_trend(trace), outcome(prefer_evaluation(trace))
    if trace.profile in kinds.LANGUAGE:
        picked = answers(trace)
    if trend.state != "fallen back" or picked is None or trend.metric != picked[0]:
        return None
    name, series = picked
    course = course_of(series.values)
    if up(name) < 0 or course.total_gain <= 0:
        return None
    of_answers = trace.profile in kinds.LANGUAGE or name in SHARE_OUTCOMES
    if of_answers and late_answer_loss(series.values) is not None:
        limit = Bound(trend.best - MIN_ANSWER_LOSS, "a fifth of the answers below its best")
        finding = _finding(name, series, course, MIN_RETURN_LOSS.on(trace))
        return replace(finding, severity=Severity.WARNING, bound=limit)
    language = trace.profile in kinds.LANGUAGE
    min_share = MIN_RETURN_LOSS.on(trace) if language else MIN_LATE_SHARE
    if course.loss < min_share * course.total_gain:
        course = late_loss(series.values).course  # an outlier more at either end is clipped
    if course.loss < min_share * course.total_gain:
        return None
    return replace(_finding(name, series, course, min_share), severity=Severity.WARNING)


def _probably_lost(trace: Trace) -> Finding | None:
    """Judge a whole run by the shape of its curve, where no test proves what became of it."""
    likely = likely_outcome(trace) if likely_answer(trace) == "lost" else None
    if likely is None:
        return None
    return Finding(
        f"{label(likely.metric)} was {likely.best:.4g} around step {likely.best_step:,} and is "
        f"{likely.last:.4g} now",
        severity=Severity.NOTE,
        metric=likely.metric,
        began=likely.best_step,
        ended=trace.last_step,
        observed=likely.last,
        bound=Bound(likely.best, "mean of this run's own best sixth"),
        evidence=(likely.evidence,),
    )


def _declines(trace: Trace) -> Finding | None:
    """Note an outcome that rose and has fallen ever since its best, by less than makes a loss."""
    picked = outcome(prefer_evaluation(trace))
    if picked is None or trace.profile in kinds.LANGUAGE or up(picked[0]) < 0:
        return None
    name, series = picked
    if len(series) < MIN_COLLAPSE_POINTS or not verdict_trend(trace).improves:
        return None
    late = late_loss(series.values)
    material, origin = least_that_counts(trace, name, series)
    min_loss = max(material, slow_swing(trace, name, origin), MIN_DECLINE_ERRORS * late.swing)
    loss = late.loss if decline_chance(late) <= 0.001 else late.loss_in_fall(3)
    if loss < min_loss:
        return None
    blocks_since = len(late.course.blocks) - late.course.peak - 1
    return replace(
        _finding(name, series, late.course, late.share),
        severity=Severity.NOTE,
        began=int(series.steps[-blocks_since * late.course.width]),
        bound=Bound(late.best, "mean of this run's own best tenth"),
    )


def _loss_by_windows(trace: Trace, name: str, series: Series) -> bool:
    """Tell a loss that the standard error of means over so many episodes excludes."""
    levels = window_levels(trace, name, series)
    return levels is not None and levels.is_lost


def _finding(name: str, series: Series, course: Course, lost_share: float) -> Finding:
    best = float(course.blocks[course.peak])
    limit = best - lost_share * course.total_gain
    offset = len(series) - len(course.blocks) * course.width  # a first, ragged block is left out
    after = course.blocks[course.peak :]
    below = np.flatnonzero(after < best - ONSET_LOSS_SHARE * course.gain)
    fell = course.peak + int(below[0]) if len(below) else len(course.blocks) - 1
    end_blocks = 1 if course.ends_falling(3) else COURSE_END_BLOCKS
    end = float(course.blocks[-end_blocks:].mean())
    share = (best - end) / course.total_gain
    step = int(series.steps[offset + course.peak * course.width])
    title = label(name)
    sign = up(name)
    part = "two thirds" if lost_share == MIN_LATE_SHARE else "half"
    return Finding(
        f"{title} reached {sign * best:.4g} around step {step:,} and is at {sign * end:.4g} now: "
        f"{'all' if share >= 1 else f'{share:.0%}'} of what was gained is lost",
        severity=Severity.ERROR,
        metric=name,
        began=int(series.steps[offset + fell * course.width]),
        ended=int(series.steps[-1]),
        observed=sign * end,
        bound=Bound(sign * limit, f"{part} of this run's own gain"),
        evidence=(f"a block of {course.width} values scatters by {course.noise:.2g}",),
    )


RULE = Rule(
    name="return-collapse",
    needs=(),
    needs_any=OUTCOME_METRICS,
    check=check,
    doc=__doc__,
    causes=(
        "an update that was too large: learning rate, epochs, an outlier batch",
        "exploration lost, so that the policy could not find back",
        "the environment, reward or data changed",
    ),
    remedies=(
        "go back to the checkpoint before it began",
        "lower {learning_rate} from there; with PPO, set {target_kl:a KL target}",
        "compare settings, data and environment on both sides of the step at which it began",
    ),
    explained_by=causes.MECHANISM_RULES,
    verdict="collapsed",
    thresholds=(MIN_RETURN_LOSS, RETURN_COLLAPSE_PERSISTENCE),
    persists=RETURN_COLLAPSE_PERSISTENCE,
)
