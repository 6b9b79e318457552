"""Share of the rules that could judge a run, and the metrics to log so that more can."""

from collections import Counter
from collections.abc import Sequence

from rlvitals import metrics
from rlvitals.metrics.metric import Metric
from rlvitals.rules import causes, kinds
from rlvitals.rules.rule import Rule, Severity, Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace


@dataclass(frozen=True, slots=True)
class Wanted:
    """A metric or setting that is not there, and how many rules wait for it."""

    name: str
    rules: int


@dataclass(frozen=True, slots=True)
class Unlock:
    """Metrics or settings that, known besides those named before, let these rules judge."""

    names: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many rules could judge a run, and the metrics and settings that they lack."""

    judged: int  # rules that could judge
    asked: int  # rules that apply to the run
    wanted: tuple[Wanted, ...]  # metrics, the most useful first
    wanted_settings: tuple[Wanted, ...]
    unknown_settings: tuple[str, ...]  # without which a run can be neither judged nor repeated


# What a change of which makes another run: a log without them cannot be reproduced.
REPRODUCTION_SETTINGS = (
    "learning_rate",
    "clip_range",
    "batch_size",
    "n_epochs",
    "entropy_coef",
    "value_coef",
    "gamma",
    "gae_lambda",
    "seed",
)
PROFILE_SETTINGS = {
    Profile.SUPERVISED: ("learning_rate", "batch_size", "seed"),
    Profile.OFF_POLICY: ("learning_rate", "batch_size", "gamma", "seed"),
    Profile.RLHF_PPO: ("learning_rate", "batch_size", "n_epochs", "clip_range", "kl_coef", "seed"),
    Profile.ON_POLICY: tuple(
        name for name in REPRODUCTION_SETTINGS if name not in ("clip_range", "n_epochs")
    ),
    **dict.fromkeys(
        kinds.GROUPED, ("learning_rate", "batch_size", "num_generations", "beta", "seed")
    ),
}
# Settings that trainers log beside their metrics, because schedules may change them.
LOGGED_SETTINGS = {"learning_rate": "optimiser/learning_rate", "clip_range": "policy/clip_range"}
# How many samples an update has, as frameworks state it that have no one number for it.
METRIC_KIND_ORDER = {"outcome": 0, "health": 1, "performance": 2, "setting": 3}


def coverage(
    trace: Trace, rule_count: int, undecided: Sequence[tuple[Rule, Undecided]]
) -> Coverage:
    """Count what could be judged; rank what is missing by the rules it would let judge."""
    waiting: Counter[str] = Counter()
    for _, answer in undecided:
        waiting.update(set(answer.wants))
    ranking = sorted(
        (Wanted(name, count) for name, count in waiting.items() if name not in trace),
        key=lambda w: (-w.rules, METRIC_KIND_ORDER[_kind(w.name)], w.name),
    )
    names = PROFILE_SETTINGS.get(trace.profile, REPRODUCTION_SETTINGS)
    logged = {name for name, metric in LOGGED_SETTINGS.items() if metric in trace}
    names_known = {*trace.settings, *logged}
    names_known |= {
        name
        # A batch size may follow from these settings.
        for name, alternatives in {"batch_size": ("n_steps", "minibatch_size")}.items()
        if names_known.intersection(alternatives)
    }
    unknown_settings = tuple(name for name in names if name not in names_known)
    return Coverage(
        judged=rule_count - len(undecided),
        asked=rule_count,
        wanted=tuple(w for w in ranking if _kind(w.name) != "setting"),
        wanted_settings=tuple(w for w in ranking if _kind(w.name) == "setting"),
        unknown_settings=unknown_settings,
    )


def unlocks(
    trace: Trace, undecided: Sequence[tuple[Rule, Undecided]]
) -> tuple[tuple[Unlock, ...], tuple[tuple[Rule, Undecided], ...]]:
    """Order what is missing, what unlocks most first; return it, and the rules no log would help.

    A rule is named where the last of what it lacks is: each rule once.
    """
    lacks = {rule.name: _missing(trace, rule, answer) for rule, answer in undecided}
    waiting = {name: lack for name, lack in lacks.items() if lack}
    steps: list[Unlock] = []
    while waiting:
        # The fewest names that let a rule judge; of as few, those that let most.
        sets = Counter(waiting.values())
        names = min(sets, key=lambda lack: (len(lack), -sets[lack], sorted(lack)))
        ready = tuple(sorted(rule for rule, lack in waiting.items() if lack <= names))
        steps.append(Unlock(tuple(sorted(names)), ready))
        waiting = {rule: lack - names for rule, lack in waiting.items() if rule not in ready}
    return tuple(steps), tuple(pair for pair in undecided if not lacks[pair[0].name])


def open_causes(
    rule: Rule, severity: Severity, trace: Trace, undecided: Sequence[tuple[Rule, Undecided]]
) -> tuple[Unlock, ...]:
    """Return the causes of a warning that the log does not exclude, and what to log to tell.

    Only an outcome that no other finding explains has open causes: the rules that could explain
    it and lack a metric or a setting. What lets most of them judge is first.
    """
    if rule.name not in causes.OUTCOME_RULES or severity is Severity.NOTE:
        return ()
    candidates = [pair for pair in undecided if pair[0].name in rule.explained_by]
    return unlocks(trace, candidates)[0]


def _missing(trace: Trace, rule: Rule, answer: Undecided) -> frozenset[str]:
    """Name all that a rule lacks: itself it names what it missed first."""
    lack = {m.name for m in rule.needs if not _is_in_log(trace, m)}
    if rule.needs_any and not any(_is_in_log(trace, m) for m in rule.needs_any):
        lack.add(rule.needs_any[0].name)
    absent = (name for name in answer.wants if name not in trace and name not in trace.settings)
    return frozenset(lack or absent)


def _is_in_log(trace: Trace, metric: Metric) -> bool:
    return bool(trace.family(metric.name)) if metric.family else metric.name in trace


def _kind(name: str) -> str:
    metric = metrics.find(name)
    return "setting" if metric is None else metric.kind
