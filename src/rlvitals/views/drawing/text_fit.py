"""Text that can be drawn: no escapes, no signs that the font has not, no wider than its place."""

from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from rlvitals.errors import harmless

FAMILY = "DejaVu Sans"  # comes with matplotlib
POINTS = 72.0  # to the inch
FINE = 64.0  # parts of a point, as the font measures


@cache
def _file(*, bold: bool) -> str:
    return str(findfont(FontProperties(family=FAMILY, weight="bold" if bold else "normal")))


@cache
def _known() -> frozenset[int]:
    return frozenset(get_font(_file(bold=False)).get_charmap())


def drawable(text: str) -> str:
    """Replace what the font cannot draw: a box for each letter that it has not."""
    return "".join(c if ord(c) in _known() else "\u25a1" for c in harmless(text))


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how many inches a text takes, of a size in points."""
    font = get_font(_file(bold=bold))
    font.set_size(size, POINTS)
    font.set_text(text, 0.0)
    return float(font.get_width_height()[0]) / FINE / POINTS


def cut(text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """Shorten a text at its end to what fits."""
    said = drawable(text)
    if width(said, size, bold=bold) <= inches:
        return said
    fits, most = 0, len(said)
    while most - fits > 1:
        middle = (fits + most) // 2
        wide = width(f"{said[:middle]}…", size, bold=bold) > inches
        fits, most = (fits, middle) if wide else (middle, most)
    return f"{said[:fits].rstrip()}…"


def middle_cut(text: str, letters: int) -> str:
    """Shorten a name in its middle: runs differ at the end as often as at the start."""
    said = drawable(text)
    if len(said) <= letters:
        return said
    half = (letters - 1) // 2
    return f"{said[: letters - 1 - half]}…{said[-half:]}"


def wrapped(text: str, inches: float, size: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines; a word that is too long for one is cut."""
    lines = [""]
    for word in drawable(text).split():
        joined = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and width(joined, size, bold=bold) > inches:
            lines.append("")
            joined = word
        lines[-1] = joined
    return [cut(line, inches, size, bold=bold) for line in lines]
