"""Compare two answers: as numbers with a unit, or as words."""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

EXACT_TOLERANCE = Fraction(0)
# ChartQA's relaxed accuracy: a value is read off a chart to 5 %.
CHART_TOLERANCE = Fraction(1, 20)
UNIT_PATTERN = r"[^\W\d_](?:[^\W\d_]|[/.²³^-])*"  # km/h, m²
NUMBER_PATTERN = re.compile(
    rf"""(?P<sign>[+-]?)\ ?(?P<currency>[$€£¥]?)\ ?(?P<inner>[+-]?)
    (?P<whole>[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]{{1,3}}(?:\ [0-9]{{3}})+|[0-9]*)
    (?P<part>(?:\.[0-9]*)?)(?P<power>(?:[eE][+-]?[0-9]{{1,3}})?)
    \ ?(?P<unit>%|{UNIT_PATTERN}(?:\ {UNIT_PATTERN})?|°[A-Za-z]?|[$€£¥]|)""",
    re.VERBOSE,
)
UNIT_SCALES = {
    "%": Fraction(1, 100), "percent": Fraction(1, 100), "per cent": Fraction(1, 100),
    "pct": Fraction(1, 100),
    "k": Fraction(10**3), "K": Fraction(10**3), "thousand": Fraction(10**3),
    "M": Fraction(10**6), "mn": Fraction(10**6), "million": Fraction(10**6),
    "B": Fraction(10**9), "bn": Fraction(10**9), "billion": Fraction(10**9),
    "T": Fraction(10**12), "trillion": Fraction(10**12),
}  # fmt: skip
CURRENCY_SYMBOLS = {
    "dollar": "$", "usd": "$", "euro": "€", "eur": "€", "pound": "£", "gbp": "£", "yen": "¥",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written: 1.2 million euros is 1.2, 10^6 and "€"."""

    value: Fraction
    scale: Fraction = Fraction(1)
    unit: str = ""


def is_same(answer: str, reference: str, tolerance: Fraction = EXACT_TOLERANCE) -> bool:
    """Say whether an answer means what the reference does. An empty one never does.

    Numbers may differ by `tolerance` times the reference's size; zero is only zero. A sign counts.
    A unit, or a scale as % or million, may be left out, but not be another one: 50%, 50 and 0.5
    are the same, 5 kg and 5 g are not. Words are compared without case and quotes.
    """
    plain_answer, plain_reference = plain(answer), plain(reference)
    if not plain_answer or not plain_reference:
        return False
    a, b = number(answer), number(reference)
    if a is None or b is None:
        return plain_answer == plain_reference
    if a.unit and b.unit and a.unit != b.unit:
        return False
    if _near(a.value * a.scale, b.value * b.scale, tolerance):
        return True
    left_out = Fraction(1) in {a.scale, b.scale}
    return left_out and _near(a.value, b.value, tolerance)


def _near(value: Fraction, reference: Fraction, tolerance: Fraction) -> bool:
    return abs(value - reference) <= tolerance * abs(reference)


def plain(text: str) -> str:
    """Return a text without case, quotes, a last dot, and more than one space in a row."""
    return " ".join(_clean(text).casefold().split())


def _clean(text: str) -> str:
    text = (
        unicodedata.normalize("NFKC", text)
        .translate(str.maketrans("\u2212\u2013\u2014", "---"))
        .strip(" \t\r\n\"'`*")
    )
    return text.removesuffix(".").strip(" \t\r\n\"'`*")


def number(text: str) -> Number | None:
    """Read a number with its unit: -$1,234.50, 12 %, 3.4 million people. None for anything else."""
    if len(text) > 300:
        return None
    match = NUMBER_PATTERN.fullmatch(_clean(text))
    if match is None or not (match["whole"] or match["part"].strip(".")):
        return None
    if match["sign"] and match["inner"]:
        return None
    digits = match["whole"].replace(",", "").replace(" ", "") or "0"
    value = Fraction(f"{digits}{match['part'].rstrip('.')}{match['power']}")
    if "-" in (match["sign"], match["inner"]):
        value = -value
    unit, currency = match["unit"], match["currency"]
    scale = Fraction(1)
    tokens = unit.split(" ") if unit not in UNIT_SCALES else [unit]
    # "5 or 6" is no number.
    if {"or", "and", "to", "not", "is", "of", "but"} & {token.casefold() for token in tokens}:
        return None
    if tokens[0] in UNIT_SCALES or tokens[0].casefold() in UNIT_SCALES:
        scale = UNIT_SCALES.get(tokens[0]) or UNIT_SCALES[tokens[0].casefold()]
        tokens = tokens[1:]
    name = " ".join(tokens).casefold()
    name = name.removesuffix("s") if len(name) > len("cms") else name
    name = CURRENCY_SYMBOLS.get(name, name)
    if currency and name and name != currency:
        return None
    return Number(value, scale, currency or name)
