"""Fit text to the font and to a width: replace, shorten or wrap it."""

from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from rlvitals.errors import harmless

FONT_FAMILY = "DejaVu Sans"  # bundled with matplotlib
POINTS_PER_INCH = 72.0


@cache
def _file(*, bold: bool) -> str:
    return str(findfont(FontProperties(family=FONT_FAMILY, weight="bold" if bold else "normal")))


@cache
def _charset() -> frozenset[int]:
    return frozenset(get_font(_file(bold=False)).get_charmap())


def drawable(text: str) -> str:
    """Replace each character that the font lacks by a box."""
    return "".join(c if ord(c) in _charset() else "\u25a1" for c in harmless(text))


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in inches; `size` is in points."""
    font = get_font(_file(bold=bold))
    font.set_size(size, POINTS_PER_INCH)
    font.set_text(text, 0.0)
    # FreeType measures in 1/64 point.
    return float(font.get_width_height()[0]) / 64.0 / POINTS_PER_INCH


def cut(text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """Shorten a text at its end to a width in inches."""
    full_text = drawable(text)
    if width(full_text, size, bold=bold) <= inches:
        return full_text
    fitting, too_long = 0, len(full_text)
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        wide = width(f"{full_text[:middle]}…", size, bold=bold) > inches
        fitting, too_long = (fitting, middle) if wide else (middle, too_long)
    return f"{full_text[:fitting].rstrip()}…"


def middle_cut(text: str, letters: int) -> str:
    """Shorten a name in its middle, because run names differ at both ends."""
    full_text = drawable(text)
    if len(full_text) <= letters:
        return full_text
    half = (letters - 1) // 2
    return f"{full_text[: letters - 1 - half]}…{full_text[-half:]}"


def wrap(text: str, inches: float, size: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines of a width in inches; shorten words that are longer."""
    lines = [""]
    for token in drawable(text).split():
        joined = f"{lines[-1]} {token}".lstrip()
        if lines[-1] and width(joined, size, bold=bold) > inches:
            lines.append("")
            joined = token
        lines[-1] = joined
    return [cut(line, inches, size, bold=bold) for line in lines]
