"""A picture drawn by matplotlib: `write(picture, path, ...)` makes a PNG, an SVG or a PDF."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rlvitals.views.drawing import bands, panels
from rlvitals.views.drawing.text_fit import FAMILY, cut, middle_cut, width
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Kind, Picture

# Inches.
WIDTHS = {1: 9.0, 2: 12.0, 3: 13.5}
HEIGHTS = {1: 2.3, 2: 2.5, 3: 2.3}  # of a panel's chart
ALONE = 3.9  # of the only panel's chart
LEFT, RIGHT, SIDE = 0.95, 0.35, 2.1
TOP, BOTTOM, ROW = 1.4, 0.75, 0.28
BETWEEN, BESIDE = 1.0, 0.85
SIZES = {"title": 17.0, "about": 11.0, "legend": 11.0}  # points
LABEL = 44  # letters of a run's name in the legend
LISTED = 16  # runs that the legend names
LEGEND = {Kind.LINES, Kind.ACROSS}  # panels whose colours are runs
HANDLE = 0.75  # inches of a line and of the air around it, in a legend
STYLE: dict[Any, Any] = {
    "font.family": FAMILY,
    "text.parse_math": False,  # a name with two dollars is a name
    "svg.hashsalt": "rlvitals",
    "axes.unicode_minus": False,
    "path.simplify": True,
}
UNDATED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands, in inches from the left and from the top."""

    width: float
    height: float
    chart: float  # width of a panel's chart
    tall: float
    columns: int
    rows: int
    legend: int  # rows of the runs' legend
    beside: int  # runs in each of these rows


def write(picture: Picture, path: Path, theme: Theme, dpi: int) -> None:
    """Draw a picture into a file; its ending says the format."""
    with rc_context(STYLE):
        drawn = draw(picture, theme, dpi)
        kind = path.suffix.removeprefix(".")
        drawn.savefig(path, dpi=dpi, facecolor=theme.paper, metadata=UNDATED[kind])


def draw(picture: Picture, theme: Theme, dpi: int) -> Figure:
    """Draw a picture."""
    at = layout(picture)
    figure = Figure(figsize=(at.width, at.height), dpi=dpi, facecolor=theme.paper)
    _head(figure, picture, theme, at)
    smoothed = False
    below = [panel.kind is Kind.ACROSS for panel in picture.panels[at.columns :]]
    lowest = [*below, *[True] * at.columns]  # of a column that shares its x-axis
    for number, panel in enumerate(picture.panels):
        row, column = divmod(number, at.columns)
        left = LEFT + column * (at.chart + BESIDE)
        top = TOP + row * (at.tall + BETWEEN)
        axes = figure.add_axes(
            (
                left / at.width, 1 - (top + at.tall) / at.height,
                at.chart / at.width, at.tall / at.height,
            )
        )  # fmt: skip
        place = panels.Place(
            picture, theme, at.chart, at.tall, round(at.chart * dpi), lowest[number]
        )
        smoothed |= panels.draw(axes, panel, place)
    _foot(figure, picture, theme, at, smoothed=smoothed)
    return figure


def layout(picture: Picture) -> Layout:
    """Lay a picture out."""
    columns = min(picture.columns, len(picture.panels))
    rows = -(-len(picture.panels) // columns)
    across = WIDTHS[columns]
    crowded = any(panels.is_crowded(panel) for panel in picture.panels)
    inside = across - LEFT - RIGHT - (SIDE if crowded else 0.0)
    chart = (inside - (columns - 1) * BESIDE) / columns
    tall = ALONE if len(picture.panels) == 1 else HEIGHTS[columns]
    beside, legend = 1, 0
    if len(picture.runs) > 1 and any(p.kind in LEGEND for p in picture.panels):
        names = _names(picture)
        longest = max(width(name, SIZES["legend"]) for name in names)
        beside = max(1, int((across - LEFT) / (longest + HANDLE)))
        legend = -(-len(names) // beside)
    height = TOP + rows * tall + (rows - 1) * BETWEEN + BOTTOM + legend * ROW
    last = picture.panels[(rows - 1) * columns :]
    if rows > 1 and all(panel.kind is Kind.WORDS for panel in last):
        several = len(picture.runs) > 1
        needs = max(panels.words_tall(panel, chart, several=several) for panel in last)
        height -= max(tall - needs, 0.0)
    return Layout(across, height, chart, tall, columns, rows, legend, beside)


def _head(figure: Figure, picture: Picture, theme: Theme, at: Layout) -> None:
    left = LEFT / at.width
    inches = at.width - LEFT - RIGHT
    figure.text(
        left, 1 - 0.42 / at.height, picture.title,
        size=SIZES["title"], weight="bold", color=theme.ink,
    )  # fmt: skip
    figure.text(
        left, 1 - 0.68 / at.height, cut(picture.about, inches, SIZES["about"]),
        size=SIZES["about"], color=theme.dim,
    )  # fmt: skip


def _foot(figure: Figure, picture: Picture, theme: Theme, at: Layout, *, smoothed: bool) -> None:
    """Name the runs, and say what the thick lines are."""
    if smoothed:
        figure.text(
            1 - RIGHT / at.width, 1 - 0.42 / at.height,
            "thin: as logged · thick: average over 5 % of the run",
            size=10, color=theme.dim, ha="right",
        )  # fmt: skip
    if any(panel.kind is Kind.BANDS for panel in picture.panels):
        shades, said = bands.legend(theme)
        figure.legend(
            shades, said, loc="upper right", ncols=len(said), frameon=False,
            bbox_to_anchor=(1 - (RIGHT - 0.05) / at.width, 1 - 0.2 / at.height),
            fontsize=SIZES["about"], labelcolor=theme.ink, handlelength=1.4, columnspacing=1.4,
        )  # fmt: skip
    if not at.legend:
        return
    shown = picture.runs[:LISTED]
    handles = [
        Line2D([], [], color=panels.colour(theme, run), lw=3, ls=panels.dash(run, theme))
        for run in range(len(shown))
    ]
    names = _names(picture)
    handles += [Line2D([], [], color=theme.paper)] * (len(names) - len(handles))
    figure.legend(
        handles, names, loc="lower left", bbox_to_anchor=(LEFT / at.width - 0.01, 0.0),
        ncols=at.beside, frameon=False, fontsize=SIZES["legend"], labelcolor=theme.ink,
    )  # fmt: skip


def _names(picture: Picture) -> list[str]:
    """Return what the runs' legend says: their labels, and how many more there are."""
    names = [middle_cut(run, LABEL) for run in picture.runs[:LISTED]]
    more = len(picture.runs) - LISTED
    return [*names, f"and {more} more"] if more > 0 else names
