"""Draw a bar or line chart with PIL: by pixel if it is tiny, antialiased if it is readable.

A tiny chart (a side below `READABLE`) has a fixed scale of ten units, with one grid line for each:
a height means the same in every chart of its kind. Its letters are 3 x 5 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

READABLE_PIXELS = 160  # pixels of a side from which words fit
SUPERSAMPLING = 2  # a readable chart is drawn so many times larger, and made smaller
TINY_SCALE_UNITS = 10  # of a tiny chart's scale
BLACK, GRID_COLOUR, AXIS_COLOUR = "#202020", "#e4e4e4", "#707070"
COLOURS = ("#1f77b4", "#d6604d", "#2ca02c", "#9467bd", "#e6a117", "#17becf")
GLYPHS = {  # five rows from the top, each an octal digit of three pixels
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71122", "8": "75757", "9": "75717", "-": "00700", "%": "51245",
    "A": "25755", "B": "65656", "C": "34443", "D": "65556",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of a chart: `values` between `low` and `high`, with a tick every `tick`."""

    kind: str  # "bar" or "line"
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: float
    high: float
    tick: float
    format_value: Callable[[float], str]  # a value as the axis writes it
    title: str
    style: int = 0  # the place in `COLOURS` of the first bar's colour, or of the line's


def draw(plan: Plan, side: int) -> Image:
    """Draw a square picture of `side` pixels. The same plan gives the same pixels."""
    return _tiny(plan, side) if side < READABLE_PIXELS else _readable(plan, side)


def _tiny(plan: Plan, side: int) -> Image:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (side, side), "#ffffff")
    pen = ImageDraw.Draw(image)
    left, right, unit = side // 3, side - 1, (side - 8) // TINY_SCALE_UNITS
    bottom = side - 7  # below it are the names
    # Four bars: each is in one column of the model's patches.
    across, up = (side - left) / 4, unit * TINY_SCALE_UNITS / (plan.high - plan.low)

    def height(value: float) -> int:
        return bottom - round((value - plan.low) * up)

    for line in range(TINY_SCALE_UNITS + 1):
        pen.line((left, bottom - line * unit, right, bottom - line * unit), fill=GRID_COLOUR)
    pen.line((left, height(0), right, height(0)), fill=AXIS_COLOUR)
    for share in (0.0, 0.5, 1.0):
        tick = plan.low + share * (plan.high - plan.low)
        if share < 1 or tick > 0 > plan.low:
            text = plan.format_value(tick).removesuffix("%")
            _glyphs(pen, text, left - 1 - 4 * len(text), min(max(height(tick) - 2, 0), bottom - 3))
    if plan.format_value(0).endswith("%"):
        _glyphs(pen, "%", 0, 0)
    middles = [left + int((index + 0.5) * across) for index in range(len(plan.names))]
    for name, middle in zip(plan.names, middles, strict=True):
        _glyphs(pen, name, middle - 1, side - 5)
    points = [(float(x), float(height(v))) for x, v in zip(middles, plan.values, strict=True)]
    if plan.kind == "line":
        _line(pen, points, 1, plan.style)
    else:
        _bars(pen, points, height(0), max(1, round(across * 0.28)), plan.style)
    return image


def _glyphs(pen: ImageDraw, text: str, left: int, top: int) -> None:
    for index, character in enumerate(text):
        for row, bits in enumerate(GLYPHS[character]):
            for column in range(3):
                if int(bits) >> (2 - column) & 1:
                    pen.point((left + 4 * index + column, top + row), fill=BLACK)


def _readable(plan: Plan, side: int) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    large = side * SUPERSAMPLING
    image = Image.new("RGB", (large, large), "#ffffff")
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(large / 27)
    top, bottom, right = large * 0.13, large * 0.88, large * 0.97
    left = large * 0.05 + max(font.getlength(plan.format_value(tick)) for tick in _ticks(plan))
    across, up = (right - left) / len(plan.names), (bottom - top) / (plan.high - plan.low)

    def height(value: float) -> float:
        return bottom - (value - plan.low) * up

    pen.text((large / 2, top / 2), plan.title, BLACK, ImageFont.load_default(large / 23), "mm")
    for tick in _ticks(plan):
        colour, width = (AXIS_COLOUR, SUPERSAMPLING) if tick == 0 else (GRID_COLOUR, SUPERSAMPLING)
        pen.line((left, height(tick), right, height(tick)), colour, width)
        pen.text((left - large * 0.015, height(tick)), plan.format_value(tick), BLACK, font, "rm")
    middles = [left + (index + 0.5) * across for index in range(len(plan.names))]
    for name, middle in zip(plan.names, middles, strict=True):
        from PIL import ImageFont

        too_wide = font.getlength(name) / (0.94 * across)
        size = getattr(font, "size", 10.0)
        pen.text(
            (middle, bottom + large * 0.045),
            name,
            BLACK,
            font if too_wide <= 1 else ImageFont.load_default(size / too_wide),
            "mm",
        )
    points = [(float(x), float(height(v))) for x, v in zip(middles, plan.values, strict=True)]
    if plan.kind == "line":
        _line(pen, points, 2 * SUPERSAMPLING, plan.style)
    else:
        _bars(pen, points, height(0), across * 0.34, plan.style)
    return image.resize((side, side), Image.Resampling.LANCZOS)


def _ticks(plan: Plan) -> list[float]:
    count = round((plan.high - plan.low) / plan.tick)
    return [round(plan.low + index * plan.tick, 6) for index in range(count + 1)]


def _line(pen: ImageDraw, points: list[tuple[float, float]], width: int, style: int) -> None:
    line, mark = (COLOURS[index % len(COLOURS)] for index in (style, style + 1))
    pen.line(points, line, width)
    for x, y in points:
        pen.rectangle((x - width, y - width, x + width, y + width), mark)


def _bars(
    pen: ImageDraw, points: list[tuple[float, float]], zero: float, half: float, style: int
) -> None:
    """Draw bars from `zero`; `half` of a bar's width. All in pixels."""
    for index, (x, y) in enumerate(points):
        colour = COLOURS[(style + index) % len(COLOURS)]
        pen.rectangle((x - half, min(y, zero), x + half, max(y, zero)), colour)
