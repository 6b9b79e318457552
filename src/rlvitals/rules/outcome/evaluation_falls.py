"""What is trained on gets better, and what is held out gets worse.

## What it sees
An outcome that is proven to rise (or that rose to its ceiling) beside an evaluation that falls: its
trend's 95 % interval below zero, or most of what it had gained lost again, or, for a model with a
fixed held-out set, its last fifth below its best by twice what counts, half of what was gained and
five times the scatter of such means. Held-out return, reward, accuracy, success, single held-out
sets (not the best of k tries), held-out reward parts that check the answer, and in supervised and
preference training the held-out loss. Where the size of the evaluation is known (a trainer logs its
seconds and samples per second), the fall must also exceed twice the binomial error of such an
evaluation, and then four evaluations are enough. A warning; an error where the evaluation is proven
to end below its start by twice what counts. A note where the same quantity, held out, is proven
flat and ends below the trained one.

Of a control task's return, training and evaluation disagree too where the evaluation's last third
lies below the training of the same steps by three times the scatter of both, single values and not
means, and did not at the start: a warning where the evaluation is better than in its first third by
less than one evaluation scatters, else a note. Where epochs are logged: a reward that jumps where
the data begin again is noted.

## Why it matters
The policy then learns the training prompts, or what the training reward pays for beside the task:
more training makes it worse at what it is for.

## What to do
Keep the checkpoint of the best evaluation. Then find out which it is: with few prompts seen many
times it is memorisation, and more or fresh data help; with KL to the reference rising as well it is
over-optimisation of the reward, and a larger `beta`, an earlier stop or a better verifier helps.

## When it is wrong
Another distribution is no held-out set: training on one domain may cost another, and it may be
meant. An evaluation that decodes otherwise (temperature 0, fewer tokens) measures that as well.

## References
- Gao, Schulman and Hilton 2023, "Scaling Laws for Reward Model Overoptimization".
- Cobbe et al. 2019, "Quantifying Generalization in Reinforcement Learning".
"""

import math
from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.optimiser import EVAL_LOSS, LOSS
from rlvitals.metrics.catalogue.outcome import (
    EVAL_ACCURACY,
    EVAL_RETURN,
    EVAL_REWARD,
    EVAL_SUCCESS_RATE,
    EVAL_TASK,
    RETURN,
    REWARD,
)
from rlvitals.metrics.catalogue.preference import EVAL_ACCURACY as EVAL_PAIRS
from rlvitals.metrics.catalogue.progress import EPOCH
from rlvitals.metrics.catalogue.reward import EVAL_COMPONENT
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, reference
from rlvitals.rules.answers import isolate_outcome, verdict_trend
from rlvitals.rules.held_out import MIN_EVALS, HeldOut, direction, error_of, evaluations, size_of
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
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, MIN_SHARE_GAIN, Standing, standing, up
from rlvitals.signals.blocks import block_means
from rlvitals.signals.changepoint import change_point
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace

EVALUATION_PERSISTENCE = persistence("evaluation-falls")
MIN_BINOMIAL_ERRORS = Threshold(
    "evaluation-falls.errors", 2.0, "binomial standard errors that a fall must exceed"
)
MIN_GAP_SCATTERS, MIN_GAP_VALUES = 3.0, 4  # times the scatter; values of a third
MIN_EPOCH_POINTS = 20  # in shorter epochs every jump is near a boundary


@dataclass(frozen=True, slots=True)
class Fall:
    """Where an evaluation came down from, and where it is."""

    best: float
    last: float
    best_step: int  # step of its best
    severity: Severity
    proof: tuple[str, ...]
    material: float


def check(trace: Trace) -> Answer:
    """Ask whether training gets better; then each evaluation whether it gets worse."""
    sets = evaluations(trace)
    if not sets:
        reason = "evaluations of single tries are missing, or too few"
        return _jump(trace) or Undecided(reason, (EVAL_REWARD.name,))
    trained = _training_outcome(trace)
    if isinstance(trained, Undecided):
        return trained
    answer = None if trained is None else _judge_evaluations(trace, trained, sets)
    return answer or _jump(trace) or Clear()


def _judge_evaluations(trace: Trace, trained: Standing, sets: list[HeldOut]) -> Answer | None:
    """Judge each evaluation of a run whose training got better."""
    untold = []
    for evaluation in sets:
        trend = direction(trace, evaluation)
        if (fall := _fall(trace, evaluation, trend)) is not None:
            return replace(_finding(trace, trained, evaluation, fall), limit_on_curve=False)
        gap = _disagreement(trace, trained, evaluation) or _gap(trace, trained, evaluation, trend)
        if gap is not None:
            return replace(gap, limit_on_curve=False)
        # Where the evaluation ends no lower there is no fall to be told from noise.
        lower = not evaluation.sign * (trend.last - trend.first) >= 0
        untold += [trend] if trend.state == "unknown" and lower else []
    return Undecided(f"beside it, {untold[0].sentence}") if untold else None


def _training_outcome(trace: Trace) -> Standing | Undecided | None:
    """Return the outcome of training where it got better, None where it did not."""
    trained_on = trace
    if EVAL_RETURN.name in trace:
        other_series = {k: s for k, s in trace.series.items() if k != EVAL_RETURN.name}
        trained_on = replace(trace, series=other_series)
    trends = [standing(trained_on), verdict_trend(trained_on)]
    if trace.profile is Profile.SUPERVISED and LOSS.name in trace:
        trends.append(standing(isolate_outcome(trace, LOSS.name, trace[LOSS.name])))
    for trend in trends:
        if trend.improves or trend.state == "holding its best":
            gain = up(trend.metric) * (trend.last - trend.first)
            if gain >= trend.material:
                return trend
    if all(trend.state == "unknown" for trend in trends):
        return Undecided(trends[0].sentence)
    return None


def _fall(trace: Trace, evaluation: HeldOut, trend: Standing) -> Fall | None:
    """See an evaluation that ends below its best, beyond the error of measuring it."""
    size = size_of(trace, evaluation)
    if len(evaluation.series) < MIN_OUTCOME_POINTS:
        return None if size is None else _by_size(evaluation, size)
    sign = evaluation.sign
    better = sign * evaluation.series.values
    # A block of a fifth: the best single evaluation is the luckiest one.
    width = max(1, len(better) // 5)
    blocks = block_means(better, width)
    best = int(blocks.argmax())
    drop = float(blocks[best] - blocks[-1])
    error = (noise_sd(better) or 0.0) * math.sqrt(2 / width)
    if not math.isfinite(drop / error if error else drop):
        return None  # numbers too large to be subtracted
    proof = []
    if size is not None:
        chance = error_of(float(np.mean(evaluation.series.values)), size * width)
        if drop < MIN_BINOMIAL_ERRORS.on(trace) * math.sqrt(2) * chance:
            return None
        proof = [f"binomial error of {width * size:,.0f} answers: {chance:.2g}"]
    loses_gain = drop >= 0.5 * float(blocks[best] - blocks[0])  # of what was gained
    severity = _severity(trace, trend, drop if loses_gain else 0.0, error, sign)
    if severity is None:
        return None
    best_index = len(better) - width * (len(blocks) - best) + width // 2
    return Fall(
        sign * float(blocks[best]),
        sign * float(blocks[-1]),
        int(evaluation.series.steps[best_index]),
        severity,
        (f"{drop / error:.1f} x the scatter of such means",) if not proof and error else (*proof,),
        trend.material,
    )


def _severity(
    trace: Trace, trend: Standing, drop: float, error: float, sign: float
) -> Severity | None:
    """Ask for a proven fall; of a model whose held-out set is fixed, for one beyond its scatter.

    A policy that has drifted down is worse now, wherever it drifts next: there the error is that
    of measuring it. A return in a simulator swings by itself, and only a trend is one.
    """
    clear_loss = 2.0 * trend.material
    if trend.state == "falling" and sign * (trend.first - trend.last) >= clear_loss:
        return Severity.ERROR
    if trend.state in ("falling", "fallen back"):
        return Severity.WARNING
    fixed = trace.profile in (*kinds.LANGUAGE, Profile.SUPERVISED)
    # 5 standard errors from the best fifth to the last.
    plain = fixed and drop >= max(clear_loss, 5.0 * error)
    return Severity.WARNING if plain and trend.state != "at its ceiling" else None


def _by_size(evaluation: HeldOut, size: float) -> Fall | None:
    """Compare the best pair of a few evaluations with the last pair by their binomial error."""
    values = evaluation.series.values
    pairs = (values[1:] + values[:-1]) / 2
    best, last = int(pairs.argmax()), len(pairs) - 1
    if last - best < 2:  # pairs that share an evaluation
        return None
    error = math.hypot(error_of(pairs[best], 2 * size), error_of(pairs[last], 2 * size))
    drop = float(pairs[best] - pairs[last])
    # 4 standard errors, as the best of a few evaluations is compared with the last.
    if drop < max(4.0 * error, MIN_SHARE_GAIN):
        return None
    proof = f"{drop / error:.1f} binomial errors of two evaluations of {size:,.0f} answers each"
    return Fall(
        float(pairs[best]),
        float(pairs[last]),
        int(evaluation.series.steps[best]),
        Severity.WARNING,
        (proof,),
        MIN_SHARE_GAIN,
    )


def _finding(trace: Trace, trained: Standing, evaluation: HeldOut, fall: Fall) -> Finding:
    further = _far(trace)
    repetition = _epochs(trace)
    causes = (
        *(("over-optimisation of the reward: KL to the reference rises with it",) * bool(further)),
        *(("memorisation: the same prompts seen many times",) * bool(repetition)),
    )
    worse = "falls" if evaluation.sign > 0 else "rises"
    return Finding(
        f"{trained.sentence}, but {evaluation.title} {worse}: {fall.best:.4g} at its best to "
        f"{fall.last:.4g}",
        severity=fall.severity,
        metric=evaluation.name,
        began=fall.best_step,
        ended=int(evaluation.series.steps[-1]),
        observed=fall.last - fall.best,
        bound=Bound(-evaluation.sign * fall.material, "default: the least change that counts"),
        evidence=(*fall.proof, *further, *repetition),
        causes=(*causes, *EVALUATION_FALL_CAUSES[1:]) if causes else (),
    )


def _gap(trace: Trace, trained: Standing, evaluation: HeldOut, trend: Standing) -> Finding | None:
    """Note that the same quantity rises in training and, held out, is proven not to follow."""
    if trend.state != "flat" or not evaluation.twin or evaluation.name == EVAL_LOSS.name:
        return None
    levels = first_last_change(trace[evaluation.twin].values)
    if levels is None or levels[1] - levels[0] < trend.material:
        return None
    if levels[1] - trend.last < trend.material:
        return None
    return Finding(
        f"{trained.sentence}, but {evaluation.title} does not follow: "
        f"{trend.first:.4g} to {trend.last:.4g}",
        severity=Severity.NOTE,
        metric=evaluation.name,
        began=int(evaluation.series.steps[0]),
        ended=int(evaluation.series.steps[-1]),
        observed=trend.last - trend.first,
        bound=Bound(trend.material, trend.material_from),
        evidence=(*_far(trace), *_epochs(trace)),
    )


def _disagreement(trace: Trace, trained: Standing, evaluation: HeldOut) -> Finding | None:
    """Return the finding of evaluations that end below training, beyond the scatter of both."""
    third = len(evaluation.series) // 3
    if evaluation.twin != RETURN.name or trace.profile in kinds.LANGUAGE or third < MIN_GAP_VALUES:
        return None
    first_third, last_third = evaluation.series.values[:third], evaluation.series.tail(third)
    training = trace[evaluation.twin].finite()
    first_returns = training.until(int(evaluation.series.steps[third - 1])).values
    last_returns = training.since(int(last_third.steps[0])).values
    if min(first_returns.size, last_returns.size) < MIN_GAP_VALUES:
        return None
    thirds = (first_third, last_third.values, first_returns, last_returns)
    first, last, at_first, level = map(float, map(np.median, thirds))
    spread = float(last_third.values.std())
    scatter = math.hypot(spread, float(last_returns.std()))
    gap = (level - last) - max(at_first - first, 0.0)
    if min(gap, level - last) < max(MIN_GAP_SCATTERS * scatter, trained.material):
        return None
    return Finding(
        f"training and evaluation disagree: their medians are {level:.4g} and {last:.4g} in the "
        f"last third, {at_first:.4g} and {first:.4g} in the first",
        severity=Severity.WARNING if last - first < spread else Severity.NOTE,
        metric=evaluation.name,
        began=int(last_third.steps[0]),
        ended=int(last_third.steps[-1]),
        observed=last - level,
        bound=Bound(-MIN_GAP_SCATTERS * scatter, f"{MIN_GAP_SCATTERS:g} x the scatter of both"),
        evidence=(trained.sentence,),
        causes=(
            "observations are normalised in training, and not, or otherwise, in evaluation",
            "the greedy action of a stochastic policy: it repeats where sampling gets away",
            "another environment, other rewards or another time limit in evaluation",
        ),
        remedies=(
            "evaluate with frozen statistics of training's normalisation, and with sampled actions",
            "compare the wrappers of both environments",
        ),
    )


def _far(trace: Trace) -> tuple[str, ...]:
    """Say that KL to the reference rises."""
    kl = reference.token_kl(trace) if trace.profile in kinds.LANGUAGE else None
    levels = None if kl is None else first_last_change(kl.series.values)
    if levels is None or levels[1] <= max(2.0 * levels[0], 0.0):
        return ()
    return (f"KL to the reference goes from {levels[0]:.2g} to {levels[1]:.2g} nats per token",)


def _epochs(trace: Trace) -> tuple[str, ...]:
    epoch = trace.get(EPOCH.name)
    last = None if epoch is None else epoch.finite().tail(1).values
    if last is None or not len(last) or last[0] <= 1:
        return ()
    return (f"each prompt was seen {last[0]:.3g} times",)


def _jump(trace: Trace) -> Finding | None:
    """Note a reward that jumps where the data begin again."""
    epoch, paid = trace.get(EPOCH.name), trace.get(REWARD.name)
    if epoch is None or paid is None or len(paid := paid.finite()) < MIN_EPOCH_POINTS:
        return None
    if not len(epoch := epoch.finite()):
        return None
    epochs = np.interp(paid.steps, epoch.steps, epoch.values)
    boundaries = np.flatnonzero(np.diff(np.floor(epochs - 1e-9)) > 0) + 1
    if not len(boundaries) or len(paid) < MIN_EPOCH_POINTS * (len(boundaries) + 1):
        return None
    change = change_point(paid.values)
    if change is None or change.size <= 0:
        return None
    nearest = int(boundaries[np.abs(boundaries - change.index).argmin()])
    if abs(nearest - change.index) > 3:  # points between the boundary and the jump
        return None
    return Finding(
        f"the reward jumps where the data begin again: {change.before:.3g} to {change.after:.3g}",
        severity=Severity.NOTE,
        metric=REWARD.name,
        began=int(paid.steps[nearest]),
        ended=int(paid.steps[-1]),
        observed=change.after - change.before,
        bound=Bound(0.0, "a seen prompt is worth no more than a new one"),
        limit_on_curve=False,
        evidence=_epochs(trace),
        causes=("answers are remembered: prompts are seen again",),
        remedies=("judge by held-out prompts", "train on fewer passes over the data"),
    )


EVALUATION_FALL_CAUSES = (
    "memorisation: too few prompts, too many passes over them",
    "the training reward pays for something else than the task",
    "training and evaluation differ: normalisation, decoding, prompts",
)

RULE = Rule(
    name="evaluation-falls",
    needs=(),
    needs_any=(
        EVAL_REWARD,
        EVAL_RETURN,
        EVAL_ACCURACY,
        EVAL_SUCCESS_RATE,
        EVAL_PAIRS,
        EVAL_TASK,
        EVAL_COMPONENT,
        EVAL_LOSS,
        EPOCH,
    ),
    at_least=MIN_EVALS,
    check=check,
    doc=__doc__,
    causes=EVALUATION_FALL_CAUSES,
    remedies=(
        "keep the checkpoint of the best evaluation, and stop there",
        "read answers to held-out prompts from before and after this step",
        "train on more, or fresh, prompts; fewer passes over the data",
        "raise kl_coef or beta, or use a stricter verifier",
    ),
    explained_by=(
        "component-dominates",
        "response-length-explodes",
        "return-up-success-flat",
        "learning-rate-jump",
    ),
    thresholds=(MIN_BINOMIAL_ERRORS, EVALUATION_PERSISTENCE),
    persists=EVALUATION_PERSISTENCE,
)
