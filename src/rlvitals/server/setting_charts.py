"""Draw the scores of compared runs against each setting in which they differ."""

import math
from collections.abc import Sequence

from rlvitals.comparison import grouping
from rlvitals.comparison.grouping import Member, format_setting
from rlvitals.comparison.result import RunScore
from rlvitals.types import Setting
from rlvitals.views import phrases
from rlvitals.views.charts.overlay import colour_of
from rlvitals.views.report.markup import Html, el


def charts(runs: Sequence[tuple[Member, int, RunScore | None]], metric_label: str) -> Html | None:
    """Return a chart for each setting in which scored runs differ; None without one.

    `runs`: each with the number of its group and its score.
    """
    scored = [
        (member, group, score)
        for member, group, score in runs
        if score is not None and math.isfinite(score.score)
    ]
    names = grouping.differing_settings([member for member, _, _ in scored])
    drawings = [_chart(name, scored, metric_label) for name in names]
    cells = [drawing for drawing in drawings if drawing is not None][:12]
    return el("div", *cells, class_="setting-charts") if cells else None


def _chart(
    name: str, scored: Sequence[tuple[Member, int, RunScore]], metric_label: str
) -> Html | None:
    values = [member.trace.settings.get(name) for member, _, _ in scored]
    positions = _positions(values)
    if positions is None:
        return None
    fractions, ticks = positions
    low, high = min(score.score for *_, score in scored), max(score.score for *_, score in scored)
    x_low, y_low, x_high, y_high = 60, 14, 254, 120  # pixels of a drawing of 270 x 150

    def x(fraction: float) -> str:
        return f"{x_low + fraction * (x_high - x_low):.1f}"

    def y(score: float) -> str:
        return f"{y_low + (high - score) / ((high - low) or 1.0) * (y_high - y_low):.1f}"

    levels = dict.fromkeys((high, low))
    dots = [
        _dot(x(fraction), y(score.score), group, f"{score.name}: {_pair(value, score)}")
        for value, fraction, (_, group, score) in zip(values, fractions, scored, strict=True)
    ]
    drawing = el(
        "svg",
        el("path", d=f"M{x_low - 8} {y_low - 6}V{y_high + 6}H{x_high + 8}", class_="axis-line"),
        *(_tick(phrases.number(level), str(x_low - 14), y(level), "end") for level in levels),
        *(  # a long tick would be cut at the right end
            _tick(text, x(fraction), str(y_high + 20), "middle" if fraction < 1 else "end")
            for fraction, text in ticks
        ),
        *dots,
        viewBox="0 0 270 150",
        role="img",
        aria_label=f"{metric_label} of {len(scored)} runs by {name}",
    )
    return el("figure", el("figcaption", name), drawing)


def _pair(value: Setting | None, score: RunScore) -> str:
    return f"{format_setting(value)}, {phrases.number(score.score)}"


def _dot(x: str, y: str, group: int, text: str) -> Html:
    classes = f"run-dot fill{group % 8} {colour_of(group)}"
    return el("circle", el("title", text), cx=x, cy=y, r="4", class_=classes)


def _tick(text: str, x: str, y: str, anchor: str) -> Html:
    return el("text", text, x=x, y=y, dy=".3em", text_anchor=anchor, class_="tick")


def _positions(
    values: Sequence[Setting | None],
) -> tuple[list[float], list[tuple[float, str]]] | None:
    """Return the fraction of each value in [0, 1] and the ticks; None for names of runs."""
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(values) and all(map(math.isfinite, numbers)):
        low, high = min(numbers), max(numbers)
        is_log = low > 0 and high / low >= 30.0

        def fraction_of(number: float) -> float:
            if is_log:
                return math.log(number / low) / math.log(high / low)
            return (number - low) / (high - low)

        ticks = [(0.0, format_setting(low)), (1.0, format_setting(high))]
        return [fraction_of(number) for number in numbers], ticks
    texts = [format_setting(value) for value in values]
    distinct = sorted(set(texts))
    if len(distinct) > 8:  # more are names
        return None
    fractions = {text: (i + 0.5) / len(distinct) for i, text in enumerate(distinct)}
    chars = 28 // len(distinct)  # that fit into the width
    ticks = [
        (fraction, text if len(text) <= chars else f"{text[:chars]}…")
        for text, fraction in fractions.items()
    ]
    return [fractions[text] for text in texts], ticks
