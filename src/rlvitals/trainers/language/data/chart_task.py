"""Generated charts with questions: the data of the vision-language demo, without a download.

Sample `index` of a seed is always the same. Tiny charts (below `drawing.READABLE` pixels) have
three or four bars or points named by letters, with different whole values; larger ones have names,
units, decimals and thousands. Negative, zero, percent and text labels occur in both.

A fifth of all charts is held out. A hash of the content (subject, names and values, whatever the
kind, the colours and the question) decides which. Of two subjects with the same table, neither is
asked about in an evaluation where a training may draw one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from rlvitals.trainers.language.data import chart_render

if TYPE_CHECKING:
    from PIL.Image import Image

CHART_PIXELS = 48  # of a side


@dataclass(frozen=True, slots=True)
class Sample:
    """A chart with a question and its answer. `table`: JSON with the keys columns and rows.

    `wrong_label` and `wrong_reasoning` are the answer for the bar after the one
    that is asked about. They are right all the same where the question names no bar.
    """

    image: Image
    query: str
    label: str
    table: str
    chart_type: str
    reasoning: str
    wrong_label: str
    wrong_reasoning: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of charts. `decimals` of its values; `unit` follows a value."""

    title: str
    column: str
    names: tuple[str, ...]
    low: float
    high: float
    decimals: int = 0
    unit: str = ""

    def format_value(self, value: float) -> str:
        """Write a value as the axis and the label do: 1,250, -3.5, 40%."""
        text = f"{value:,.{self.decimals}f}"
        return f"{'0' if float(text.replace(',', '')) == 0 else text}{self.unit}"


TINY_NAMES = ("A", "B", "C", "D")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
GOODS = ("Tea", "Rice", "Salt", "Milk", "Corn", "Fish", "Oil", "Wool")

TINY_SUBJECTS = (
    Subject("", "Value", TINY_NAMES, 0, 10),
    Subject("", "Value", TINY_NAMES, -5, 5),
    Subject("", "Percent", TINY_NAMES, 0, 100, unit="%"),
)
READABLE_SUBJECTS = (
    Subject(
        "Visitors",
        "Visitors",
        ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Paris"),
        0,
        5000,
    ),
    Subject(
        "Profit (million euros)",
        "Profit",
        tuple(str(year) for year in range(2015, 2025)),
        -20,
        30,
        decimals=1,
    ),
    Subject("Share of sales", "Share (%)", GOODS, 0, 100, unit="%"),
    Subject("Mean temperature (°C)", "Temperature", MONTHS, -15, 30),
    Subject("Change against last year", "Change (%)", GOODS, -40, 40, unit="%"),
    Subject("Rainfall (mm)", "Rainfall", MONTHS, 0, 120, decimals=1),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """A chart's numbers, for its questions."""

    subject: Subject
    names: tuple[str, ...]
    values: tuple[float, ...]

    def value(self, index: int) -> str:
        """Write the value of a bar."""
        return self.subject.format_value(self.values[index])

    def step(self, index: int) -> str:
        """Write the reasoning step that reads a bar."""
        return f"{self.names[index]} is at {self.value(index)}."

    def after(self, index: int, shift: int) -> int:
        """Return the place `shift` bars after one; the first follows the last."""
        return (index + shift) % len(self.names)

    def held_out(self) -> bool:
        """Return True if charts of this content are held out for evaluation."""
        content = json.dumps([self.subject.title, self.subject.column, self.subject.low,
                              self.names, self.values])  # fmt: skip
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        # A fifth of all chart contents is held out.
        return int.from_bytes(digest, "big") < 0.2 * 2**64

    def alike(self) -> list[Facts]:
        """Return the facts of other subjects that have the same table: another axis shows them."""
        return [
            replace(self, subject=subject)
            for subject in TINY_SUBJECTS
            if subject != self.subject
            and subject.column == self.subject.column
            and all(subject.low <= value <= subject.high for value in self.values)
        ]

    def drawn_for(self, *, evaluation: bool) -> bool:
        """Return True if a chart of this content may be drawn for evaluation, or for training."""
        if not evaluation:
            return not self.held_out()
        return self.held_out() and all(facts.held_out() for facts in self.alike())


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer, and the steps that lead to it."""

    query: str
    label: str
    steps: tuple[str, ...]

    def reasoning(self) -> str:
        """Write the steps in the form of an answer."""
        return "\n".join(f"<step-{n}>: {step}" for n, step in enumerate(self.steps, 1))


def chart(
    seed: int | str, index: int = 0, *, pixels: int = CHART_PIXELS, held_out: bool = False
) -> Sample:
    """Draw sample `index` of a seed: a square picture of `pixels` a side, and its question.

    `held_out`: draw one of the charts that are kept for evaluation, and not one of the others.
    """
    random = Random(f"{seed} {index}")  # noqa: S311 - no secret
    tiny = pixels < chart_render.READABLE_PIXELS
    facts = _facts(random, tiny=tiny)
    while not facts.drawn_for(evaluation=held_out):
        facts = _facts(random, tiny=tiny)
    kind = random.choice(("bar", "line"))
    style = random.randrange(len(chart_render.COLOURS))
    ask, state = random.choice(TINY_QUESTIONS if tiny else READABLE_QUESTIONS), random.getstate()
    right = ask(facts, random, 0)
    random.setstate(state)  # the same question
    wrong = ask(facts, random, 1)
    columns = ("Name", facts.subject.column)
    return Sample(
        image=chart_render.draw(_plan(kind, facts, style, tiny=tiny), pixels),
        query=right.query,
        label=right.label,
        table=table(columns, tuple(zip(facts.names, facts.values, strict=True))),
        chart_type=kind,
        reasoning=right.reasoning(),
        wrong_label=wrong.label,
        wrong_reasoning=wrong.reasoning(),
    )


def table(columns: tuple[str, ...], rows: tuple[tuple[str | float, ...], ...]) -> str:
    """Write a table in the guide's form: one JSON object of columns and rows."""
    document = {"columns": columns, "rows": rows}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _facts(random: Random, *, tiny: bool) -> Facts:
    if not tiny:
        return _readable_facts(random)
    subject = random.choice(TINY_SUBJECTS)
    levels = random.sample(range(chart_render.TINY_SCALE_UNITS + 1), random.choice((3, 4)))
    step = (subject.high - subject.low) / chart_render.TINY_SCALE_UNITS
    values = tuple(round(subject.low + step * level) for level in levels)
    return Facts(subject, subject.names[: len(values)], values)


def _readable_facts(random: Random) -> Facts:
    subject = random.choice(READABLE_SUBJECTS)
    count = random.choice((3, 4, 5, 6))
    first = random.randrange(len(subject.names) - count + 1)
    step = 10.0**-subject.decimals
    steps = round((subject.high - subject.low) / step)
    drawn = [subject.low + step * random.randint(0, steps) for _ in range(count)]
    values = [
        0.0 if value != 0 and random.random() < 1 / 12 and subject.low <= 0 else value
        for value in drawn
    ]
    decimals = subject.decimals
    rounded = tuple(round(value, decimals) if decimals else round(value) for value in values)
    return Facts(subject, subject.names[first : first + count], rounded)


def _plan(kind: str, facts: Facts, style: int, *, tiny: bool) -> chart_render.Plan:
    subject = facts.subject
    low, high = subject.low, subject.high
    tick = (high - low) / 2
    if not tiny:
        low, high = min(0.0, *facts.values), max(0.0, *facts.values)
        tick = _tick(high - low or 1.0)
        low, high = tick * (low // tick), -tick * (-high // tick)
        high = high if high > low else low + tick
    return chart_render.Plan(
        kind, facts.names, facts.values, low, high, tick, _axis(subject), subject.title, style
    )


def _axis(subject: Subject) -> Callable[[float], str]:
    def format_tick(value: float) -> str:
        return f"{value:,g}{subject.unit}"

    return format_tick


def _tick(span: float) -> float:
    """Return the round step that gives an axis at most `TICKS` ticks."""
    power = 10.0 ** (len(str(int(span))) - 2)
    # An axis counts in these steps, times a power of ten.
    # Ticks of a readable axis.
    return next(step * power for step in (1, 2, 2.5, 5, 10, 20, 25, 50) if span <= step * power * 6)


def _two(facts: Facts, random: Random) -> tuple[int, int]:
    first, second = random.sample(range(len(facts.names)), 2)
    return first, second


def _value(facts: Facts, random: Random, shift: int) -> Question:
    index = random.randrange(len(facts.names))
    query = f"What is the value of {facts.names[index]}?"
    index = facts.after(index, shift)
    return Question(query, facts.value(index), (facts.step(index),))


def _extreme(facts: Facts, random: Random, shift: int) -> Question:
    """Ask for the name, or the value, of the highest or the lowest; for a value where two are."""
    extreme, pick = random.choice((("highest", max), ("lowest", min)))
    value = pick(facts.values)
    if facts.values.count(value) > 1:
        return _value(facts, random, shift)
    index = facts.values.index(value)
    name, value_text = facts.names[index], facts.value(index)
    step = f"The {extreme} value is {value_text}, at {name}."
    if random.choice((True, False)):
        return Question(f"Which one is the {extreme}?", name, (step,))
    return Question(f"What is the {extreme} value?", value_text, (step,))


def _difference(facts: Facts, random: Random, shift: int) -> Question:
    first, second = _two(facts, random)
    query = f"What is the value of {facts.names[first]} minus that of {facts.names[second]}?"
    first, second = facts.after(first, shift), facts.after(second, shift)
    result = facts.subject.format_value(facts.values[first] - facts.values[second])
    steps = (facts.step(first), facts.step(second), f"The difference is {result}.")
    return Question(query, result, steps)


def _comparison(facts: Facts, random: Random, shift: int) -> Question:
    first, second = _two(facts, random)
    query = f"Is {facts.names[first]} higher than {facts.names[second]}?"
    first, second = facts.after(first, shift), facts.after(second, shift)
    answer = "Yes" if facts.values[first] > facts.values[second] else "No"
    return Question(query, answer, (facts.step(first), facts.step(second)))


def _count(facts: Facts, random: Random, shift: int) -> Question:  # noqa: ARG001
    bound = 0.0 if facts.subject.low < 0 else (facts.subject.low + facts.subject.high) / 2
    side, above = random.choice((("above", True), ("below", False)))
    names = [
        name
        for name, value in zip(facts.names, facts.values, strict=True)
        if (value > bound if above else value < bound)
    ]
    listing = ", ".join(names) or "None"
    bound_text = facts.subject.format_value(bound)
    step = f"{listing} {'are' if names[1:] else 'is'} {side} {bound_text}."
    return Question(f"How many are {side} {bound_text}?", str(len(names)), (step,))


# A question about facts. With a shift of 1 the answer is about the bar after the one that is named.
Ask = Callable[[Facts, Random, int], Question]
# The value of a bar comes twice: it is what the others are made of.
READABLE_QUESTIONS: tuple[Ask, ...] = (_value, _value, _extreme, _difference, _comparison, _count)
# Those that a tiny model learns in minutes.
TINY_QUESTIONS: tuple[Ask, ...] = (_value, _value, _extreme, _comparison)
