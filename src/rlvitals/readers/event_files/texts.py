"""Texts, and the settings that some loops write as one.

CleanRL writes a Markdown table: `|param|value|`, `|-|-|`, then `|learning_rate|0.0003|` and so on.
"""

import re

from rlvitals.records import Setting

TABLE = re.compile(r"\s*\|\s*(?:hyper)?param(?:eter)?s?\s*\|\s*values?\s*\|\s*", re.IGNORECASE)
RULE = re.compile(r"[\s|:-]*")
WORDS = {"true": True, "false": False}
ABSENT = {"", "none", "null"}
MOST_SETTINGS = 10_000


def settings_in(text: str) -> dict[str, Setting]:
    """Return the settings of a table of parameters and values; empty for any other text."""
    head, *rows = text.strip().splitlines()[:MOST_SETTINGS] or [""]
    if not TABLE.fullmatch(head):
        return {}
    settings: dict[str, Setting] = {}
    for row in rows:
        key, bar, value = row.strip().removeprefix("|").partition("|")
        value = value.strip().removesuffix("|").strip()
        if bar and not RULE.fullmatch(row) and key.strip() and value.lower() not in ABSENT:
            settings[key.strip()] = _setting(value)
    return settings


def _setting(text: str) -> Setting:
    """Return a value as what it is written like."""
    if (known := WORDS.get(text.lower())) is not None:
        return known
    if "_" not in text:  # Python's 1_000 is text
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
