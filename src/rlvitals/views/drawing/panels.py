"""One chart of a picture: its curves, and what stands on them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from rlvitals.views.drawing import bands, custom_axis
from rlvitals.views.drawing.axes import set_log_ticks, set_scale
from rlvitals.views.drawing.curves import Curve, Scale, curves, scale
from rlvitals.views.drawing.text_fit import POINTS, cut, drawable, width, wrapped
from rlvitals.views.drawing.themes import Theme
from rlvitals.views.figures.figure import Kind, Mark, Panel, Picture

BESIDE_TITLE = 3  # parts whose names fit there
GAP = 0.2  # inches between a title and its unit
NAME = 1.6  # inches of a part's name
SAME = 1e-6  # of its size: a curve that varies by less is drawn as constant
FEW = 30  # points that are each marked
DOMINATES = 8.0  # times what is drawn: a limit as far off is told, not drawn
SHADED = 3  # findings that are shaded
SIZES = {"title": 13.0, "ticks": 11.0, "caption": 10.0, "words": 12.0}  # points
Dash = str | tuple[int, tuple[float, ...]]
SCALED: dict[Scale, str] = {"linear": "", "log": "log scale", "asinh": "compressed scale"}
DASHES: tuple[Dash, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
HATCHES = ("", "//", "\\\\", "..", "xx")  # of areas whose colours come again


@dataclass(frozen=True, slots=True)
class Place:
    """What a panel must know of the picture that it stands in."""

    picture: Picture
    theme: Theme
    inches: float  # its chart is wide
    tall: float  # inches
    pixels: int  # the same
    lowest: bool  # of its column: the x-axis is named there

    @property
    def several(self) -> bool:
        """Whether colours tell runs apart, and not the curves of one."""
        return len(self.picture.runs) > 1


def is_crowded(panel: Panel) -> bool:
    """Tell whether a panel has too many parts to be named beside its title."""
    return len(_parts(panel)) > BESIDE_TITLE


def colour(theme: Theme, at: int) -> str:
    """Return the colour of a run, or of a part of the only one."""
    return theme.curve(at)


def dash(at: int, theme: Theme) -> Dash:
    """Return the dashes of what is drawn when all colours have been used."""
    return DASHES[at // len(theme.curves) % len(DASHES)]


def draw(axes: Axes, panel: Panel, place: Place) -> bool:
    """Draw one panel; True where averages are laid over its curves."""
    theme = place.theme
    axes.set_facecolor(theme.paper)
    if panel.across:
        _across(axes, panel, place)
        return False
    if panel.kind is Kind.WORDS or not panel.lines:
        _words(axes, panel, place)
        return False
    _frame(axes, place)
    drawn = curves(panel, place.pixels, place.picture.first, place.picture.last)
    kind, width = scale(panel, drawn)
    set_scale(axes, kind, width)
    if panel.kind is Kind.SHARES:
        _areas(axes, panel, theme)
    middle = bands.draw(axes, panel, theme, place.pixels) if panel.kind is Kind.BANDS else None
    for curve in drawn if panel.kind is not Kind.SHARES else ():
        if middle is None or curve.line is middle:
            _curve(axes, curve, place)
    _ends(axes, panel, drawn, kind)
    far = _limits(axes, panel, theme, kind)
    _stretches(axes, panel, theme)
    _marks(axes, panel, place)
    _bad(axes, drawn, theme)
    said = [*_told(panel, place), *_counted(drawn), *far]
    _title(axes, panel, place, said, SCALED[kind])
    _legend(axes, panel, place)
    return any(curve.smooth is not None for curve in drawn)


def _across(axes: Axes, panel: Panel, place: Place) -> None:
    """Draw curves over an axis of the panel's own."""
    _plain_frame(axes, place.theme)
    custom_axis.draw(axes, panel, place.theme)
    far = _limits(axes, panel, place.theme, "linear")
    label = cut(panel.x_label, place.inches, SIZES["ticks"])
    axes.set_xlabel(label, color=place.theme.dim, size=SIZES["ticks"])
    _title(axes, panel, place, far)


def _plain_frame(axes: Axes, theme: Theme) -> None:
    axes.tick_params(colors=theme.dim, labelsize=SIZES["ticks"], length=3)
    axes.grid(visible=True, axis="y", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.dim)


def _frame(axes: Axes, place: Place) -> None:
    theme, picture = place.theme, place.picture
    _plain_frame(axes, theme)
    pad = 0.01 * max(picture.last - picture.first, 1)
    axes.set_xlim(picture.first - pad, picture.last + pad)
    if place.lowest:
        axes.set_xlabel(
            cut(picture.x_label, place.inches, SIZES["ticks"]),
            color=theme.dim,
            size=SIZES["ticks"],
        )
    for seam in picture.seams:
        axes.axvline(seam, color=theme.dim, lw=1.0, ls=":")


def _curve(axes: Axes, curve: Curve, place: Place) -> None:
    run, part = curve.line.run, curve.line.part
    theme = place.theme
    first = run if place.several else part
    ink = colour(theme, first)
    ls = DASHES[part % len(DASHES)] if place.several else "solid"
    if first >= len(theme.curves):
        ls = dash(first, theme)
    thin = curve.smooth is not None
    lone = _alone(curve.values)
    few = len(curve.line.series) <= FEW
    axes.plot(
        curve.steps, curve.values, color=ink, ls=ls, lw=0.9 if thin else 2.0,
        alpha=0.4 if thin else 1.0, marker="o" if few else None, ms=4, solid_joinstyle="round",
    )  # fmt: skip
    if not few and lone.any():
        axes.plot(curve.steps[lone], curve.values[lone], "o", ms=2.5, color=ink)
    if curve.smooth is not None:
        axes.plot(*curve.smooth, color=ink, ls=ls, lw=2.4)


def _alone(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell the points that have a gap on either side: no line shows them."""
    known = np.concatenate(([False], np.isfinite(values), [False]))
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _areas(axes: Axes, panel: Panel, theme: Theme) -> None:
    """Lay shares one on the other, each over the stretch that it was counted in."""
    steps = panel.lines[0].series.steps
    below = np.zeros(len(steps))
    for at, line in enumerate(panel.lines):
        above = below + np.nan_to_num(line.series.values)
        axes.fill_between(
            steps, below, above, color=theme.curve(at), alpha=0.85, lw=0, step="pre",
            hatch=HATCHES[at // len(theme.curves) % len(HATCHES)], edgecolor=theme.paper,
        )  # fmt: skip
        axes.plot(steps, above, color=theme.paper, lw=0.8, drawstyle="steps-pre")
        below = above


def _ends(axes: Axes, panel: Panel, drawn: Sequence[Curve], kind: Scale) -> None:
    """Leave air around the curves; where there is no number, show no ticks."""
    parts = [curve.values[np.isfinite(curve.values)] for curve in drawn]
    values = np.concatenate(parts)
    if not len(values):
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        return
    low, high = float(values.min()), float(values.max())
    if kind == "linear":
        reached = [b.value for b in panel.limits if _near(b.value, low, high)]
        low, high = min([low, *reached]), max([high, *reached])
        same = high - low <= SAME * max(abs(high), abs(low))
        air = 0.06 * (high - low) if not same else 0.5 * abs(high) or 0.5
        if not np.isfinite(air):
            return  # beyond float64: as matplotlib has it
        bottom, top = low - air, high + air
        if panel.low is not None and panel.high is not None:  # a share has its own ends
            bottom, top = min(panel.low, low), max(panel.high, high)
        elif panel.low is not None and low >= panel.low:
            bottom = panel.low
        edge = 0.0 if panel.kind is Kind.SHARES else 0.02 * (top - bottom)
        axes.set_ylim(bottom - edge, top + edge)
    elif kind == "log":
        axes.set_ylim(low / 1.5, high * 1.5)
        set_log_ticks(axes, low, high)


def _near(value: float, low: float, high: float) -> bool:
    """Tell whether a limit can be drawn without flattening the curves."""
    span = max(high - low, 1e-12 * abs(high))
    size = max(abs(low), abs(high), span)
    return low - DOMINATES * size <= value <= high + DOMINATES * size


def _limits(axes: Axes, panel: Panel, theme: Theme, kind: Scale) -> list[str]:
    """Draw the limits that are in sight; return what is said of the others."""
    low, high = sorted(axes.get_ylim())
    far = []
    for limit in panel.limits:
        if not low <= limit.value <= high or (kind == "log" and limit.value <= 0):
            far.append(f"{limit.label}: out of sight")
            continue
        axes.axhline(limit.value, color=theme.ink, lw=1.2, ls=(0, (6, 3)), alpha=0.75)
        up = limit.value <= low + 0.9 * (high - low)
        axes.annotate(
            limit.label, (1.0, limit.value), xycoords=("axes fraction", "data"),
            xytext=(-2, 3 if up else -3), textcoords="offset points", ha="right",
            va="bottom" if up else "top", size=SIZES["caption"], color=theme.ink,
            bbox={"facecolor": theme.paper, "edgecolor": "none", "pad": 1.0, "alpha": 0.75},
        )  # fmt: skip
    return far


def _stretches(axes: Axes, panel: Panel, theme: Theme) -> None:
    for one in panel.stretches:
        axes.axvspan(one.began, one.ended, color=theme.curve(3), alpha=0.22, lw=0)


def _marks(axes: Axes, panel: Panel, place: Place) -> None:
    """Shade what findings speak of; of several runs, mark the onsets alone."""
    for mark in panel.marks[: None if place.several else SHADED]:
        if place.several:
            axes.plot(
                [mark.began], [0.0], marker="^", ms=9, clip_on=False, zorder=5,
                color=colour(place.theme, mark.run), transform=axes.get_xaxis_transform(),
            )  # fmt: skip
            continue
        ink = place.theme.severity(mark.severity)
        axes.axvline(mark.began, color=ink, lw=1.4, ls=(0, (4, 2)), zorder=4)
        if mark.ended > mark.began:
            axes.axvspan(mark.began, mark.ended, color=ink, alpha=0.10, lw=0, zorder=0)


def _bad(axes: Axes, drawn: Sequence[Curve], theme: Theme) -> None:
    """Mark what is no number: NaN below, infinities where they point to."""
    ink = theme.named["error"]
    for curve in drawn:
        for steps, height, marker in (
            (curve.nan, 0.03, "x"), (curve.above, 0.97, "^"), (curve.below, 0.03, "v"),
        ):  # fmt: skip
            axes.plot(
                steps, np.full(len(steps), height), marker, color=ink, ms=7, mew=2,
                transform=axes.get_xaxis_transform(), clip_on=False, zorder=6,
            )  # fmt: skip


def _counted(drawn: Sequence[Curve]) -> Iterable[str]:
    sums = np.array([curve.counts for curve in drawn]).sum(axis=0)
    for count, name in zip(sums.tolist(), ("× {} NaN", "▲ {} +inf", "▼ {} -inf"), strict=True):
        if count:
            yield name.format(f"{count:,}")


def _told(panel: Panel, place: Place) -> Iterable[str]:
    """Name the findings, with their first steps; of several runs, how many there are."""
    if place.several and panel.marks:
        yield f"▲ a finding begins ({len(panel.marks)})"
    for mark in () if place.several else panel.marks:
        yield f"{mark.severity.name.lower()}[{mark.label}] from {mark.began:,}"
    if panel.stretch_label:
        yield f"shaded: {panel.stretch_label}"


def _title(axes: Axes, panel: Panel, place: Place, said: Sequence[str], scaled: str = "") -> None:
    theme, own = place.theme, panel.said
    if own is not None:
        said = [own.text, *said] if own.style else [*said, own.text]
    caption = cut(" · ".join(said), place.inches, SIZES["caption"])
    title = axes.annotate(
        cut(panel.title, place.inches, SIZES["title"], bold=True), (0, 1), xycoords="axes fraction",
        xytext=(0, 22 if caption else 8), textcoords="offset points",
        size=SIZES["title"], weight="bold", color=theme.ink,
    )  # fmt: skip
    plain = panel.unit == "1" or panel.unit.lower() in panel.title.lower()
    room = place.inches - width(title.get_text(), SIZES["title"], bold=True) - GAP
    said_of_it = [text for text in ("" if plain else panel.unit, scaled) if text]
    unit = ", ".join(said_of_it)
    if unit and width(drawable(unit), SIZES["ticks"]) > room:
        unit = cut(said_of_it[-1], max(0.0, room), SIZES["ticks"])
    if unit:
        axes.annotate(
            f"  {unit}", (1, 0), xycoords=title, va="bottom", size=SIZES["ticks"],
            color=theme.dim,
        )  # fmt: skip
    if not caption:
        return
    worst: Mark | None = max(panel.marks, key=lambda mark: mark.severity, default=None)
    bad = any(text.startswith(("×", "▲ ", "▼")) for text in said) and not place.several
    ink = theme.dim if worst is None or place.several else theme.severity(worst.severity)
    if own is not None and own.style:
        ink = theme.named.get(own.style, theme.dim)
    axes.annotate(
        caption, (0, 1), xycoords="axes fraction", xytext=(0, 7), textcoords="offset points",
        size=SIZES["caption"], color=theme.named["error"] if bad else ink,
    )  # fmt: skip


def _parts(panel: Panel) -> dict[int, str]:
    """Return the names of a panel's parts."""
    return dict(sorted({line.part: line.label for line in panel.lines}.items()))


def _legend(axes: Axes, panel: Panel, place: Place) -> None:
    """Name the parts: beside the title where they are few, else beside the chart."""
    handles, names = _handles(panel, place)
    if len(names) < 2:  # noqa: PLR2004 - the title names the only one
        return
    crowded = is_crowded(panel)
    if crowded:  # from the top down, as areas lie
        order = slice(None, None, -1 if panel.kind is Kind.SHARES else 1)
        handles, names = handles[order], names[order]
    axes.legend(
        handles, names, frameon=False, fontsize=SIZES["caption"], labelcolor=place.theme.ink,
        loc="upper left" if crowded else "lower right",
        bbox_to_anchor=(1.01, 1.02) if crowded else (1.0, 1.06),
        ncols=1 if crowded else len(names), borderaxespad=0.0, handlelength=1.4,
        columnspacing=1.2,
    )  # fmt: skip


def _handles(panel: Panel, place: Place) -> tuple[list[Line2D | Patch], list[str]]:
    """Return what stands for each part, and its name."""
    theme, parts = place.theme, _parts(panel)
    handles: list[Line2D | Patch] = []
    for at, part in enumerate(parts):
        if panel.kind is Kind.SHARES:
            handles.append(Patch(color=theme.curve(at), alpha=0.85))
        elif place.several:
            handles.append(Line2D([], [], color=theme.dim, lw=2, ls=DASHES[part % len(DASHES)]))
        else:
            handles.append(Line2D([], [], color=colour(theme, part), lw=3, ls=dash(part, theme)))
    return handles, [cut(name, NAME, SIZES["caption"]) for name in parts.values()]


def _words(axes: Axes, panel: Panel, place: Place) -> None:
    """Write a panel of words, or calmly that there is nothing to draw."""
    theme = place.theme
    axes.set_axis_off()
    _title(axes, panel, place, ())
    if panel.kind is not Kind.WORDS:
        said = "\n".join(wrapped(panel.absent, place.inches, SIZES["words"]))
        axes.text(0.5, 0.5, said, color=theme.dim, size=SIZES["words"], ha="center",
                  va="center", transform=axes.transAxes)  # fmt: skip
        return
    for line in _written(panel, place.inches, several=place.several):
        if line.top + line.size > place.tall * POINTS:
            return
        name = line.style.replace("bold", "").strip()
        ink = theme.ink if not name else theme.named.get(name, "")
        if name.startswith("run"):
            ink = colour(theme, int(name.removeprefix("run")))
        axes.annotate(
            line.text, (0, 1), xycoords="axes fraction", xytext=(0, -line.top),
            textcoords="offset points", va="top", size=line.size, color=ink,
            weight="bold" if "bold" in line.style else "normal",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Written:
    """A line of a panel of words."""

    text: str
    style: str
    size: float  # points
    top: float  # points below the panel's top


def _written(panel: Panel, inches: float, *, several: bool) -> Iterable[_Written]:
    """Break a panel's words into lines: of several runs, one for each."""
    top = 8.0
    for words in panel.words:
        bold = "bold" in words.style
        size = SIZES["words"] + (4 if bold else 0)
        whole = [cut(words.text, inches, size)] if several else None
        for text in whole or wrapped(words.text, inches, size, bold=bold):
            yield _Written(text, words.style, size, top)
            top += 1.45 * size
        top += 0.35 * size


def words_tall(panel: Panel, inches: float, *, several: bool) -> float:
    """Return how many inches a panel of words takes."""
    *_, last = [_Written("", "", 0.0, 0.0), *_written(panel, inches, several=several)]
    return (last.top + last.size) / POINTS
