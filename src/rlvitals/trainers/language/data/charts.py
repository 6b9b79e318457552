"""Drawn charts with questions: what the vision-language demo is asked, with no download.

Sample `index` of a seed is always the same. Tiny charts (below `drawing.READABLE` pixels) have
three or four bars named by letters and whole values; larger ones have names, units, decimals and
thousands. Negative, zero, percent and text labels occur in both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from rlvitals.trainers.language.data import drawing

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

PIXELS = 48  # of a side


@dataclass(frozen=True, slots=True)
class Sample:
    """A chart with a question and its answer. `table`: JSON with the keys columns and rows."""

    image: Image
    query: str
    label: str
    table: str
    chart_type: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a chart may be about. `decimals` of its values; `unit` follows a value."""

    title: str
    column: str
    names: tuple[str, ...]
    low: float
    high: float
    decimals: int = 0
    unit: str = ""

    def shown(self, value: float) -> str:
        """Write a value as the axis and the label do: 1,250, -3.5, 40%."""
        text = f"{value:,.{self.decimals}f}"
        return f"{'0' if float(text.replace(',', '')) == 0 else text}{self.unit}"


LETTERS = ("A", "B", "C", "D")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
YEARS = tuple(str(year) for year in range(2015, 2025))
CITIES = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Paris")
GOODS = ("Tea", "Rice", "Salt", "Milk", "Corn", "Fish", "Oil", "Wool")

TINY = (
    Subject("", "Value", LETTERS, 0, 10),
    Subject("", "Value", LETTERS, -5, 5),
    Subject("", "Percent", LETTERS, 0, 100, unit="%"),
)
READABLE = (
    Subject("Visitors", "Visitors", CITIES, 0, 5000),
    Subject("Profit (million euros)", "Profit", YEARS, -20, 30, decimals=1),
    Subject("Share of sales", "Share (%)", GOODS, 0, 100, unit="%"),
    Subject("Mean temperature (°C)", "Temperature", MONTHS, -15, 30),
    Subject("Change against last year", "Change (%)", GOODS, -40, 40, unit="%"),
    Subject("Rainfall (mm)", "Rainfall", MONTHS, 0, 120, decimals=1),
)
STEPS = (1, 2, 2.5, 5, 10, 20, 25, 50)  # an axis counts in these, times a power of ten
TICKS = 6  # of a readable axis, at the most


@dataclass(frozen=True, slots=True)
class Facts:
    """A chart's numbers, for its questions."""

    subject: Subject
    names: tuple[str, ...]
    values: tuple[float, ...]

    def value(self, place: int) -> str:
        """Write the value of a bar."""
        return self.subject.shown(self.values[place])


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer, and the steps that lead to it."""

    query: str
    label: str
    steps: tuple[str, ...]


def chart(seed: int | str, index: int = 0, *, pixels: int = PIXELS) -> Sample:
    """Draw sample `index` of a seed: a square picture of `pixels` a side, and its question."""
    random = Random(f"{seed} {index}")  # noqa: S311 - no secret
    tiny = pixels < drawing.READABLE
    subject = random.choice(TINY if tiny else READABLE)
    facts = _facts(subject, random, tiny=tiny)
    kind = random.choice(("bar", "line"))
    question = random.choice(QUESTIONS)(facts, random) or _value(facts, random)
    return Sample(
        drawing.draw(_plan(kind, facts, tiny=tiny), pixels),
        question.query,
        question.label,
        table(("Name", subject.column), tuple(zip(facts.names, facts.values, strict=True))),
        kind,
        "\n".join(f"<step-{n}>: {step}" for n, step in enumerate(question.steps, 1)),
    )


def table(columns: tuple[str, ...], rows: tuple[tuple[str | float, ...], ...]) -> str:
    """Write a table in the guide's form: one JSON object of columns and rows."""
    made = {"columns": columns, "rows": rows}
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False)


def _facts(subject: Subject, random: Random, *, tiny: bool) -> Facts:
    count = random.choice((3, 4) if tiny else (3, 4, 5, 6))
    first = 0 if tiny else random.randrange(len(subject.names) - count + 1)
    step = (subject.high - subject.low) / drawing.UNITS if tiny else 10.0**-subject.decimals
    steps = round((subject.high - subject.low) / step)
    drawn = [subject.low + step * random.randint(0, steps) for _ in range(count)]
    values = [
        0.0 if value != 0 and random.random() < 1 / 12 and subject.low <= 0 else value
        for value in drawn
    ]
    return Facts(
        subject, subject.names[first : first + count], tuple(map(_number(subject), values))
    )


def _number(subject: Subject) -> Callable[[float], float]:
    def number(value: float) -> float:
        return round(value, subject.decimals) if subject.decimals else round(value)

    return number


def _plan(kind: str, facts: Facts, *, tiny: bool) -> drawing.Plan:
    subject = facts.subject
    low, high = subject.low, subject.high
    tick = (high - low) / 2
    if not tiny:
        low, high = min(0.0, *facts.values), max(0.0, *facts.values)
        tick = _tick(high - low or 1.0)
        low, high = tick * (low // tick), -tick * (-high // tick)
        high = high if high > low else low + tick
    return drawing.Plan(
        kind, facts.names, facts.values, low, high, tick, _axis(subject), subject.title
    )


def _axis(subject: Subject) -> Callable[[float], str]:
    def shown(value: float) -> str:
        return f"{value:,g}{subject.unit}"

    return shown


def _tick(span: float) -> float:
    """Return the round step that gives an axis at most `TICKS` ticks."""
    power = 10.0 ** (len(str(int(span))) - 2)
    return next(step * power for step in STEPS if span <= step * power * TICKS)


def _two(facts: Facts, random: Random) -> tuple[int, int]:
    first, second = random.sample(range(len(facts.names)), 2)
    return first, second


def _value(facts: Facts, random: Random) -> Question:
    place = random.randrange(len(facts.names))
    name, value = facts.names[place], facts.value(place)
    return Question(f"What is the value of {name}?", value, (f"{name} is at {value}.",))


def _extreme(facts: Facts, random: Random) -> Question | None:
    """Ask for the name, or the value, of the highest or the lowest; None where two are."""
    word, pick = random.choice((("highest", max), ("lowest", min)))
    value = pick(facts.values)
    if facts.values.count(value) > 1:
        return None
    place = facts.values.index(value)
    name, shown = facts.names[place], facts.value(place)
    step = f"The {word} is {name} with {shown}."
    if random.choice((True, False)):
        return Question(f"Which one is the {word}?", name, (step,))
    return Question(f"What is the {word} value?", shown, (step,))


def _difference(facts: Facts, random: Random) -> Question:
    one, two = _two(facts, random)
    a, b = facts.names[one], facts.names[two]
    result = facts.subject.shown(facts.values[one] - facts.values[two])
    return Question(
        f"What is the value of {a} minus that of {b}?",
        result,
        (
            f"{a} is at {facts.value(one)}.",
            f"{b} is at {facts.value(two)}.",
            f"The difference is {result}.",
        ),
    )


def _comparison(facts: Facts, random: Random) -> Question:
    one, two = _two(facts, random)
    a, b = facts.names[one], facts.names[two]
    answer = "Yes" if facts.values[one] > facts.values[two] else "No"
    steps = (f"{a} is at {facts.value(one)}.", f"{b} is at {facts.value(two)}.")
    return Question(f"Is {a} higher than {b}?", answer, steps)


def _count(facts: Facts, random: Random) -> Question:
    bound = 0.0 if facts.subject.low < 0 else (facts.subject.low + facts.subject.high) / 2
    side, above = random.choice((("above", True), ("below", False)))
    found = [
        name
        for name, value in zip(facts.names, facts.values, strict=True)
        if (value > bound if above else value < bound)
    ]
    named = ", ".join(found) or "None"
    shown = facts.subject.shown(bound)
    step = f"{named} {'are' if found[1:] else 'is'} {side} {shown}."
    return Question(f"How many are {side} {shown}?", str(len(found)), (step,))


# The value of a bar comes twice: it is what the others are made of.
QUESTIONS: tuple[Callable[[Facts, Random], Question | None], ...] = (
    _value,
    _value,
    _extreme,
    _difference,
    _comparison,
    _count,
)
