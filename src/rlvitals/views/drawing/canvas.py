"""Draw a picture with matplotlib and write it as PNG, SVG or PDF."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.views.drawing import bands, panels
from rlvitals.views.drawing.text_fit import FONT_FAMILY, cut, middle_cut, width
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Kind, Picture

FONT_SIZES = {"title": 17.0, "about": 11.0, "legend": 11.0}  # points
MAX_LEGEND_RUNS = 16  # in the legend
RC_PARAMS: dict[Any, Any] = {
    "font.family": FONT_FAMILY,
    "text.parse_math": False,  # names may contain dollar signs
    "svg.hashsalt": "rlvitals",
    "axes.unicode_minus": False,
    "path.simplify": True,
}


class Inches:
    """Distances around and between the panels of a picture."""

    LEFT = 0.95
    RIGHT = 0.35
    TOP = 1.4
    BOTTOM = 0.75
    SIDE_LEGEND = 2.1
    LEGEND_ROW = 0.28
    ROW_GAP = 1.0
    PANEL_GAP = 0.85


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a picture's parts in inches, and its rows and columns."""

    width: float
    height: float
    chart: float  # width of a panel's chart
    tall: float
    columns: int
    rows: int
    legend: int  # rows of the runs' legend
    beside: int  # runs in each row of the legend


def write(picture: Picture, path: Path, theme: Theme, dpi: int) -> None:
    """Write a picture to a file; the suffix selects the format."""
    with rc_context(RC_PARAMS):
        figure = draw(picture, theme, dpi)
        kind = path.suffix.removeprefix(".")
        figure.savefig(
            path,
            dpi=dpi,
            facecolor=theme.paper,
            metadata={
                "png": {"Software": None},
                "svg": {"Date": None},
                "pdf": {"CreationDate": None},
            }[kind],
        )


def draw(picture: Picture, theme: Theme, dpi: int) -> Figure:
    """Return a picture as a matplotlib figure."""
    page = layout(picture)
    figure = Figure(figsize=(page.width, page.height), dpi=dpi, facecolor=theme.paper)
    left_share = Inches.LEFT / page.width
    inches = page.width - Inches.LEFT - Inches.RIGHT
    figure.text(
        left_share, 1 - 0.42 / page.height, picture.title,
        size=FONT_SIZES["title"], weight="bold", color=theme.ink,
    )  # fmt: skip
    figure.text(
        left_share, 1 - 0.68 / page.height, cut(picture.about, inches, FONT_SIZES["about"]),
        size=FONT_SIZES["about"], color=theme.dim,
    )  # fmt: skip
    smoothed = False
    below = [panel.kind is Kind.ACROSS for panel in picture.panels[page.columns :]]
    lowest = [*below, *[True] * page.columns]  # panels at the bottom of a column label the x-axis
    for number, panel in enumerate(picture.panels):
        row, column = divmod(number, page.columns)
        left_in = Inches.LEFT + column * (page.chart + Inches.PANEL_GAP)
        top = Inches.TOP + row * (page.tall + Inches.ROW_GAP)
        axes = figure.add_axes(
            (
                left_in / page.width, 1 - (top + page.tall) / page.height,
                page.chart / page.width, page.tall / page.height,
            )
        )  # fmt: skip
        context = panels.PanelContext(
            picture,
            theme,
            page.chart,
            page.tall,
            round(page.chart * dpi),
            lowest[number],
        )
        smoothed |= panels.draw(axes, panel, context)
    _foot(figure, picture, theme, page, smoothed=smoothed)
    return figure


def layout(picture: Picture) -> Layout:
    """Compute the layout of a picture."""
    columns = min(picture.columns, len(picture.panels))
    rows = -(-len(picture.panels) // columns)
    width_in = {1: 9.0, 2: 12.0, 3: 13.5}[columns]
    crowded = any(panels.has_side_legend(panel) for panel in picture.panels)
    inside = width_in - Inches.LEFT - Inches.RIGHT - (Inches.SIDE_LEGEND if crowded else 0.0)
    chart = (inside - (columns - 1) * Inches.PANEL_GAP) / columns
    # A single panel is taller than those in rows.
    tall = 3.9 if len(picture.panels) == 1 else {1: 2.3, 2: 2.5, 3: 2.3}[columns]
    runs_per_row, legend = 1, 0
    if len(picture.runs) > 1 and any(p.kind in {Kind.LINES, Kind.ACROSS} for p in picture.panels):
        names = _names(picture)
        longest = max(width(name, FONT_SIZES["legend"]) for name in names)
        # 0.75 inches: a legend's line with its padding
        runs_per_row = max(1, int((width_in - Inches.LEFT) / (longest + 0.75)))
        legend = -(-len(names) // runs_per_row)
    height = (
        Inches.TOP
        + rows * tall
        + (rows - 1) * Inches.ROW_GAP
        + Inches.BOTTOM
        + legend * Inches.LEGEND_ROW
    )
    last_row = picture.panels[(rows - 1) * columns :]
    if rows > 1 and all(panel.kind is Kind.WORDS for panel in last_row):
        several = len(picture.runs) > 1
        height_needed = max(panels.words_tall(panel, chart, several=several) for panel in last_row)
        height -= max(tall - height_needed, 0.0)
    return Layout(width_in, height, chart, tall, columns, rows, legend, runs_per_row)


def _foot(figure: Figure, picture: Picture, theme: Theme, page: Layout, *, smoothed: bool) -> None:
    """Draw the legend of the runs and the key to thick lines and bands."""
    if smoothed:
        figure.text(
            1 - Inches.RIGHT / page.width, 1 - 0.42 / page.height,
            "thin: as logged · thick: average over 5 % of the run",
            size=10, color=theme.dim, ha="right",
        )  # fmt: skip
    if any(panel.kind is Kind.BANDS for panel in picture.panels):
        shades, labels = bands.legend(theme)
        figure.legend(
            shades, labels, loc="upper right", ncols=len(labels), frameon=False,
            bbox_to_anchor=(1 - (Inches.RIGHT - 0.05) / page.width, 1 - 0.2 / page.height),
            fontsize=FONT_SIZES["about"], labelcolor=theme.ink, handlelength=1.4, columnspacing=1.4,
        )  # fmt: skip
    if not page.legend:
        return
    names_shown = picture.runs[:MAX_LEGEND_RUNS]
    handles = [
        Line2D([], [], color=theme.curve(run), lw=3, ls=panels.dash(run, theme))
        for run in range(len(names_shown))
    ]
    names = _names(picture)
    handles += [Line2D([], [], color=theme.paper)] * (len(names) - len(handles))
    figure.legend(
        handles, names, loc="lower left", bbox_to_anchor=(Inches.LEFT / page.width - 0.01, 0.0),
        ncols=page.beside, frameon=False, fontsize=FONT_SIZES["legend"], labelcolor=theme.ink,
    )  # fmt: skip


def _names(picture: Picture) -> list[str]:
    """Return the labels of the runs' legend, and the number of runs left out."""
    names = [middle_cut(run, 44) for run in picture.runs[:MAX_LEGEND_RUNS]]
    hidden_count = len(picture.runs) - MAX_LEGEND_RUNS
    return [*names, f"and {hidden_count} more"] if hidden_count > 0 else names
