"""Derive the numbers of a sentence again from a trace.

A template is the sentence with a placeholder for each number. A placeholder names what the number
is: a statistic and a column, `<median policy/approx_kl>`, or a function of the case, `<jumps>`. The
window is not named where the sentence does not name one: then any window that the finding has
(whole run, since it began, before, during) may give the number.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from rlvitals.rules.answers import paid_share
from rlvitals.rules.curves import by_steps
from rlvitals.rules.rule import Finding
from rlvitals.rules.standing import label
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.signals.trend import trend
from rlvitals.types import Series, Trace

NUMBER = r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+|inf)(?:e[+-]?\d+)?%?"
ANY_NUMBER = re.compile(rf"(?<![\w@/.-]){NUMBER}(?![\w])")
PLACEHOLDER = re.compile(r"<([^<>]+)>")
DIGITS = (2, 3, 4, 8)  # significant digits that a number may be printed with


@dataclass(frozen=True)
class Case:
    """A sentence's run, and the finding that says it; None for the summary and the verdict."""

    trace: Trace
    finding: Finding | None = None
    columns: Mapping[str, Series] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Series:
        """Return the finite points of a column; none where it is not logged."""
        series = self.trace.get(name)
        return Series(*(np.empty(0) for _ in range(3))) if series is None else series.finite()

    @property
    def metric(self) -> Series:
        """The finite points of the finding's own metric."""
        return self[self.finding.metric]

    def setting(self, name: str) -> list[float]:
        """Return a setting as a number, where it is one."""
        value = self.trace.number(name)
        return [] if value is None else [value]


Derive = Callable[[Case], Iterable[float]]


@dataclass(frozen=True)
class Claim:
    """A sentence with placeholders, and the functions of those that are no column's statistic."""

    template: str
    functions: Mapping[str, Derive] = field(default_factory=dict)


def claim(template: str, **functions: Derive) -> Claim:
    """Return a claim; `functions` derive its named placeholders."""
    return Claim(template, functions)


def pattern(template: str) -> re.Pattern[str]:
    """Compile a template: placeholders become groups, the rest is literal."""
    parts = PLACEHOLDER.split(template)
    text = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            text += re.escape(part)
        elif part in WORDS:
            text += f"({WORDS[part]})"
        else:
            text += f"({NUMBER})"
    return re.compile(text)


# Placeholders for words: a label must be that of a logged column, a sentence is checked by itself.
WORDS = {
    "label": r"[\w ]+?", "names": r"[\w/, -]+?", "names2": r"\w+", "any words": r"\D+",
    "sentence": r".+", "word": r"[\w' -]+?",
}  # fmt: skip


def wrong(text: str, case: Case, claims: Iterable[Claim], sentence: Callable) -> str:
    """Say which number of a sentence does not follow from the trace; empty where all do."""
    reason = "" if ANY_NUMBER.search(text) is None else "no claim derives its numbers"
    for each in claims:
        found = pattern(each.template).fullmatch(text)
        if found is None:
            continue
        reason = _first_wrong(each, found.groups(), case, sentence)
        if not reason:
            return ""
    return reason


def _first_wrong(each: Claim, groups: tuple[str, ...], case: Case, sentence: Callable) -> str:
    named = ""
    for name, printed in zip(PLACEHOLDER.findall(each.template), groups, strict=True):
        if name == "label":
            named = printed
            if not any(label(own) == printed for own in case.trace.series):
                return f"{printed!r} is no logged column"
        elif name == "names":
            lacking = [own for own in printed.split(", ") if own not in case.trace]
            if lacking:
                return f"{lacking} are not logged"
        elif name == "sentence":
            if reason := sentence(printed, case):
                return reason
        elif name not in WORDS:
            derive = each.functions.get(name)
            values = statistic(case, name, named) if derive is None else derive(case)
            if alternatives := _other_values(printed, values):
                return f"{name} reads {printed}; the trace gives {alternatives}"
    return ""


def _other_values(printed: str, values: Iterable[float]) -> str:
    """Return some of the values where none reads as `printed`; empty as soon as one does."""
    alternatives = set()
    for value in values:
        if reads(printed, value):
            return ""
        alternatives.add(f"{value:.6g}")
    return ", ".join(sorted(alternatives)[:8]) or "nothing"


def reads(printed: str, value: float) -> bool:
    """Return whether a value, rounded as it may be printed, reads as `printed`."""
    share = printed.endswith("%")
    text = printed.rstrip("%").replace(",", "")
    number, value = float(text), 100 * value if share else value
    if not np.isfinite(number) or not np.isfinite(value):
        return number == value
    decimals = len(text.partition("e")[0].partition(".")[2])
    for near in (value, value * (1 + 1e-9), value * (1 - 1e-9)):
        if "e" not in text and round(near, decimals) == number:
            return True
        if not share and any(float(f"{near:.{digits}g}") == number for digits in DIGITS):
            return True
        if float(f"{near:.{decimals}e}") == number and "e" in text:
            return True
    return False


def trimmed(values: np.ndarray) -> float:
    """Return the mean without the lowest and the highest tenth."""
    cut = int(0.1 * values.size)
    return float(np.sort(values)[cut : values.size - cut].mean())


def _first_fifth(values: np.ndarray) -> float:
    return trimmed(values[: max(round(values.size / 5), 1)])


def _last_fifth(values: np.ndarray) -> float:
    return trimmed(values[-max(round(values.size / 5), 1) :])


STATISTICS: Mapping[str, Callable[[np.ndarray], float]] = {
    "median": lambda v: float(np.median(v)),
    "mean": lambda v: float(v.mean()),
    "max": lambda v: float(v.max()),
    "min": lambda v: float(v.min()),
    "first": lambda v: float(v[0]),
    "last": lambda v: float(v[-1]),
    "absmedian": lambda v: float(np.median(np.abs(v))),
    "absmax": lambda v: float(np.abs(v).max()),
    "extreme": lambda v: float(v[np.abs(v - np.median(v)).argmax()]),
    "count": lambda v: float(v.size),
    "early": _first_fifth,
    "late": _last_fifth,
}


def statistic(case: Case, spec: str, named: str) -> Iterator[float]:
    """Return a statistic of a column over each window that the finding has."""
    kind, _, name = spec.partition(" ")
    if kind in {"observed", "bound", "began", "ended"}:
        finding = case.finding
        yield float(finding.bound.value if kind == "bound" else getattr(finding, kind))
        return
    if kind == "setting":
        yield from case.setting(name)
        return
    for series in columns(case, name or named):
        for window in windows(case, series):
            if len(window):
                yield STATISTICS[kind](window.values)


def columns(case: Case, name: str) -> Iterator[Series]:
    """Return the columns of a name: canonical, "M" for the finding's own, else a label."""
    if name == "M":
        name = case.finding.metric
    for own in [n for n in case.trace.series if name in {n, label(n)}]:
        series = case[own]
        yield series
        if len(series):
            yield paid_share(case.trace, own, series)
            yield by_steps(series)  # how a long outcome is judged: by stretches of steps


def windows(case: Case, series: Series) -> Iterator[Series]:
    """Return the parts of a column that a sentence may speak of."""
    yield series
    first, last = case.trace.first_step, case.trace.last_step
    yield series.since(first + (last - first) // 2)
    yield series.tail(len(series) // 2)
    if case.finding is None:
        return
    began, ended = case.finding.began, case.finding.ended
    yield series.since(began)
    yield series.until(began - 1)
    yield series.until(began)
    yield series.since(began).until(ended)
    yield series.where((series.steps < began) | (series.steps > ended))


def memoize(signal: Callable) -> Callable:
    """Return a signal that is computed once of each window: many sentences try the same."""

    @lru_cache(maxsize=2000)
    def answer(values: bytes, options: tuple):
        return signal(np.frombuffer(values), **dict(options))

    return lambda values, **options: answer(values.tobytes(), tuple(options.items()))


trend_of = memoize(trend)
change_of = memoize(outcome_change)


def head(values: np.ndarray, least: int = 5) -> float:
    """Return the median of the first tenth, of `least` points at least."""
    return float(np.median(values[: max(least, round(values.size / 10))]))


def streak(flags: np.ndarray) -> int:
    """Return the length of the longest stretch of true flags without an exception."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(int), [0]))))
    return int(max(edges[1::2] - edges[::2], default=0))
