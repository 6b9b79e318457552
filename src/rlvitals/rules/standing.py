"""Direction of a run's outcome with its interval, by which rules weigh a symptom."""

from dataclasses import replace
from typing import Literal

import numpy as np

from rlvitals import metrics
from rlvitals.errors import quantity
from rlvitals.metrics import suggest
from rlvitals.metrics.catalogue.outcome import ACCURACY
from rlvitals.metrics.reward_names import checks_the_answer
from rlvitals.metrics.steps.stages import Stretch, within_stage
from rlvitals.rules import kinds
from rlvitals.rules.curves import (
    CURVE_BLOCKS,
    by_steps,
    describe_earlier_learning,
    find_fall_back,
    gain_after_dip,
    holds_early_gain,
    is_back_at_start,
    never_improves,
    rises,
    rises_early,
    still_climbs,
)
from rlvitals.rules.episode_window import episode_sd, scatter_of_window
from rlvitals.rules.known_task import environment, task
from rlvitals.rules.paid import longer_way, pays_in_full
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.signals import outcome_change as block_test
from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array
from rlvitals.signals.level import bound_change, first_last_change
from rlvitals.signals.plateau import ends_full, is_share_of_full_batches, plateau_start
from rlvitals.signals.running_sum import row_of_sum
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

State = Literal[
    "rising", "holding its best", "flat", "falling", "fallen back", "at its ceiling", "unknown"
]

# Product truth before proxies, dense before sparse: the first one that is logged often enough.
OUTCOME_NAMES = (
    "outcome/return",
    "outcome/eval_return",
    "outcome/rlhf_reward",
    "outcome/score",
    "outcome/reward",
    "reward/trained_mean",
    "reward/mean",
    "outcome/accuracy",
    "outcome/success_rate",
    "outcome/win_rate_ema",
    "outcome/elo",
    "language/filtered_reward",
    "reward/step",
)
SHARE_OUTCOMES = ("outcome/accuracy", "outcome/success_rate", "outcome/win_rate_ema")  # 0 to 1
OUTCOME_METRICS = tuple(
    m for m in metrics.CATALOGUE if m.name in (*OUTCOME_NAMES, "optimiser/loss")
)
# A reward model's zero means nothing: of a proven rise nobody can say that it is too little.
OFFSET_SCORES = ("outcome/score", "outcome/rlhf_reward")
# Each of its points is measured anew: its noise is all from point to point, none is sluggish.
EVAL_OUTCOME = "outcome/eval_return"
MIN_OUTCOME_POINTS = 10  # fewer cannot show a trend
MIN_WAY_GAIN = 0.10  # of the way from a random to a solved policy
MIN_START_GAIN = 0.10  # of the first level, for language models and without scatter
SCATTER_ORIGIN = f"{block_test.MIN_GAIN_SD:g} sd of a single value, before smoothing"
MIN_LOSS_GAIN = 0.05  # of the first level: a pretrained model lowers its loss only a little
MIN_SCORE_GAIN = 0.30  # of the first level, where "solved" is the level of humans
NEARLY_SOLVED_SHARE = 0.90  # of the way: a flat outcome there has learned
MIN_SHARE_GAIN = 0.05  # of a success rate
MIN_OFFSET_SD = 2.0  # sd from point to point, where the zero is arbitrary: see OFFSET_SCORES
CEILING_TOLERANCE = 0.03  # of the way, below the maximum
LOSS_STATES = {"rising": "falling", "falling": "rising"}  # a better loss is lower
MIN_STUCK_TOP_SHARE = 0.2  # share of the run spent at exactly its best value

OUTCOME_UNKNOWN = "whether the outcome improves cannot be told: "
TASK_HINT = "; --set env_id=... may tell more"


@dataclass(frozen=True, slots=True)
class Standing:
    """The outcome's direction over a stretch of the run, with the interval that says so."""

    state: State
    metric: str = ""
    why: str = ""
    first: float = np.nan  # level of the first fifth
    last: float = np.nan  # level of the last fifth
    best: float = np.nan
    low: float = np.nan  # 95 % interval of the change over the stretch, up = better
    high: float = np.nan
    material: float = np.nan  # the least change that counts
    material_from: str = ""
    stretch: str = ""  # of a curriculum, where the outcome is judged in one stage alone

    @property
    def improves(self) -> bool:
        """Proven to get better, or good enough that it cannot."""
        return self.state in ("rising", "at its ceiling")

    @property
    def stalls(self) -> bool:
        """Proven not to get better, and not merely done with getting better."""
        return self.state in ("flat", "falling", "fallen back")

    @property
    def hardly(self) -> bool:
        """Proven to get better, and proven to do so by less than what counts."""
        return (
            self.state == "flat" and self.low > 0 and up(self.metric) * (self.last - self.first) > 0
        )

    @property
    def sags(self) -> bool:
        """Not proven to get worse, though it ends lower by more than what counts."""
        return self.state == "flat" and up(self.metric) * (self.first - self.last) > self.material

    @property
    def sentence(self) -> str:
        """Say it with its numbers."""
        if self.state == "unknown":
            perhaps = "" if self.high <= self.material else "perhaps "
            is_proven = self.low > 0 and "would count" in self.why
            state = f"it improves, {perhaps}by less than counts: " if is_proven else OUTCOME_UNKNOWN
            return f"{state}{self.why}"
        name = label(self.metric)
        if self.why:
            return f"{name} {self.why}"
        state = str(self.state if up(self.metric) > 0 else LOSS_STATES.get(self.state, self.state))
        if self.state == "fallen back":
            return f"{name} has fallen back: {self.best:.4g} at best, {self.last:.4g} at the end"
        if self.sags:
            state = "not getting better"
        if self.hardly:
            state = f"{'rising' if up(self.metric) > 0 else 'falling'} by less than counts"
        sentence = f"{name} is {state}: {self.first:.4g} to {self.last:.4g}, {self.stretch}"
        return sentence.removesuffix(", ")


def label(name: str) -> str:
    """Return a canonical name as one says it: "outcome/rlhf_reward" is the "RLHF reward"."""
    if name in ("reward/step", "reward/mean"):
        return "reward"
    text = name.split("/", 1)[-1].replace("_", " ").replace("rlhf", "RLHF")
    component = text.removeprefix("component/")
    return text if component == text else f"{component.removesuffix(' reward')} reward"


def outcome(trace: Trace) -> tuple[str, Series] | None:
    """Pick the metric a run is judged by, as finite points with up = better, of one stage."""
    picked = _outcome(trace)
    return None if picked is None else (picked[0], picked[1].series)


@cache_by_trace
def _outcome(trace: Trace) -> tuple[str, Stretch] | None:
    names = [n for n in OUTCOME_NAMES if n != ACCURACY.name or not kinds.trains_pairs(trace)]
    for name in names:
        if (series := trace.numbers(name, MIN_OUTCOME_POINTS)) is not None:
            return name, within_stage(trace, by_steps(series))
    name = "optimiser/loss"
    loss = trace.numbers(name, MIN_OUTCOME_POINTS)
    if trace.profile is Profile.SUPERVISED and loss is not None:
        return name, Stretch(Series(loss.steps, loss.times, up(name) * loss.values))
    return None


def up(name: str) -> float:
    """Return +1 where more of an outcome is better, -1 for a loss."""
    return -1.0 if name == "optimiser/loss" else 1.0


def beyond(trace: Trace, name: str, values: Array, last: float) -> str:
    """Say why the unit of an outcome is not known: a sum of all rows, or more than a task gives."""
    if (added := row_of_sum(values)) is not None:
        return f"{label(name)} changes by about {added:.4g} in every row: a sum of all rows so far"
    env = task(trace, name, values)
    if env is None or env is not environment(trace) or env.max_return is None:
        return ""
    if last <= env.max_return or not env.beyond(np.array([last])).all():
        return ""
    return f"{label(name)} ends at {last:.4g}, beyond what {env.name} can give"


def way_share(trace: Trace, outcome_trend: Standing) -> float | None:
    """Return how far an outcome's end is from a random (0) to a solved policy (1), if known."""
    picked = outcome(trace)
    env = None if picked is None else task(trace, outcome_trend.metric, picked[1].values)
    if env is None or env.random_return is None or not env.way:
        return None
    return max((outcome_trend.last - env.random_return) / env.way, 0.0)


def describe_progress(trace: Trace, outcome_trend: Standing) -> str:
    """Say how far the outcome has come from a random to a solved policy; empty if not known."""
    share, env = way_share(trace, outcome_trend), environment(trace)
    if share is None or env is None:
        return ""
    if share == 0:
        level = f"which gets about {env.random_return:g} on {env.name}"
        return f"no better than a random policy, {level}"
    return f"{share:.0%} of the way from a random to a solved {env.name}"


@cache_by_trace
def standing(
    trace: Trace, since: int | None = None, until: int | None = None, of: str = ""
) -> Standing:
    """Judge the outcome, or the metric `of`, between two steps (default: the whole run)."""
    picked = (of, Stretch(by_steps(trace[of].finite()))) if of else _outcome(trace)
    if picked is None:
        return Standing("unknown", why=_missing_outcome_reason(trace))
    name, stretch = picked
    full_series = stretch.series if until is None else stretch.series.until(until)
    series = full_series if since is None else full_series.since(since)
    if len(series) < MIN_OUTCOME_POINTS:
        return Standing("unknown", name, f"{name} has {quantity(len(series), 'point')} there")
    return replace(_judge(trace, name, full_series, series), stretch=stretch.description)


def _missing_outcome_reason(trace: Trace) -> str:
    for name in (*OUTCOME_NAMES, "outcome/eval_accuracy", "outcome/eval_reward"):
        if name in trace:
            has = quantity(len(trace[name].finite()), "number")
            return f"{name} has {has} of the {MIN_OUTCOME_POINTS} needed: train longer or log more"
    if likely := suggest.outcomes(trace.unmapped, OUTCOME_NAMES):
        keys, (key, name) = " or ".join(key for key, _ in likely[:2]), likely[0]
        return f"no key is known as the outcome; {keys} may be it: --map {key}={name}"
    return f"no outcome is logged (return, reward, score, success){suggest.why_missing(trace)}"


def _judge(trace: Trace, name: str, full_series: Series, series: Series) -> Standing:
    material, origin = least_that_counts(trace, name, full_series)
    first, last = first_last_change(series.values) or (np.nan, np.nan)
    best = float(series.values.max())
    plain = max(material if up(name) > 0 else 0.0, MIN_START_GAIN * abs(first))
    fit = trend(series.values)
    low, high = (fit.change_low, fit.change_high) if fit else (-np.inf, np.inf)
    if lacks := beyond(trace, name, full_series.values, last):
        state: State = "unknown"
    elif _at_ceiling(trace, name, full_series, last):
        state = "at its ceiling"
    elif (name.endswith("return") and pays_in_full(trace, full_series.values)) or (
        first > last and (lacks := longer_way(trace, name))
    ):
        state = "holding its best"
    elif rises(series.values, last - first, low, material, plain=plain, anew=name == EVAL_OUTCOME):
        state, lacks = _when_rising(trace, name, full_series, series, low, material)
    elif high < 0 and first > last and first - last >= material:  # material may be 0
        kept = holds_early_gain(trace, name, full_series.values, last, material)
        state = "holding its best" if kept else "falling"
    elif high <= material and not (low > 0 and (name in OFFSET_SCORES or origin == SCATTER_ORIGIN)):
        state = _when_flat(trace, name, full_series, series, last, material)
    elif found_fall := find_fall_back(
        series.values, max(material, slow_swing(trace, name, origin))
    ):
        state = "fallen back" if np.isfinite(found_fall.share) else "falling"
    else:
        state = _without_trend(trace, name, full_series, series, low, material)
    if state == "flat" and (lacks := describe_earlier_learning(trace)):
        state = "unknown"
    reason = lacks or (_unclear_reason(trace, name, series, material) if state == "unknown" else "")
    first, last, best = (up(name) * level for level in (first, last, best))
    return Standing(state, name, reason, first, last, best, low, high, material, origin)


def _unclear_reason(trace: Trace, name: str, series: Series, material: float) -> str:
    """Say what the change may be, and what would count: then what is lacking is plain."""
    first, last = (up(name) * level for level in first_last_change(series.values) or (np.nan,) * 2)
    course, fit = f"{label(name)} goes {first:.4g} to {last:.4g}", trend(series.values)
    if fit is None:
        return f"{course} in {len(series)} points, too few to tell"
    bounds = bound_change(fit.change_low, fit.change_high, series.values)
    ends = sorted(up(name) * bound for bound in bounds)
    a_line = "a line through all rows changes by" if max(ends[0], -ends[1]) > material else ""
    change = f"{a_line or 'the change is'} {ends[0]:+.3g} to {ends[1]:+.3g} (95 %)"
    has_task = not name.endswith("return") or "env_id" in trace.settings
    return f"{course}; {change}, and {material:.3g} would count{'' if has_task else TASK_HINT}"


def _when_flat(  # noqa: PLR0913, PLR0917 - what tells the three kinds of flat apart
    trace: Trace, name: str, full_series: Series, series: Series, last: float, material: float
) -> State:
    env = task(trace, name, full_series.values)
    solved = None if env is None or not full_series.values.any() else env.solved_return
    if solved is not None and last >= solved:
        return "at its ceiling"
    nearly = (
        env is not None
        and full_series.values.any()
        and env.random_return is not None
        and env.way is not None
        and last >= env.random_return + NEARLY_SOLVED_SHARE * env.way
    )
    nearly = nearly or rises_early(trace, name, full_series.values, last, material)
    if nearly or _holds(full_series, series, material):
        return "holding its best"
    return "rising" if env and still_climbs(trace, name, series, material / 2) else "flat"


def _when_rising(  # noqa: PLR0913, PLR0917 - as above
    trace: Trace, name: str, full_series: Series, series: Series, low: float, material: float
) -> tuple[State, str]:
    """Return the state of an outcome that ends above its first fifth, and what speaks against."""
    is_complete = len(series) == len(full_series)
    dip = gain_after_dip(trace, name, series.values, material) if is_complete else None
    if dip is not None and is_back_at_start(dip, material):
        # A first level that scatters by as much as was gained excludes no gain.
        if dip[0] < material and task(trace, name, full_series.values) is not None:
            return "flat", ""
        return "unknown", "it fell at first and ends no higher than it began"
    change = low <= 0 and block_test.outcome_change(series.values)
    return "unknown" if change and change.share_lost >= block_test.MIN_SHARE_LOST else "rising", ""


def _without_trend(  # noqa: PLR0913, PLR0917 - as above
    trace: Trace, name: str, full_series: Series, series: Series, low: float, material: float
) -> State:
    first, last = first_last_change(series.values) or (np.nan, np.nan)
    if holds_early_gain(trace, name, full_series.values, last, material):
        return "holding its best"
    known = len(series) == len(full_series) and task(trace, name, full_series.values) is not None
    dip = gain_after_dip(trace, name, full_series.values, material) if known else None
    poor = bool(dip and dip[0] < material) or never_improves(series.values, first, last, material)
    flat = low <= 0 and poor and name.endswith("return")
    return _when_flat(trace, name, full_series, series, last, material) if flat else "unknown"


def slow_swing(trace: Trace, name: str, origin: str) -> float:
    """Return the least loss that is no slow swing of a mean; 0 where the task's span tells."""
    return scatter_of_window(trace, name) if origin == SCATTER_ORIGIN else 0.0


def _holds(full_series: Series, series: Series, material: float) -> bool:
    """Tell a run that rose before and stays up there from one that never got anywhere."""
    if len(series) == len(full_series):
        return False
    full_trend = trend(full_series.values)
    width = max(1, len(full_series) // CURVE_BLOCKS)
    course = block_means(full_series.values, width)
    if float(course.max()) - float(course[0]) < material:
        return False
    last = float(np.median(series.values[-width:]))
    near = max(material, 0.1 * float(np.ptp(course)))  # then it has kept what it learned
    rose = full_trend is not None and full_trend.change_low > 0
    return rose and last >= float(course.max()) - near


def least_that_counts(  # noqa: PLR0911 - one for each kind of outcome
    trace: Trace, name: str, full_series: Series
) -> tuple[float, str]:
    """Return the least change of an outcome that is material, and where that comes from."""
    if name in SHARE_OUTCOMES:
        return MIN_SHARE_GAIN, f"{MIN_SHARE_GAIN:.0%} of a success rate"
    if name in OFFSET_SCORES:
        noise = noise_sd(full_series.values) or 0.0
        return MIN_OFFSET_SD * noise, f"{MIN_OFFSET_SD:g} sd of its scatter from point to point"
    env = task(trace, name, full_series.values)
    start, _ = first_last_change(full_series.values) or (np.nan, np.nan)
    if up(name) < 0:
        return MIN_LOSS_GAIN * abs(start), f"{MIN_LOSS_GAIN:.0%} of its first level"
    if env is not None and env.way:
        material = MIN_WAY_GAIN * env.way
        if env.by_people and (of_start := MIN_SCORE_GAIN * abs(start)) < material:
            return of_start, f"{MIN_SCORE_GAIN:.0%} of its first level"
        return material, f"{MIN_WAY_GAIN:.0%} of the way from random to solved ({env.name})"
    # Batches of language models have a test of their own: `answers.judge_batches`.
    sd = 0.0 if trace.profile in kinds.LANGUAGE else episode_sd(trace, name, full_series)
    if sd:
        return block_test.MIN_GAIN_SD * sd, SCATTER_ORIGIN
    return MIN_START_GAIN * abs(start), f"{MIN_START_GAIN:.0%} of its first level"


def _at_ceiling(trace: Trace, name: str, full_series: Series, last: float) -> bool:
    values, env = full_series.values, task(trace, name, full_series.values)
    if env is not None and env.way and env.solved_return is not None:
        if not values.any():
            return False  # a return of exactly zero throughout is a reward that never arrives
        top = env.max_return if env.best_return is None else env.best_return
        if top is not None and last >= top - CEILING_TOLERANCE * env.way:
            return True
        return last >= env.solved_return and plateau_start(values) is not None
    if name in SHARE_OUTCOMES:
        return last >= 1.0 - CEILING_TOLERANCE
    shares = (trace[n] for n in trace.series if n in SHARE_OUTCOMES or checks_the_answer(n))
    if any(ends_full(share.finite().values, 1.0 - CEILING_TOLERANCE) for share in shares):
        return True
    # A climb that ends in exactly its best value is bounded there; one lucky episode is no climb.
    stuck, top = int(max(MIN_STUCK_TOP_SHARE * len(values), MIN_OUTCOME_POINTS)), values.max()
    climbed = values[:stuck].mean() < top and np.ptp(values) > CEILING_TOLERANCE * abs(top)
    full = last > 1 - CEILING_TOLERANCE and is_share_of_full_batches(values)
    return bool(climbed and (full or (values[-stuck:] == top).all()))
