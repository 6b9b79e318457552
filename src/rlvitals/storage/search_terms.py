"""Parse the words that select runs: `ppo tag:sweep verdict:learning lr<1e-3`.

Every engine that lists runs compiles the parsed terms with bound values, so that all give the same
answer. Texts are compared without regard to the case of ASCII letters.
"""

import math
import re

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass

SEARCH_FIELDS = ("name", "project", "group", "status", "verdict", "id", "notes")


@dataclass(frozen=True, slots=True)
class TextTerm:
    """A text that the path, the name, the tags or another field of a run contains."""

    text: str


@dataclass(frozen=True, slots=True)
class TagTerm:
    """A tag that a run has."""

    tag: str


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A text that one of SEARCH_FIELDS contains."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingTerm:
    """A comparison of a setting, given by its name or the last part of it.

    `operator` is one of <=, >=, !=, =, < and >; a text allows only "=" and "!=".
    """

    key: str
    operator: str
    operand: float | str


Term = TextTerm | TagTerm | FieldTerm | SettingTerm


def parse(terms: str) -> tuple[Term, ...]:
    """Return the terms of a query, all of which a run must fit. Raises UsageError."""
    return tuple(_parse_term(text) for text in terms.split())


def _parse_term(text: str) -> Term:
    match = re.fullmatch(r"(?P<key>[\w./-]+?)(?P<operator><=|>=|!=|=|<|>|:)(?P<value>.*)", text)
    if match is None:
        return TextTerm(text)
    key, operator, value = match["key"], match["operator"], match["value"]
    if operator != ":":
        # A text only where equality is asked. NaN is a text: it equals none.
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        operand: float | str = value
        if not math.isnan(number):
            operand = number
        elif operator not in {"=", "!="}:
            raise UsageError(f"{value!r} is not a number", where=text) from None
        return SettingTerm(key, operator, operand)
    if key == "tag":
        return TagTerm(value)
    if key not in SEARCH_FIELDS:
        hint = f"one of tag, {', '.join(SEARCH_FIELDS)}; KEY=VALUE asks for a setting"
        raise UsageError(f"nothing is called {key!r}", where=text, hint=hint)
    return FieldTerm(key, value)
