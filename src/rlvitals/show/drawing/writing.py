"""Text that can be drawn: no escapes, no signs that the font has not, no longer than its place."""

import textwrap
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from rlvitals.show.harmless import harmless

FAMILY = "DejaVu Sans"  # comes with matplotlib
WIDE = 0.53  # of the font's size: the mean width of a letter


@cache
def _known() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


def drawable(text: str) -> str:
    """Replace what the font cannot draw: a box for each letter that it has not."""
    return "".join(c if ord(c) in _known() else "\u25a1" for c in harmless(text))


def room(inches: float, size: float) -> int:
    """Return how many letters of a size, in points, fit into a width."""
    return max(8, int(inches * 72 / (WIDE * size)))


def cut(text: str, letters: int) -> str:
    """Shorten a text at its end."""
    said = drawable(text)
    return said if len(said) <= letters else f"{said[: letters - 1].rstrip()}…"


def middle_cut(text: str, letters: int) -> str:
    """Shorten a name in its middle: runs differ at the end as often as at the start."""
    said = drawable(text)
    if len(said) <= letters:
        return said
    half = (letters - 1) // 2
    return f"{said[: letters - 1 - half]}…{said[-half:]}"


def wrapped(text: str, letters: int) -> list[str]:
    """Break a text into lines."""
    return textwrap.wrap(drawable(text), letters) or [""]
