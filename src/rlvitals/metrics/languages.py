"""Write the names of metrics that loops print in other languages in English.

    english("回合：12/500，平均奖励：3.5")       # "episode: 12/500, average reward: 3.5"
    english("Recompensa total")                 # "reward total"

A text in which no such word stands for an episode, a reward or another outcome is returned as it
is. `data/languages.toml` lists the words.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources

from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Languages:
    """The words of `data/languages.toml`."""

    english: dict[str, str]  # by word
    mark_terms: tuple[str, ...]
    marks: tuple[str, ...]  # parts of these that find all of them
    ascii_marks: tuple[str, ...]


@cache
def languages() -> Languages:
    """Return the words of other languages."""
    text = resources.files("rlvitals.metrics").joinpath("data/languages.toml").read_text("utf-8")
    data = tomllib.loads(text)
    table: dict[str, list[str]] = data["words"]
    mark_terms = tuple(term for name in data["marks"] for term in table[name])
    terms = {term: name for name, foreign_terms in table.items() for term in foreign_terms}
    marks = tuple(  # "recompensas" is found by "recompensa"
        term for term in mark_terms if not any(m in term for m in mark_terms if m != term)
    )
    ascii_marks = tuple(filter(str.isascii, marks))
    return Languages(terms, mark_terms, marks, ascii_marks)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds the marks, and what finds all words."""
    tables = languages()
    patterns = []
    for terms in (tables.mark_terms, tables.english):
        texts = sorted(terms, key=len, reverse=True)
        # Whole words, except in scripts that set none apart.
        spaced = "|".join(re.escape(text) for text in texts if _sets_words_apart(text))
        joined = "|".join(re.escape(text) for text in texts if not _sets_words_apart(text))
        pattern = rf"(?<![^\W\d_])(?:{spaced})(?![^\W\d_])|{joined}"
        patterns.append(re.compile(pattern, re.IGNORECASE))
    return patterns[0], patterns[1]


def _sets_words_apart(text: str) -> bool:
    return text[0] < "\u3000"  # before the scripts of East Asia


def english(text: str) -> str:
    """Return a text with its words for episodes, rewards and other metrics in English.

    One of more than 2,000 characters is neither a name nor a row written by hand: it is kept.
    """
    return text if len(text) > 2000 else _english(text)


@lru_cache(maxsize=4096)
def _english(text: str) -> str:
    tables, lower = languages(), text.lower()
    for mark in tables.ascii_marks if text.isascii() else tables.marks:
        if mark in lower:
            break
    else:
        return text  # in a quarter of the time of a search
    mark_pattern, term_pattern = _patterns()
    if mark_pattern.search(text) is None:
        return text
    text = term_pattern.sub(lambda match: _translate(match[0], tables.english), text)
    text = re.sub(r"(?<=\w)\0+(?=\w)", " ", text).replace("\0", "")
    text = re.sub(r"\uff1a\s*", ": ", text)  # the colon, the comma and the brackets of East Asia
    text = re.sub(r"\uff0c\s*", ", ", text).replace("\uff08", " (").replace("\uff09", ")")
    return re.sub(r"第\s*(\d+)\s*(?:个|個)?\s*(episode|epoch|game)", r"\2 \1", text)


def _translate(term: str, names: dict[str, str]) -> str:
    name = names[term.lower()]
    return name if _sets_words_apart(term) else f"\0{name}\0"  # spaces, where words touch it
