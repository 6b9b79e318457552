"""Write a picture to a file, drawn or as JSON numbers."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.views import json_view
from rlvitals.views.drawing.curves import Curve, curves, scale
from rlvitals.views.drawing.themes import THEMES
from rlvitals.views.figures.figure import Across, Kind, Picture


def write(picture: Picture, path: Path, theme: str, dpi: int) -> None:
    """Write a picture; the path's suffix selects the format."""
    if path.suffix == ".json":
        path.write_text(f"{numbers(picture)}\n", encoding="utf-8")
        return
    from rlvitals.views.drawing import canvas  # noqa: PLC0415 - loads matplotlib

    canvas.write(picture, path, THEMES[theme], dpi)


def numbers(picture: Picture, width: int = 1000) -> str:
    """Return the points of a picture visible in `width` pixel columns, as JSON."""
    panels = []
    for panel in picture.panels:
        drawn_curves = curves(panel, width, picture.first, picture.last)
        members = {
            "unit": panel.unit,
            "kind": "" if panel.kind is Kind.LINES else panel.kind.value,
            "scale": scale(panel, drawn_curves)[0] if panel.lines else "",
            "absent": panel.absent,
            "limits": panel.limits,
            "marks": panel.marks,
            "stretches": panel.stretches,
            "words": [words.text for words in panel.words],
            "curves": [_curve(curve) for curve in drawn_curves],
            "across": [_across(curve) for curve in panel.across],
            "x": panel.x_label,
            "said": panel.said.text if panel.said is not None else "",
        }
        panels.append(
            {"title": panel.title, **{name: value for name, value in members.items() if value}}
        )
    document = json_view.document(
        {
            "name": picture.name,
            "title": picture.title,
            "about": picture.about,
            "runs": picture.runs,
            "x": {"label": picture.x_label, "first": picture.first, "last": picture.last},
            "seams": picture.seams,
            "panels": panels,
        }
    )
    # Lists of numbers are printed on one line.
    return re.sub(
        r"\[\s+([\d.e+,\s-]*(?:null[\d.e+,\s-]*)*)\]",
        lambda match: f"[{' '.join(match[1].split())}]",
        document,
    )


def _curve(curve: Curve) -> dict[str, object]:
    line = curve.line
    bad_counts = dict(zip(("nan", "above", "below"), curve.counts, strict=True))
    members: dict[str, object] = {
        "label": line.label,
        "metric": line.metric,
        "run": line.run,
        "steps": curve.steps,
        "values": _seven_digits(curve.values),
    }
    if any(curve.counts):
        members["no_numbers"] = bad_counts
    if curve.smooth is not None:
        members["average"] = {"steps": curve.smooth[0], "values": _seven_digits(curve.smooth[1])}
    return members


def _across(curve: Across) -> dict[str, object]:
    columns = {"x": curve.x, "values": curve.values, "low": curve.low, "high": curve.high}
    return {
        "label": curve.label,
        "run": curve.run,
        **{name: _seven_digits(column) for name, column in columns.items() if column is not None},
    }


def _seven_digits(values: NDArray[np.float64]) -> list[float]:
    """Round to seven digits, which exceed a picture's resolution."""
    return [float(f"{value:.7g}") for value in values.tolist()]
