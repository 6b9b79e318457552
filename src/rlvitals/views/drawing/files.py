"""A picture as a file: drawn, or as the numbers that would be drawn."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.views import json_view
from rlvitals.views.drawing.curves import Curve, curves, scale
from rlvitals.views.drawing.themes import THEMES
from rlvitals.views.figures.figure import Across, Kind, Panel, Picture

NUMBERS = "json"
WIDTH = 1000  # columns of pixels that the numbers are for
COLUMN = re.compile(r"\[\s+([\d.e+,\s-]*(?:null[\d.e+,\s-]*)*)\]")  # of numbers: on one line


def write(picture: Picture, path: Path, theme: str, dpi: int) -> None:
    """Write a picture; the path's ending says as what."""
    if path.suffix == f".{NUMBERS}":
        path.write_text(f"{numbers(picture)}\n", encoding="utf-8")
        return
    from rlvitals.views.drawing import canvas  # noqa: PLC0415 - loads matplotlib

    canvas.write(picture, path, THEMES[theme], dpi)


def numbers(picture: Picture, width: int = WIDTH) -> str:
    """Write what `width` columns of pixels show of a picture, as JSON."""
    document = json_view.document(
        {
            "name": picture.name,
            "title": picture.title,
            "about": picture.about,
            "runs": picture.runs,
            "x": {"label": picture.x_label, "first": picture.first, "last": picture.last},
            "seams": picture.seams,
            "panels": [_panel(panel, picture, width) for panel in picture.panels],
        }
    )
    return COLUMN.sub(lambda found: f"[{' '.join(found[1].split())}]", document)


def _panel(panel: Panel, picture: Picture, width: int) -> dict[str, object]:
    drawn = curves(panel, width, picture.first, picture.last)
    kept = {
        "unit": panel.unit,
        "kind": "" if panel.kind is Kind.LINES else panel.kind.value,
        "scale": scale(panel, drawn)[0] if panel.lines else "",
        "absent": panel.absent,
        "limits": panel.limits,
        "marks": panel.marks,
        "stretches": panel.stretches,
        "words": [words.text for words in panel.words],
        "curves": [_curve(curve) for curve in drawn],
        "across": [_across(one) for one in panel.across],
        "x": panel.x_label,
        "said": panel.said.text if panel.said is not None else "",
    }
    return {"title": panel.title, **{name: value for name, value in kept.items() if value}}


def _curve(curve: Curve) -> dict[str, object]:
    line = curve.line
    bad = dict(zip(("nan", "above", "below"), curve.counts, strict=True))
    told: dict[str, object] = {
        "label": line.label,
        "metric": line.metric,
        "run": line.run,
        "steps": curve.steps,
        "values": _rounded(curve.values),
    }
    if any(curve.counts):
        told["no_numbers"] = bad
    if curve.smooth is not None:
        told["average"] = {"steps": curve.smooth[0], "values": _rounded(curve.smooth[1])}
    return told


def _across(one: Across) -> dict[str, object]:
    columns = {"x": one.x, "values": one.values, "low": one.low, "high": one.high}
    return {
        "label": one.label,
        "run": one.run,
        **{name: _rounded(column) for name, column in columns.items() if column is not None},
    }


def _rounded(values: NDArray[np.float64]) -> list[float]:
    """Keep seven digits: no picture shows more."""
    return [float(f"{value:.7g}") for value in values.tolist()]
