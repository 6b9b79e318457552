"""Draw a panel of a picture: curves, limits, marks and legend."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.views.drawing import bands, custom_axis
from rlvitals.views.drawing.axes import set_log_ticks, set_scale
from rlvitals.views.drawing.curves import Curve, Scale, curves, scale
from rlvitals.views.drawing.text_fit import POINTS_PER_INCH, cut, drawable, width, wrap
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Kind, Mark, Panel, Picture

MAX_LIMIT_DISTANCE = 8.0  # of the curves' size; farther limits are captions only
TEXT_SIZES = {"title": 13.0, "ticks": 11.0, "caption": 10.0, "words": 12.0}  # points
Dash = str | tuple[int, tuple[float, ...]]
LINE_DASHES: tuple[Dash, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
HATCHES = ("", "//", "\\\\", "..", "xx")  # of areas that reuse a colour


@dataclass(frozen=True, slots=True)
class PanelContext:
    """The picture, theme and size that a panel is drawn with."""

    picture: Picture
    theme: Theme
    inches: float  # width of the chart
    tall: float  # height of the chart, inches
    pixels: int  # width of the chart
    lowest: bool  # in its column, where the x-axis is labelled

    @property
    def several(self) -> bool:
        """Whether colours distinguish runs instead of one run's curves."""
        return len(self.picture.runs) > 1


def has_side_legend(panel: Panel) -> bool:
    """Return whether a panel has too many parts for a legend next to its title."""
    return len(_part_names(panel)) > 3  # with a legend next to the title


def dash(index: int, theme: Theme) -> Dash:
    """Return the dashes of a curve whose colour is reused."""
    return LINE_DASHES[index // len(theme.curves) % len(LINE_DASHES)]


def draw(axes: Axes, panel: Panel, context: PanelContext) -> bool:
    """Draw one panel; return whether it contains averages."""
    theme = context.theme
    axes.set_facecolor(theme.paper)
    if panel.across:
        _across(axes, panel, context)
        return False
    if panel.kind is Kind.WORDS or not panel.lines:
        _draw_text(axes, panel, context)
        return False
    _frame(axes, context)
    drawn_curves = curves(panel, context.pixels, context.picture.first, context.picture.last)
    kind, width = scale(panel, drawn_curves)
    set_scale(axes, kind, width)
    if panel.kind is Kind.SHARES:
        _areas(axes, panel, theme)
    middle = bands.draw(axes, panel, theme, context.pixels) if panel.kind is Kind.BANDS else None
    for curve in drawn_curves if panel.kind is not Kind.SHARES else ():
        if curve.line is middle or not curve.line.quantile:
            _curve(axes, curve, context)
    _ends(axes, panel, drawn_curves, kind)
    distant = _limits(axes, panel, theme, kind)
    for stretch in panel.stretches:
        axes.axvspan(stretch.began, stretch.ended, color=theme.curve(3), alpha=0.22, lw=0)
    _marks(axes, panel, context)
    _bad(axes, drawn_curves, theme)
    captions = [*_finding_texts(panel, context), *_count_texts(drawn_curves), *distant]
    _title(
        axes,
        panel,
        context,
        captions,
        {"linear": "", "log": "log scale", "asinh": "compressed scale"}[kind],
    )
    _legend(axes, panel, context)
    return any(curve.smooth is not None for curve in drawn_curves)


def _across(axes: Axes, panel: Panel, context: PanelContext) -> None:
    """Draw curves over the panel's own x-axis."""
    _plain_frame(axes, context.theme)
    custom_axis.draw(axes, panel, context.theme)
    distant = _limits(axes, panel, context.theme, "linear")
    label = cut(panel.x_label, context.inches, TEXT_SIZES["ticks"])
    axes.set_xlabel(label, color=context.theme.dim, size=TEXT_SIZES["ticks"])
    _title(axes, panel, context, distant)


def _plain_frame(axes: Axes, theme: Theme) -> None:
    axes.tick_params(colors=theme.dim, labelsize=TEXT_SIZES["ticks"], length=3)
    axes.grid(visible=True, axis="y", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.dim)


def _frame(axes: Axes, context: PanelContext) -> None:
    theme, picture = context.theme, context.picture
    _plain_frame(axes, theme)
    pad = 0.01 * max(picture.last - picture.first, 1)
    axes.set_xlim(picture.first - pad, picture.last + pad)
    if context.lowest:
        label = cut(picture.x_label, context.inches, TEXT_SIZES["ticks"])
        axes.set_xlabel(label, color=theme.dim, size=TEXT_SIZES["ticks"])
    for seam in picture.seams:
        axes.axvline(seam, color=theme.dim, lw=1.0, ls=":")


def _curve(axes: Axes, curve: Curve, context: PanelContext) -> None:
    run, curve_index = curve.line.run, curve.line.part
    theme = context.theme
    first = run if context.several else curve_index
    ink = theme.curve(first)
    ls = LINE_DASHES[curve_index % len(LINE_DASHES)] if context.several else "solid"
    if first >= len(theme.curves):
        ls = dash(first, theme)
    thin = curve.smooth is not None
    # Points between gaps, which no line shows.
    finite = np.concatenate(([False], np.isfinite(curve.values), [False]))
    lone = finite[1:-1] & ~finite[:-2] & ~finite[2:]
    is_short = len(curve.line.series) <= 30  # each point has a marker
    axes.plot(
        curve.steps, curve.values, color=ink, ls=ls, lw=0.9 if thin else 2.0,
        alpha=0.4 if thin else 1.0, marker="o" if is_short else None, ms=4, solid_joinstyle="round",
    )  # fmt: skip
    if not is_short and lone.any():
        axes.plot(curve.steps[lone], curve.values[lone], "o", ms=2.5, color=ink)
    if curve.smooth is not None:
        axes.plot(*curve.smooth, color=ink, ls=ls, lw=2.4)


def _areas(axes: Axes, panel: Panel, theme: Theme) -> None:
    """Stack shares, each over the steps in which it was counted."""
    steps = panel.lines[0].series.steps
    below = np.zeros(len(steps))
    for index, line in enumerate(panel.lines):
        above = below + np.nan_to_num(line.series.values)
        axes.fill_between(
            steps, below, above, color=theme.curve(index), alpha=0.85, lw=0, step="pre",
            hatch=HATCHES[index // len(theme.curves) % len(HATCHES)], edgecolor=theme.paper,
        )  # fmt: skip
        axes.plot(steps, above, color=theme.paper, lw=0.8, drawstyle="steps-pre")
        below = above


def _ends(axes: Axes, panel: Panel, drawn: Sequence[Curve], kind: Scale) -> None:
    """Set the y-limits with a margin; without finite values show no ticks."""
    finite = [curve.values[np.isfinite(curve.values)] for curve in drawn]
    values = np.concatenate(finite)
    if not len(values):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        return
    low, high = float(values.min()), float(values.max())
    if kind == "linear":
        near_limits = [b.value for b in panel.limits if _near(b.value, low, high)]
        low, high = min([low, *near_limits]), max([high, *near_limits])
        # A curve that varies less is drawn as constant.
        same = high - low <= 1e-6 * max(abs(high), abs(low))
        air = 0.06 * (high - low) if not same else 0.5 * abs(high) or 0.5
        if not np.isfinite(air):
            return  # overflows float64: keep matplotlib's limits
        bottom, top = low - air, high + air
        if panel.low is not None and panel.high is not None:  # a share has fixed ends
            bottom, top = min(panel.low, low), max(panel.high, high)
        elif panel.low is not None and low >= panel.low:
            bottom = panel.low
        edge = 0.0 if panel.kind is Kind.SHARES else 0.02 * (top - bottom)
        axes.set_ylim(bottom - edge, top + edge)
    elif kind == "log":
        axes.set_ylim(low / 1.5, high * 1.5)
        set_log_ticks(axes, low, high)


def _near(value: float, low: float, high: float) -> bool:
    """Return whether a limit is near enough to be drawn without flattening the curves."""
    span = max(high - low, 1e-12 * abs(high))
    size = max(abs(low), abs(high), span)
    return low - MAX_LIMIT_DISTANCE * size <= value <= high + MAX_LIMIT_DISTANCE * size


def _limits(axes: Axes, panel: Panel, theme: Theme, kind: Scale) -> list[str]:
    """Draw the limits within the axis; return captions of the others."""
    low, high = sorted(axes.get_ylim())
    distant = []
    for limit in panel.limits:
        if not low <= limit.value <= high or (kind == "log" and limit.value <= 0):
            distant.append(f"{limit.label}: out of sight")
            continue
        axes.axhline(limit.value, color=theme.ink, lw=1.2, ls=(0, (6, 3)), alpha=0.75)
        is_low = limit.value <= low + 0.9 * (high - low)
        axes.annotate(
            limit.label, (1.0, limit.value), xycoords=("axes fraction", "data"),
            xytext=(-2, 3 if is_low else -3), textcoords="offset points", ha="right",
            va="bottom" if is_low else "top", size=TEXT_SIZES["caption"], color=theme.ink,
            bbox={"facecolor": theme.paper, "edgecolor": "none", "pad": 1.0, "alpha": 0.75},
        )  # fmt: skip
    return distant


def _marks(axes: Axes, panel: Panel, context: PanelContext) -> None:
    """Shade the steps of findings; of several runs, mark the onsets only."""
    for mark in panel.marks[: None if context.several else 3]:
        if context.several:
            axes.plot(
                [mark.began], [0.0], marker="^", ms=9, clip_on=False, zorder=5,
                color=context.theme.curve(mark.run), transform=axes.get_xaxis_transform(),
            )  # fmt: skip
            continue
        ink = context.theme.severity(mark.severity)
        axes.axvline(mark.began, color=ink, lw=1.4, ls=(0, (4, 2)), zorder=4)
        if mark.ended > mark.began:
            axes.axvspan(mark.began, mark.ended, color=ink, alpha=0.10, lw=0, zorder=0)


def _bad(axes: Axes, drawn: Sequence[Curve], theme: Theme) -> None:
    """Mark NaN at the bottom, and infinities at the top or the bottom."""
    ink = theme.named["error"]
    for curve in drawn:
        for steps, height, marker in (
            (curve.nan, 0.03, "x"), (curve.above, 0.97, "^"), (curve.below, 0.03, "v"),
        ):  # fmt: skip
            axes.plot(
                steps, np.full(len(steps), height), marker, color=ink, ms=7, mew=2,
                transform=axes.get_xaxis_transform(), clip_on=False, zorder=6,
            )  # fmt: skip


def _count_texts(drawn: Sequence[Curve]) -> Iterable[str]:
    sums = np.array([curve.counts for curve in drawn]).sum(axis=0)
    for count, name in zip(sums.tolist(), ("× {} NaN", "▲ {} +inf", "▼ {} -inf"), strict=True):
        if count:
            yield name.format(f"{count:,}")


def _finding_texts(panel: Panel, context: PanelContext) -> Iterable[str]:
    """Yield the findings with their first steps; of several runs, their number."""
    if context.several and panel.marks:
        yield f"▲ a finding begins ({len(panel.marks)})"
    for mark in () if context.several else panel.marks:
        yield f"{mark.severity.name.lower()}[{mark.label}] from {mark.began:,}"
    if panel.stretch_label:
        yield f"shaded: {panel.stretch_label}"


def _title(
    axes: Axes, panel: Panel, context: PanelContext, captions: Sequence[str], scaled: str = ""
) -> None:
    theme, note = context.theme, panel.said
    if note is not None:
        captions = [note.text, *captions] if note.style else [*captions, note.text]
    caption = cut(" · ".join(captions), context.inches, TEXT_SIZES["caption"])
    title = axes.annotate(
        cut(panel.title, context.inches, TEXT_SIZES["title"], bold=True), (0, 1),
        xycoords="axes fraction", xytext=(0, 22 if caption else 8), textcoords="offset points",
        size=TEXT_SIZES["title"], weight="bold", color=theme.ink,
    )  # fmt: skip
    is_implied = panel.unit == "1" or panel.unit.lower() in panel.title.lower()
    room = context.inches - width(title.get_text(), TEXT_SIZES["title"], bold=True) - 0.2  # inches
    unit_name = "" if is_implied else panel.unit.replace("^2", "²")
    unit_texts = [text for text in (unit_name, scaled) if text]
    unit = ", ".join(unit_texts)
    if unit and width(drawable(unit), TEXT_SIZES["ticks"]) > room:
        unit = cut(unit_texts[-1], max(0.0, room), TEXT_SIZES["ticks"])
    if unit:
        axes.annotate(
            f"\u00a0\u00a0{unit}", (1, 0), xycoords=title, va="bottom", size=TEXT_SIZES["ticks"],
            color=theme.dim,
        )  # fmt: skip
    if not caption:
        return
    worst: Mark | None = max(panel.marks, key=lambda mark: mark.severity, default=None)
    has_bad = any(text.startswith(("×", "▲ ", "▼")) for text in captions) and not context.several
    ink = theme.dim if worst is None or context.several else theme.severity(worst.severity)
    if note is not None and note.style:
        ink = theme.named.get(note.style, theme.dim)
    axes.annotate(
        caption, (0, 1), xycoords="axes fraction", xytext=(0, 7), textcoords="offset points",
        size=TEXT_SIZES["caption"], color=theme.named["error"] if has_bad else ink,
    )  # fmt: skip


def _part_names(panel: Panel) -> dict[int, str]:
    """Return the names of a panel's parts."""
    names = {line.part: line.label for line in panel.lines if not line.quantile}
    return dict(sorted(names.items()))


def _legend(axes: Axes, panel: Panel, context: PanelContext) -> None:
    """Draw the legend of the parts, next to the title if they are few, else next to the chart."""
    handles, names = _handles(panel, context)
    is_known = len(names) == 1 and panel.kind is not Kind.BANDS  # the title names the only one
    if not names or is_known:
        return
    is_beside_chart = has_side_legend(panel)
    if is_beside_chart:  # top down, like the areas
        order = slice(None, None, -1 if panel.kind is Kind.SHARES else 1)
        handles, names = handles[order], names[order]
    axes.legend(
        handles, names, frameon=False, fontsize=TEXT_SIZES["caption"], labelcolor=context.theme.ink,
        loc="upper left" if is_beside_chart else "lower right",
        bbox_to_anchor=(1.01, 1.02) if is_beside_chart else (1.0, 1.06),
        ncols=1 if is_beside_chart else len(names), borderaxespad=0.0, handlelength=1.4,
        columnspacing=1.2,
    )  # fmt: skip


def _handles(panel: Panel, context: PanelContext) -> tuple[list[Line2D | Patch], list[str]]:
    """Return the legend's handle and label of each part."""
    theme, names = context.theme, _part_names(panel)
    handles: list[Line2D | Patch] = []
    for index, curve_index in enumerate(names):
        if panel.kind is Kind.SHARES:
            handles.append(Patch(color=theme.curve(index), alpha=0.85))
        elif context.several:
            handles.append(
                Line2D(
                    [], [], color=theme.dim, lw=2, ls=LINE_DASHES[curve_index % len(LINE_DASHES)]
                )
            )
        else:
            handles.append(
                Line2D([], [], color=theme.curve(curve_index), lw=3, ls=dash(curve_index, theme))
            )
    return handles, [cut(name, 1.6, TEXT_SIZES["caption"]) for name in names.values()]


def _draw_text(axes: Axes, panel: Panel, context: PanelContext) -> None:
    """Draw the text of a panel, or its message that nothing is logged."""
    theme = context.theme
    axes.set_axis_off()
    _title(axes, panel, context, ())
    if panel.kind is not Kind.WORDS:
        text = "\n".join(wrap(panel.absent, context.inches, TEXT_SIZES["words"]))
        axes.text(0.5, 0.5, text, color=theme.dim, size=TEXT_SIZES["words"], ha="center",
                  va="center", transform=axes.transAxes)  # fmt: skip
        return
    for line in _layout_lines(panel, context.inches, several=context.several):
        if line.top + line.size > context.tall * POINTS_PER_INCH:
            return
        name = line.style.replace("bold", "").strip()
        ink = theme.ink if not name else theme.named.get(name, "")
        if name.startswith("run"):
            ink = theme.curve(int(name.removeprefix("run")))
        axes.annotate(
            line.text, (0, 1), xycoords="axes fraction", xytext=(0, -line.top),
            textcoords="offset points", va="top", size=line.size, color=ink,
            weight="bold" if "bold" in line.style else "normal",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _TextLine:
    """A line of text in a panel."""

    text: str
    style: str
    size: float  # points
    top: float  # points below the panel's top


def _layout_lines(panel: Panel, inches: float, *, several: bool) -> Iterable[_TextLine]:
    """Break a panel's text into lines; of several runs, one line each."""
    top = 8.0
    for words in panel.words:
        bold = "bold" in words.style
        size = TEXT_SIZES["words"] + (4 if bold else 0)
        lines = [cut(words.text, inches, size)] if several else None
        for text in lines or wrap(words.text, inches, size, bold=bold):
            yield _TextLine(text, words.style, size, top)
            top += 1.45 * size
        top += 0.35 * size


def words_tall(panel: Panel, inches: float, *, several: bool) -> float:
    """Return the height of a text panel in inches."""
    lines = [_TextLine("", "", 0.0, 0.0), *_layout_lines(panel, inches, several=several)]
    return (lines[-1].top + lines[-1].size) / POINTS_PER_INCH
